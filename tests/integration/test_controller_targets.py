# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The controller on real switch targets: tables, repair, and its own end while a job runs."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import numpy as np
import pytest
from finsy import Switch, SwitchOptions
from finsy.proto import U128, p4r, rpc_code

from controller_fixtures import HOSTS, FakeWorker, join_all, resume_all, run, serving
from p4runtime_fixtures import BareClient, delete, insert
from switch_process import (
    DEADLINE_S,
    softswitch_command,
    switch_command,
    target,
)
from switchfold.bmv2_topos.processes.daemons import program_files
from switchfold.bmv2_topos.processes.free_ports import free_port
from switchfold.controller.config import ControllerConfig, SwitchConfig
from switchfold.controller.database.database import MAX_TREE_ID
from switchfold.controller.errors import NotLeaderError, SwitchError
from switchfold.controller.server import ControllerServer
from switchfold.controller.switches.reconcile import Changes
from switchfold.controller.switches.switch_session import LinkState
from switchfold.controller.tables.outcome import Count
from switchfold.hostlib.control.session_api import session_pb2 as pb
from switchfold.hostlib.slots import wire
from switchfold.hostlib.slots.wire import Flag, Operation, Outcome
from time_bound import until


def make_config(folder: Path, address: str, listen: str = "127.0.0.1:0") -> ControllerConfig:
    return ControllerConfig(
        switches=(SwitchConfig(name="s1", address=address, hosts=HOSTS),),
        insecure=True,
        listen=listen,
        database=folder / "controller.sqlite3",
        # No worker is evicted because a process starts slowly or this one stands still.
        lease_s=60.0,
        resume_grace_s=120.0,
        connect_timeout_s=DEADLINE_S,
        switch_gone_s=600.0,
    )


async def leave_all(workers: list[FakeWorker]) -> None:
    for worker in workers:
        await worker.send(leave=pb.Leave())
        assert await worker.is_at_end()
        await worker.close()


@pytest.mark.parametrize("name", [pytest.param("bmv2", marks=pytest.mark.bmv2), "softswitch"])
def test_target_job_from_start_to_end(tmp_path: Path, name: str):
    async def scenario() -> None:
        address = f"127.0.0.1:{free_port()}"
        command = switch_command(name, address)
        async with target(command, address):
            config = make_config(tmp_path, address)
            async with serving(config) as first:
                workers = await join_all(first.address, 4)
                join_replies = [await worker.join_reply() for worker in workers]
                join_reply = join_replies[0]
                assert not await first.links["s1"].apply(), "what was written reads back the same"
                counts = await first.links["s1"].read_tree_counts(join_reply.view.trees[0].tree_id)
                assert set(counts.values()) == {Count(0, 0)}
                assert await first.links["s1"].read_port_counts()
            for worker in workers:
                await worker.close()
            async with serving(config) as second:
                assert not await second.links["s1"].apply(), "the entries outlived the controller"
                workers = await resume_all(second.address, join_replies)
                for worker, before in zip(workers, join_replies, strict=True):
                    assert (await worker.join_reply()).view == before.view
                await leave_all(workers)
                assert not await _repaired_after_the_job(second)
                again = await join_all(second.address, 2, job_name="next")
                for worker in again:
                    assert (await worker.join_reply()).view.generation > join_reply.view.generation
                await leave_all(again)

    run(scenario())


async def _repaired_after_the_job(server: ControllerServer) -> Changes:
    """Return what a repair finds to write once the job has been taken from the switch."""
    await until(lambda: server.membership.live_job("train") is None)
    await server.membership.settled()  # a job that ends is no longer live, but still on the switch
    return await server.links["s1"].apply()


@pytest.mark.parametrize("name", [pytest.param("bmv2", marks=pytest.mark.bmv2), "softswitch"])
def test_target_restarted_while_a_job_runs_is_repaired(tmp_path: Path, name: str):
    async def scenario() -> None:
        address = f"127.0.0.1:{free_port()}"
        command = switch_command(name, address)
        async with target(command, address):
            server = ControllerServer(make_config(tmp_path, address))
            context = server.serve()
            await context.__aenter__()
            workers = await join_all(server.address, 2)
            for worker in workers:
                await worker.join_reply()
        link = server.links["s1"]
        report_lost, lost = link.on_lost_state, []
        link.on_lost_state = lost.append  # the job's next view would write to the switch meanwhile
        await until(lambda: link.state is not LinkState.READY)  # before there is another to find
        async with target(command, address), asyncio.timeout(DEADLINE_S):
            await until(lambda: link.state is LinkState.READY)
            assert not await link.apply()
            (placement,) = server.views.placements("s1")
            counts = await link.read_tree_counts(placement.tree.tree_id)
            assert counts[Outcome.ABSORBED] == Count(0, 0)
            assert lost == [{placement.tree.tree_id}]
            assert report_lost is not None
            report_lost(lost[0])
            live = server.membership.live_job("train")
            assert live is not None
            await until(
                lambda: (
                    live.change is None
                    and live.view is not None
                    and live.view.generation > placement.view.generation
                )
            )
            await leave_all(workers)
            await context.__aexit__(None, None, None)

    run(scenario())


def multicast_group(number: int) -> p4r.PacketReplicationEngineEntry:
    entry = p4r.PacketReplicationEngineEntry()
    entry.multicast_group_entry.multicast_group_id = number
    if number:
        entry.multicast_group_entry.replicas.add(egress_port=1, instance=1)
    return entry


def clone_session(number: int) -> p4r.PacketReplicationEngineEntry:
    entry = p4r.PacketReplicationEngineEntry()
    entry.clone_session_entry.session_id = number
    if number:
        entry.clone_session_entry.replicas.add(egress_port=2, instance=1)
    return entry


def read_all(client: BareClient, query: p4r.PacketReplicationEngineEntry) -> list[p4r.Entity]:
    entity = p4r.Entity(packet_replication_engine_entry=query)
    answers = client.stub.Read(p4r.ReadRequest(device_id=1, entities=[entity]))
    return [found for answer in answers for found in answer.entities]


@pytest.mark.parametrize("name", [pytest.param("bmv2", marks=pytest.mark.bmv2), "softswitch"])
def test_target_keeps_what_another_client_has_written_in_the_users_range(tmp_path: Path, name: str):
    """Its groups and clone sessions outlive repairs, a new controller, and its own end.

    On softswitch it has a role of its own, beside the controller. BMv2 knows one primary, so there
    it takes the switch over for a moment.
    """
    users_group, others_group = MAX_TREE_ID + 1, MAX_TREE_ID
    role = "users" if name == "softswitch" else ""

    def write(address: str, tree_id: int) -> None:
        with BareClient(int(address.rpartition(":")[2])) as client:
            client.arbitrate(500, role=role, device_id=1)
            assert client.status() == rpc_code.OK
            client.stub.Write(
                p4r.WriteRequest(
                    device_id=1,
                    role=role,
                    election_id=U128.encode(500),
                    updates=[
                        delete(multicast_group(tree_id)),
                        insert(multicast_group(users_group)),
                        insert(multicast_group(others_group)),
                        insert(clone_session(9)),
                    ],
                )
            )

    def groups(address: str) -> set[int]:
        with BareClient(int(address.rpartition(":")[2])) as client:
            if name == "softswitch":  # BMv2 cannot read clone sessions
                (found,) = read_all(client, clone_session(0))
                session = found.packet_replication_engine_entry.clone_session_entry
                assert session.session_id == 9
            return {
                found.packet_replication_engine_entry.multicast_group_entry.multicast_group_id
                for found in read_all(client, multicast_group(0))
            }

    async def scenario() -> None:
        address = f"127.0.0.1:{free_port()}"
        config = make_config(tmp_path, address)
        async with target(switch_command(name, address), address):
            async with serving(config) as server:
                link = server.links["s1"]
                workers = await join_all(server.address, 2)
                for worker in workers:
                    await worker.join_reply()
                (placement,) = server.views.placements("s1")
                await asyncio.to_thread(write, address, placement.tree.tree_id)
                if name == "softswitch":
                    await link.repair()
                kept = {users_group, placement.tree.tree_id}
                async with asyncio.timeout(DEADLINE_S):  # ours is back, the other's gone
                    while await asyncio.to_thread(groups, address) != kept:
                        await asyncio.sleep(0.1)
                await until(lambda: link.state is LinkState.READY)
                assert not await link.repair(), "our own entries are all there"
                await leave_all(workers)
            async with serving(config) as second:
                assert not await second.links["s1"].repair()
                assert users_group in await asyncio.to_thread(groups, address)

    run(scenario())


def test_switch_without_a_primary_is_not_taken_by_another_ones_id(tmp_path: Path):
    """A controller that may have been replaced stays a backup, until it may begin a new term.

    BMv2 forgets the ids of clients that have gone, and makes the highest of the others primary.
    """

    async def scenario() -> None:
        address = f"127.0.0.1:{free_port()}"
        async with (
            target(softswitch_command(address), address),
            serving(make_config(tmp_path, address)) as server,
        ):
            link, leader = server.links["s1"], server.leader
            assert leader.term == 10
            outbid = leader.outbid

            async def refuse(election_id: int) -> None:
                raise NotLeaderError(f"no term above {election_id}: another one leads")

            leader.outbid = refuse
            p4info = program_files("narrow")[1]
            options = SwitchOptions(p4info=p4info, initial_election_id=500)
            async with Switch("foreign", address, options) as foreign:
                assert foreign.is_primary
                await until(lambda: link.state is LinkState.BACKUP)
            refusal = "wants an election id above 500: no term above 500"
            await until(lambda: refusal in str(link.error))
            with pytest.raises(SwitchError):
                await link.apply()
            leader.outbid = outbid
            await until(lambda: link.state is LinkState.READY)
            assert leader.term == 501

    run(scenario())


class UdpPort:
    """A host behind a softswitch port that carries frames in UDP datagrams."""

    def __init__(self, worker_id: int) -> None:
        self._sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._sock.bind(("127.0.0.1", 0))
        self._sock.settimeout(60)
        self._worker_id = worker_id
        self._peer = ("127.0.0.1", free_port(socket.SOCK_DGRAM))
        local = self._sock.getsockname()
        self.spec = f"{worker_id + 1}=udp:127.0.0.1:{self._peer[1]}-127.0.0.1:{local[1]}"

    def contribute(self, join_reply: pb.JoinReply, number: int, values: np.ndarray) -> None:
        """Send one chunk of round `number` of slot 0."""
        datagram = np.zeros((), wire.datagram_dtype(join_reply.values_per_packet))
        header = datagram["header"]
        header["version"] = join_reply.wire_version
        header["operation"] = Operation.AGGREGATE_ADD
        header["flags"] = Flag.LAST
        view = join_reply.view
        header["job_id"], header["generation"] = view.trees[0].tree_id, view.generation
        header["worker_id"], header["worker_bitmap"] = self._worker_id, 1 << self._worker_id
        header["round"], header["num_contributors"] = number, 1
        header["range_end"] = join_reply.values_per_packet
        datagram["values"] = values
        payload = datagram.tobytes()
        host = HOSTS[self._worker_id]
        frame = bytes.fromhex((view.switch_mac + host.mac).replace(":", "")) + b"\x08\x00"
        ip = bytearray.fromhex("4500 0000 0000 4000 4011 0000")
        ip[2:4] = (28 + len(payload)).to_bytes(2, "big")
        ip += socket.inet_aton(host.address) + socket.inet_aton(view.switch_address)
        total = sum(int.from_bytes(ip[i : i + 2], "big") for i in range(0, 20, 2))
        ip[10:12] = (0xFFFF - (total & 0xFFFF) - (total >> 16)).to_bytes(2, "big")
        ports = (5000 + self._worker_id, view.switch_udp_port, 8 + len(payload), 0)
        udp = b"".join(field.to_bytes(2, "big") for field in ports)
        self._sock.sendto(frame + ip + udp + payload, self._peer)

    def result(self, join_reply: pb.JoinReply) -> np.ndarray:
        """Return the values of the next result."""
        frame = self._sock.recv(4096)
        datagram = np.frombuffer(frame[42:], wire.datagram_dtype(join_reply.values_per_packet))[0]
        assert datagram["header"]["operation"] == Operation.RESULT
        return datagram["values"].astype(np.int32)

    def close(self) -> None:
        self._sock.close()


@asynccontextmanager
async def _udp_ports(number: int) -> AsyncGenerator[list[UdpPort]]:
    ports = [UdpPort(worker_id) for worker_id in range(number)]
    try:
        yield ports
    finally:
        for port in ports:
            port.close()


def _softswitch(
    address: str, ports: list[UdpPort]
) -> AbstractAsyncContextManager[asyncio.subprocess.Process]:
    return target(softswitch_command(address, tuple(port.spec for port in ports)), address)


def test_target_sums_while_the_controller_is_dead(tmp_path: Path):
    """Workers' sums go on without a controller; the next controller shows what was counted."""

    async def scenario() -> None:
        address, listen = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
        async with _udp_ports(3) as ports, _softswitch(address, ports):
            config_file = tmp_path / "controller.toml"
            config_file.write_text(_toml(tmp_path, address, listen), "utf-8")
            first = await _start_controller(config_file)
            workers = await join_all(listen, 3)
            join_replies = [await worker.join_reply() for worker in workers]
            join_reply = join_replies[0]
            _sum_round(ports, join_reply, 1)
            first.kill()
            await first.wait()
            _sum_round(ports, join_reply, 2)
            for worker in workers:
                await worker.close()
            second = await _start_controller(config_file)
            workers = await resume_all(listen, join_replies)
            for worker, before in zip(workers, join_replies, strict=True):
                assert (await worker.join_reply()).view == before.view
            _sum_round(ports, join_reply, 3)
            await leave_all(workers)
            second.terminate()
            assert await second.wait() == 0
            async with serving(make_config(tmp_path, address)) as third:
                counts = await third.links["s1"].read_switch_counts()
                assert counts[Outcome.ABSORBED].packets == 6
                assert counts[Outcome.COMPLETED].packets == 3

    run(scenario())


def _sum_round(ports: list[UdpPort], join_reply: pb.JoinReply, number: int) -> None:
    values = [np.arange(32, dtype=np.int32) * (number + index) for index in range(len(ports))]
    for port, contribution in zip(ports, values, strict=True):
        port.contribute(join_reply, number, contribution)
    for port in ports:
        np.testing.assert_array_equal(port.result(join_reply), sum(values))


def _toml(folder: Path, address: str, listen: str) -> str:
    lines = [f'listen = "{listen}"', f'database = "{folder / "controller.sqlite3"}"']
    lines += ["lease_s = 60.0", "resume_grace_s = 120.0"]
    lines += ["[[switch]]", 'name = "s1"', f'address = "{address}"']
    for host in HOSTS:
        lines += ["[[switch.host]]", f'name = "{host.name}"', f"port = {host.port}"]
        lines += [f'address = "{host.address}"', f'mac = "{host.mac}"']
    return "\n".join(lines)


async def _start_controller(config: Path) -> asyncio.subprocess.Process:
    reader, writer = os.pipe()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "switchfold.controller", "controller", "run",
        "--config", str(config), "--insecure", "--ready-fd", str(writer),
        pass_fds=(writer,), stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    os.close(writer)
    with open(reader, "rb") as ready:
        assert await asyncio.to_thread(ready.readline) == b"ready\n"
    return process
