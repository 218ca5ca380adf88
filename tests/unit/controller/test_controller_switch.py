# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A switch and its controller: program, reconciliation, reconnects, arbitration, ARP."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from unittest.mock import patch

import grpc
import pytest
from finsy.proto import p4r

from controller_fixtures import (
    HOSTS,
    FakeWorker,
    fake_switch,
    join_all,
    make_config,
    run,
    running_controller,
    serving,
)
from fake_p4runtime import key
from fake_program import build_p4info
from planned_trees import planned_trees
from switchfold.controller.config import SwitchConfig
from switchfold.controller.database.database import MAX_TREE_ID
from switchfold.controller.errors import ListenError, SwitchUnreachableError, WrongProgramError
from switchfold.controller.fabric.fabric import Fabric
from switchfold.controller.fabric.routes import routes_at
from switchfold.controller.jobs.job import Tree, View, Worker
from switchfold.controller.server import ControllerServer
from switchfold.controller.switches.program import load_program
from switchfold.controller.switches.reconcile import desired_entities
from switchfold.controller.switches.switch_call import PROGRAM_TIMEOUT_S
from switchfold.controller.switches.switch_session import LinkState
from switchfold.controller.tables.outcome import TREE_OUTCOMES
from switchfold.hostlib.straggler import StragglerPolicy
from time_bound import until


def pipeline(name: str = "switchfold", version: str = "2.32") -> p4r.ForwardingPipelineConfig:
    return p4r.ForwardingPipelineConfig(p4info=build_p4info(name, version))


def test_switch_without_a_program_gets_ours(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, fake):
            assert fake.num_pushes == 1
            assert fake.config is not None
            assert fake.config.p4info.pkg_info.version == "2.32"
            assert server.links["s1"].state is LinkState.READY
            assert sum(fake.tables().values()) == len(HOSTS)

    run(scenario())


def test_switch_that_loads_slowly_gets_its_time(tmp_path: Path):
    async def scenario() -> None:
        async with fake_switch() as fake:
            fake.may_load.clear()
            server = ControllerServer(make_config(tmp_path, fake))
            link = server.links["s1"]
            wait_ready = link.wait_ready

            async def wait_from_the_loading_on(_: float) -> None:
                await until(lambda: link.state is LinkState.LOADING)
                asyncio.get_running_loop().call_later(0.8, fake.may_load.set)
                await wait_ready(0.4)

            with patch.object(link, "wait_ready", wait_from_the_loading_on):
                async with server.serve():
                    assert link.state is LinkState.READY
            # finsy would give the call 10 s.
            assert fake.load_limit_s > PROGRAM_TIMEOUT_S / 2

    run(scenario())


def test_switch_with_our_program_keeps_it(tmp_path: Path):
    async def scenario() -> None:
        async with fake_switch() as fake:
            fake.config = pipeline()
            async with serving(make_config(tmp_path, fake)):
                assert fake.num_pushes == 0

    run(scenario())


@pytest.mark.parametrize("other", [("acme", "7"), ("switchfold", "2.352"), ("", "")])
def test_switch_with_another_program_is_refused(tmp_path: Path, other: tuple[str, str]):
    async def scenario() -> None:
        async with fake_switch() as fake:
            fake.config = pipeline(*other)
            with pytest.raises(WrongProgramError, match="--replace-program") as caught:
                async with serving(make_config(tmp_path, fake)):
                    pass
            assert "needs switchfold 2.32 (narrow: 32 values per packet)" in str(caught.value)
            is_wide = other[1] == "2.352"
            assert ("runs switchfold 2.352 (wide: 352" in str(caught.value)) is is_wide
            assert ("--variant wide" in str(caught.value)) is is_wide
            assert fake.num_pushes == 0
            async with serving(make_config(tmp_path, fake, replace_program=True)):
                assert fake.num_pushes == 1

    run(scenario())


def test_switch_that_is_not_there(tmp_path: Path):
    async def scenario() -> None:
        async with fake_switch() as fake:
            config = make_config(tmp_path, fake, connect_timeout_s=1.0)
        with pytest.raises(SwitchUnreachableError, match="is not reachable"):
            async with serving(config):
                pass

    run(scenario())


def test_switch_that_is_away_does_not_keep_the_others_from_serving(tmp_path: Path):
    async def scenario() -> None:
        async with fake_switch() as one, fake_switch() as two:
            server = ControllerServer(make_config(tmp_path, one, two))
            await two.stop()
            away = server.links["s2"]
            wait_ready = away.wait_ready
            # Only this one has so little time; the other one must be reached, however busy all is.
            with patch.object(away, "wait_ready", lambda _: wait_ready(0.5)):
                async with server.serve():
                    (worker,) = await join_all(server.address, 1)
                    await worker.join_reply()
                    assert away.state is not LinkState.READY
                    await two.start(int(two.address.rpartition(":")[2]))
                    await until(lambda: away.state is LinkState.READY)
                    await worker.close()

    run(scenario())


def test_switch_foreign_entries_go_and_missing_ones_come_back(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path, reconcile_interval_s=600.0) as (server, fake):
            workers = await join_all(server.address, 2)
            for worker in workers:
                await worker.join_reply()
            server.links["s1"].on_lost_state = None  # the job keeps its view
            expected = {k: v.SerializeToString() for k, v in fake.entities.items()}
            changed = next(e for e in fake.entities.values() if e.table_entry.match)
            changed.table_entry.action.action.params[0].value = b"\x09"
            for name in list(expected)[1::3]:
                del fake.entities[name]
            foreign = p4r.Entity()
            foreign.CopyFrom(changed)
            foreign.table_entry.match[0].lpm.value = b"\x0b\x00\x00\x09"
            group = p4r.Entity()
            group.packet_replication_engine_entry.multicast_group_entry.multicast_group_id = 77
            fake.entities |= {key(entity): entity for entity in (foreign, group)}
            await server.links["s1"].apply()
            assert {k: v.SerializeToString() for k, v in fake.entities.items()} == expected
            assert not await server.links["s1"].apply(), "nothing is left to do"
            for worker in workers:
                await worker.close()

    run(scenario())


def test_switch_keeps_what_users_have_beside_our_entries(tmp_path: Path):
    """Groups of their range, clone sessions and tables of their own P4 outlive every repair."""

    def multicast_group(number: int) -> p4r.Entity:
        entity = p4r.Entity()
        entry = entity.packet_replication_engine_entry.multicast_group_entry
        entry.multicast_group_id = number
        entry.replicas.add(port=b"\x02", instance=1)
        return entity

    async def scenario() -> None:
        async with fake_switch() as fake:
            session = p4r.Entity()
            session.packet_replication_engine_entry.clone_session_entry.session_id = 5
            entry = p4r.Entity()
            entry.table_entry.table_id = 0x02ABCDEF
            users = [multicast_group(MAX_TREE_ID + 1), multicast_group(32767), session, entry]
            config = make_config(tmp_path, fake, reconnect_grace_s=60.0)
            async with serving(config) as server:
                workers = await join_all(server.address, 2)
                for worker in workers:
                    await worker.join_reply()
                ours = set(fake.entities)
                (placement,) = server.views.placements("s1")
                fake.entities |= {key(entity): entity for entity in users}
                fake.entities[b"group %d" % MAX_TREE_ID] = multicast_group(MAX_TREE_ID)
                del fake.entities[b"group %d" % placement.tree.tree_id]
                await server.links["s1"].repair()
                kept = {key(entity): entity for entity in users}
                assert set(fake.entities) == ours | set(kept)
                for worker in workers:
                    await worker.close()
            async with serving(config) as second:
                assert not await second.links["s1"].repair()
                await second.membership.stop_job("train", "test")
            left = {name: fake.entities[name] for name in kept}
            assert left == kept

    run(scenario())


def test_switch_that_cannot_read_groups_back(tmp_path: Path):
    async def scenario() -> None:
        async with fake_switch(can_read_groups=False) as fake:
            config = make_config(tmp_path, fake, reconnect_grace_s=60.0)
            async with serving(config) as first:
                workers = await join_all(first.address, 2)
                for worker in workers:
                    await worker.join_reply()
                    await worker.close()
                (placement,) = first.views.placements("s1")
                group = b"group %d" % placement.tree.tree_id
                assert group in fake.entities
            async with serving(config) as second:
                assert group in fake.entities
                await second.membership.stop_job("train", "test")
                assert group not in fake.entities

    run(scenario())


def test_switch_that_restarts_empty_is_repaired(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, fake):
            workers = await join_all(server.address, 2)
            for worker in workers:
                await worker.join_reply()
            expected = set(fake.entities)
            await fake.stop()
            fake.restart_empty()
            await fake.start(int(fake.address.rpartition(":")[2]))
            while set(fake.entities) != expected:
                await asyncio.sleep(0.01)
            assert fake.num_pushes == 2
            for worker in workers:
                await worker.close()

    run(scenario())


@pytest.mark.parametrize("is_running", [False, True])
def test_worker_that_joins_while_its_switch_restarts_waits_for_it(tmp_path: Path, is_running: bool):
    async def scenario() -> None:
        async with running_controller(tmp_path, no_route_s=600.0) as (server, fake):
            workers: list[FakeWorker] = []
            if is_running:
                workers = await join_all(server.address, 2)
                for worker in workers:
                    await worker.join_reply()
            link, waits = server.links["s1"], asyncio.Event()
            wait_back = link.wait_back

            async def note(timeout_s: float) -> bool:
                if not link.is_ready:
                    waits.set()
                return await wait_back(timeout_s)

            await fake.stop()
            await until(lambda: not link.is_ready)
            with patch.object(link, "wait_back", note):
                last = FakeWorker(server.address, 2, 3, is_joining=is_running)
                joining = [await last.join()]
                if not is_running:
                    joining += [await FakeWorker(server.address, i, 3).join() for i in range(2)]
                await waits.wait()
                fake.restart_empty()
                await fake.start(int(fake.address.rpartition(":")[2]))
                for worker in joining:
                    assert (await worker.join_reply()).view.num_workers == 3
            for worker in (*workers, *joining):
                await worker.close()

    run(scenario())


def test_worker_whose_switch_does_not_come_back_is_refused(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path, no_route_s=0.2) as (server, fake):
            await fake.stop()
            await until(lambda: not server.links["s1"].is_ready)
            worker = await FakeWorker(server.address, 0, 1).join()
            code, text = await worker.refusal()
            assert code is grpc.StatusCode.UNAVAILABLE
            assert "switch s1" in text
            assert "is not reachable" in text
            await worker.close()

    run(scenario())


def test_switch_second_controller_is_backup_until_the_first_stops(tmp_path: Path):
    async def scenario() -> None:
        (tmp_path / "second").mkdir()
        async with fake_switch() as fake:
            low = make_config(tmp_path / "second", fake, election_id=5)
            first = serving(make_config(tmp_path, fake))
            await first.__aenter__()
            async with serving(low) as second:
                link = second.links["s1"]
                assert link.state is LinkState.BACKUP
                assert "is primary on switch s1" in str(link.error)
                await first.__aexit__(None, None, None)
                while second.links["s1"].state is not LinkState.READY:
                    await asyncio.sleep(0.01)

    run(scenario())


def test_switch_that_a_higher_controller_took_is_not_called_unreachable(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    async def scenario() -> None:
        (tmp_path / "second").mkdir()
        async with fake_switch() as fake, serving(make_config(tmp_path, fake)) as first:
            link = first.links["s1"]
            higher = make_config(tmp_path / "second", fake, election_id=50)
            async with serving(higher) as second:
                assert second.links["s1"].is_ready
                await until(lambda: link.state is LinkState.BACKUP)
                assert "(election id 50) is primary on switch s1" in str(link.error)
        assert "(election id 50) is primary on switch s1" in caplog.text
        assert "not reachable" not in caplog.text

    run(scenario())


def test_switch_answers_arp(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, fake):
            service = "0a00fffe"
            request = bytes.fromhex(
                "ffffffffffff 020000000001 0806 0001 0800 06 04 0001"
                f"020000000001 0a000001 000000000000 {service}"
            )
            metadata = [
                p4r.PacketMetadata(metadata_id=1, value=b"\x03"),
                p4r.PacketMetadata(metadata_id=2, value=b"\x00"),
            ]
            answered = asyncio.create_task(fake.packet_outs.get())
            while not answered.done():
                fake.send_packet_in(p4r.PacketIn(payload=b"not arp", metadata=metadata))
                fake.send_packet_in(p4r.PacketIn(payload=request, metadata=metadata))
                await asyncio.sleep(0.01)
            packet = answered.result()
            assert packet.metadata[0].value == b"\x03"
            mac = server.links["s1"].config.service_mac
            assert packet.payload[6:12] == bytes.fromhex(mac.replace(":", ""))

    run(scenario())


def test_listen_address_that_is_taken(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, fake):
            (tmp_path / "second").mkdir()
            config = make_config(tmp_path / "second", fake, listen=server.address)
            with pytest.raises(ListenError, match="cannot listen at"):
                async with serving(config):
                    pass

    run(scenario())


def test_two_switches_share_no_slots(tmp_path: Path):
    async def scenario() -> None:
        async with (
            fake_switch() as one,
            fake_switch() as two,
            serving(make_config(tmp_path, one, two)) as server,
        ):
            workers = await join_all(server.address, 1, slots_wanted=1024)
            fields = {"switch_name": "s2", "mac": "02:00:00:00:00:99", "ingress_port": 4}
            workers += await join_all(
                server.address, 1, job_name="other", slots_wanted=1024, **fields
            )
            for worker in workers:
                await worker.join_reply()
            assert sum(two.tables().values()) == 1 + 1 + 1 + 1 + len(TREE_OUTCOMES)
            for worker in workers:
                await worker.close()

    run(scenario())


@pytest.mark.parametrize("variant", ["narrow", "wide"])
def test_entities_fit_the_compiled_program(variant: str):
    program = load_program(variant)
    workers = [
        Worker(worker_id=n, address=f"10.0.0.{n + 1}", mac=f"02:00:00:00:00:{n:02x}",
               udp_port=65535, port=511, switch="s1")
        for n in (0, 31)
    ]  # fmt: skip
    config = SwitchConfig(name="s1", address="127.0.0.1:1", hosts=HOSTS)
    (shape,) = planned_trees([config], [], workers)
    (node,) = shape.nodes
    tree = Tree(tree_id=65535, slot_count=1, nodes=(dataclasses.replace(node, slot_base=1023),))
    view = View(
        generation=2**32 - 1, job_number=1, members=tuple(workers), trees=(tree,),
        straggler=StragglerPolicy(quorum=1),
    )  # fmt: skip
    routes = routes_at(Fabric(switches={"s1": config}), "s1")
    for entity in desired_entities(routes, view.placements("s1")):
        entity.encode(program.schema)
    assert program.values_per_packet == {"narrow": 32, "wide": 352}[variant]
    for counter in ("outcomes", "ordinary_outcomes", "port_in", "port_out"):
        assert program.schema.counters[counter]
    assert program.schema.tables["outcome"].direct_counter is not None
    packet_out = program.schema.controller_packet_metadata["packet_out"]
    assert [field.name for field in packet_out.metadata] == ["egress_port", "_pad"]
