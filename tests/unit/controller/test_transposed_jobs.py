# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs with a root on each worker's host: their trees, what workers are told, switches that go."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from controller_fixtures import fake_switch, make_config, run, serving
from fake_member import FakeMember, close_all, start_members
from fake_p4runtime import FakeP4Runtime
from fake_row_server import FakeRowServer
from switchfold.controller.config import ControllerConfig, HostConfig, SwitchConfig, load_config
from switchfold.controller.database.database import Database
from switchfold.controller.database.maintenance import migrate_database
from switchfold.controller.database.schema import SCHEMA_VERSION
from switchfold.controller.database.view_record import dump_view, load_view
from switchfold.controller.errors import ConfigError, DatabaseError, NoRoomError, NoTreeError
from switchfold.controller.fabric.fabric import Fabric
from switchfold.controller.fabric.trees.frame_cost import Traffic
from switchfold.controller.fabric.trees.transposed import plan_transposed
from switchfold.controller.jobs.job import Job, PathChoice, Worker
from switchfold.controller.jobs.job_request import JobRequest
from switchfold.controller.server import ControllerServer
from switchfold.controller.views.row_places import TRANSPOSED_HAS_NO_ROWS
from switchfold.controller.views.views import Views
from switchfold.hostlib.control.session_api import session_pb2 as pb
from switchfold.hostlib.slots.wire import NUM_SLOTS, UDP_PORT
from time_bound import until

TRAFFIC = Traffic(tensor_bytes=1 << 20, values_per_packet=352)
MBIT = 1_000_000
NUM_HOSTS = 4


def adder(number: int, address: str = "127.0.0.1:1", **changes: Any) -> SwitchConfig:
    """Return softswitch on host h<number>, which has all hosts at its port `number`."""
    hosts = tuple(
        HostConfig(
            name=f"h{n}",
            port=number,
            address=f"10.0.0.{n}",
            mac=f"02:00:00:00:0a:{number:02x}",
            rate_bits_per_s=100 * MBIT,
        )
        for n in range(1, NUM_HOSTS + 1)
    )
    fields: dict[str, Any] = {
        "name": f"on-h{number}",
        "address": address,
        "on_host": f"h{number}",
        "service_address": f"10.9.0.{number}",
        "hosts": hosts,
    }
    return SwitchConfig(**(fields | changes))


def workers(count: int) -> list[Worker]:
    """Return workers on the first hosts, which joined by the first switch."""
    return [
        Worker(
            worker_id=n,
            address=f"10.0.0.{n + 1}",
            mac="02:00:00:00:0a:01",
            udp_port=5000 + n,
            port=1,
            switch="on-h1",
            peer_port=7000,
        )
        for n in range(count)
    ]


def config_of(*switches: SwitchConfig, **options: Any) -> ControllerConfig:
    return ControllerConfig(switches=switches, **options)


EVERY = config_of(*(adder(n) for n in range(1, NUM_HOSTS + 1)))


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "state.sqlite3")
    yield database
    database.close()


def started(database: Database, **options: Any) -> Job:
    return database.create_job(
        JobRequest(name="train", num_workers=3, path=PathChoice.TRANSPOSED, **options)
    )


def test_each_host_with_a_worker_is_the_root_of_an_equal_part() -> None:
    plan = plan_transposed(Fabric.of(EVERY), workers(3), TRAFFIC)
    assert [tree.switches for tree in plan.trees] == [("on-h1",), ("on-h2",), ("on-h3",)]
    assert [tree.share for tree in plan.trees] == pytest.approx([1 / 3] * 3)
    for number, tree in enumerate(plan.trees, 1):
        assert [(c.worker_id, c.port) for c in tree.root.children] == [
            (0, number), (1, number), (2, number),
        ]  # fmt: skip
    # Each root's port carries a third of the tensor of each of three workers.
    assert plan.lower_bound_s == pytest.approx(8 * TRAFFIC.link_bytes / (100 * MBIT))


def test_shares_follow_the_rates_of_hosts() -> None:
    fast, slow = adder(1), adder(2)
    slow = dataclasses.replace(
        slow, hosts=tuple(dataclasses.replace(h, rate_bits_per_s=50 * MBIT) for h in slow.hosts)
    )
    plan = plan_transposed(Fabric.of(config_of(slow, fast)), workers(2), TRAFFIC)
    assert [tree.share for tree in plan.trees] == pytest.approx([2 / 3, 1 / 3])
    assert [tree.root.switch for tree in plan.trees] == ["on-h1", "on-h2"]


def test_switch_that_is_away_is_no_root() -> None:
    fabric = Fabric.of(EVERY).without(switches={"on-h2"})
    plan = plan_transposed(fabric, workers(3), TRAFFIC)
    assert [tree.root.switch for tree in plan.trees] == ["on-h1", "on-h3"]


def test_refusal_says_what_each_switch_lacks() -> None:
    config = config_of(
        adder(1, hosts=adder(1).hosts[:2]),
        adder(2, on_host=""),
        adder(3, aggregates=False),
        adder(4),
        adder(2, name="second"),
    )
    fabric = Fabric.of(config).without(switches={"second"})
    with pytest.raises(NoTreeError) as caught:
        plan_transposed(fabric, workers(3), TRAFFIC)
    for words in (
        "on-h1 does not have worker 2 (10.0.0.3)",
        "on-h2 runs on no host",
        "on-h3 does not aggregate",
        "on-h4 runs on h4, which has no worker",
        "second is down or to be avoided",
        "on_host in the controller's file",
    ):
        assert words in str(caught.value)
    assert caught.value.workers == (0, 1, 2)


def test_views_bind_workers_to_port_and_address_at_each_switch(database: Database) -> None:
    views = Views(EVERY, database, {})
    view = views.plan(started(database, slots_wanted=32), workers(3))
    assert view.is_transposed
    assert [tree.slot_count for tree in view.trees] == [11, 11, 10]
    for number, tree in enumerate(view.trees, 1):
        (node,) = tree.nodes
        for worker, child in zip(workers(3), node.children, strict=True):
            assert (child.worker_id, child.child_id) == (worker.worker_id, worker.worker_id)
            assert (child.address, child.udp_port) == (worker.address, worker.udp_port)
            assert (child.port, child.mac) == (number, f"02:00:00:00:0a:{number:02x}")
    assert load_view(dump_view(view)) == view


def test_without_room_it_is_refused_and_not_moved_to_the_hosts(database: Database) -> None:
    views = Views(EVERY, database, {})
    other = database.create_job(JobRequest(name="other", num_workers=3, slots_wanted=NUM_SLOTS))
    at_second = [dataclasses.replace(w, switch="on-h2", port=2) for w in workers(3)]
    views.plan(other, at_second)
    view = views.plan(started(database), workers(3))
    assert [tree.root.switch for tree in view.trees] == ["on-h1", "on-h3"], "on-h2 is full"
    with pytest.raises(NoRoomError, match="wants 9999 slots"):
        views.plan(
            database.create_job(
                JobRequest(
                    name="wide", num_workers=3, path=PathChoice.TRANSPOSED, slots_wanted=9999
                )
            ),
            workers(3),
        )


def test_earlier_schema_takes_no_live_transposed_job(tmp_path: Path) -> None:
    where = tmp_path / "state.sqlite3"
    database = Database(where)
    job = started(database)
    database.close()
    with pytest.raises(DatabaseError, match=r"7 knows no jobs that are transposed.*'train'"):
        migrate_database(where, 7)
    database = Database(where)
    assert database.job(job.job_number).path is PathChoice.TRANSPOSED
    database.end_job(job.job_number, "completed")
    database.close()
    assert migrate_database(where, 7) == SCHEMA_VERSION
    database = Database(where)
    assert database.job(job.job_number).path is PathChoice.SWITCH, "all that version 7 knows"
    database.close()


def test_on_host_must_be_one_of_the_hosts(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="on_host is 'h9', which is none of its hosts"):
        adder(1, on_host="h9")
    file = tmp_path / "controller.toml"
    file.write_text(
        'insecure = true\n[[switch]]\nname = "a"\naddress = "127.0.0.1:1"\non_host = "h1"\n'
        '[[switch.host]]\nname = "h1"\nport = 1\naddress = "10.0.0.1"\nmac = "02:00:00:00:00:01"\n',
        encoding="utf-8",
    )
    assert load_config(file).switches[0].on_host == "h1"


@asynccontextmanager
async def running(
    folder: Path, **options: Any
) -> AsyncGenerator[tuple[ControllerServer, list[FakeP4Runtime]]]:
    """Run a controller over softswitch on three hosts."""
    async with AsyncExitStack() as stack:
        fakes = [await stack.enter_async_context(fake_switch()) for _ in range(3)]
        config = dataclasses.replace(
            make_config(folder, *fakes, **options),
            switches=tuple(adder(n, fake.address) for n, fake in enumerate(fakes, 1)),
        )
        yield await stack.enter_async_context(serving(config)), fakes


def roots_of(view: pb.View) -> list[str]:
    """Return where a worker sends contributions to, by tree."""
    assert {tree.switch_udp_port for tree in view.trees} <= {UDP_PORT}
    return [tree.switch_address for tree in view.trees]


async def report(member: FakeMember, *, silent: str = "", missing: tuple[int, ...] = ()) -> None:
    """Report no progress; `silent`: the root that answers nothing."""
    view = member.view
    tree_id = next((t.tree_id for t in view.trees if t.switch_address == silent), 0)
    stalled = pb.Stalled(
        generation=view.generation,
        missing_workers=missing,
        silent_s=3.0 if silent else 0.0,
        silent_tree=tree_id,
    )
    await member.send(stalled=stalled)


def test_workers_are_told_the_root_of_each_tree(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as (server, fakes):
            members = await start_members(server.address, 3, path=pb.TRANSPOSED)
            for member in members:
                view = member.view
                assert roots_of(view) == ["10.9.0.1", "10.9.0.2", "10.9.0.3"]
                assert view.switch_address == "10.9.0.1"
                assert not view.is_on_host, "it is one of several"
                assert list(view.neighbours) == [0, 1, 2]
                worker_id = member.join_request.worker_id
                assert (view.child_id, view.worker_bitmap) == (worker_id, 1 << worker_id)
                assert {(t.members, t.level) for t in view.trees} == {(0b111, 0)}
            held = [fake.tables() for fake in fakes]
            assert held[0] == held[1] == held[2] != {}
            await close_all(*members)

    run(scenario())


def test_job_goes_on_over_the_other_hosts_while_a_switch_is_gone(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, switch_gone_s=0.1) as (server, fakes):
            members = await start_members(server.address, 3, path=pb.TRANSPOSED, min_workers=3)
            await fakes[0].stop()  # that by which the workers joined
            for member in members:
                await member.until(lambda member=member: member.commits)
                assert roots_of(member.view) == ["10.9.0.2", "10.9.0.3"]
                assert "on-h1" in member.proposals[0].reason
                assert member.members == [0, 1, 2]
            fakes[0].restart_empty()
            await fakes[0].start(int(fakes[0].address.rsplit(":", 1)[1]))
            for member in members:
                await member.until(lambda member=member: len(member.view.trees) == 3)
            await close_all(*members)

    run(scenario())


def test_root_that_answers_nobody_is_left(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as (server, _):
            members = await start_members(server.address, 3, path=pb.TRANSPOSED, min_workers=3)
            # Who has the next view has progress: reports of all would be a reason for another.
            while stuck := [member for member in members if not member.commits]:
                for member in stuck:
                    if not member.commits:
                        await report(member, silent="10.9.0.2")
                await asyncio.sleep(0.1)
            for member in members:
                assert roots_of(member.view) == ["10.9.0.1", "10.9.0.3"]
                assert "switch on-h2 answers no worker" in member.proposals[0].reason
            await close_all(*members)

    run(scenario())


def test_host_that_is_cut_off_is_found_though_it_reaches_the_switch_on_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as (server, _):
            *others, cut = members = await start_members(server.address, 3, path=pb.TRANSPOSED)
            while stuck := [member for member in members if not member.commits]:
                for member in stuck:
                    if not member.commits:
                        await report(member, silent="10.9.0.1" if member is cut else "10.9.0.3")
                await asyncio.sleep(0.1)
            assert roots_of(cut.view) == ["10.9.0.1", "10.9.0.2"]
            while not cut.ended:
                await report(cut, silent="10.9.0.1")
                for member in others:
                    await report(member, missing=(2,))
                await asyncio.sleep(0.1)
            for words in ("switch on-h1 answers other workers", "port 1", "h3 (10.0.0.3)"):
                assert words in cut.ended
            for member in others:
                await member.until_members(0, 1)
                assert roots_of(member.view) == ["10.9.0.1", "10.9.0.2"]
            await close_all(*members)

    run(scenario())


def test_row_server_is_refused_once_the_job_is_known(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as (server, _):
            first = await FakeMember(server.address, 0, 2, path=pb.TRANSPOSED).join()
            await until(lambda: server.membership.live_job("train") is not None)
            for _ in range(2):  # while it waits, and while it runs
                rows = await FakeRowServer(server.address, address="10.0.0.3").attach()
                code, text = await rows.refusal()
                assert code is grpc.StatusCode.INVALID_ARGUMENT
                assert "row server 0 at 10.0.0.3, job 'train': the job is transposed" in text
                assert "path 'auto' or 'switch', or do without hot rows" in text
                await rows.close()
                if first.reply is None:
                    second = await FakeMember(server.address, 1, 2, path=pb.TRANSPOSED).join()
                    await second.until_members(0, 1)
                    await first.until_members(0, 1)
            await close_all(first, second)

    run(scenario())


def test_row_server_that_came_first_gets_no_rows_and_is_told_why(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as (server, _):
            rows = await FakeRowServer(server.address, address="10.0.0.3").attach()
            assert (await rows.view()).reason == "the job does not run yet"
            members = await start_members(server.address, 3, path=pb.TRANSPOSED)
            view = await rows.view()
            assert (view.num_rows, view.reason) == (0, TRANSPOSED_HAS_NO_ROWS)
            await rows.close()
            await close_all(*members)

    run(scenario())


def test_job_without_such_a_switch_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as (server, _):
            at_fourth = {"address": "10.0.0.4"}  # a host without a switch
            member = await FakeMember(server.address, 0, 1, path=pb.TRANSPOSED, **at_fourth).join()
            await member.until(lambda: member.ended)
            assert str(grpc.StatusCode.RESOURCE_EXHAUSTED) in member.ended
            assert "on-h1 runs on h1, which has no worker" in member.ended
            await close_all(member)

    run(scenario())
