# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Hot rows from the controller to the packets: a row server's link, a controller, real switches."""

from __future__ import annotations

import asyncio
import queue
import socket
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from finsy import P4TableEntry
from numpy.typing import NDArray

from cabled_host import CabledHost, row_packet
from controller_fixtures import HOSTS, FakeWorker, resume_of, run, serving
from switch_process import DEADLINE_S, softswitch_command, switch_command, target
from switchfold.bmv2_topos.processes.free_ports import free_port
from switchfold.controller.config import ControllerConfig, LinkConfig, SwitchConfig
from switchfold.controller.server import ControllerServer
from switchfold.controller.switches.switch_read import read_entities
from switchfold.controller.tables.hot_row import TABLE, RowKey, RowPlace, read_row
from switchfold.hostlib.control.row_server_link import (
    ROW_DTYPE,
    RowServerLink,
    RowServerRequest,
    RowView,
)
from switchfold.hostlib.control.session_api import session_pb2 as pb
from switchfold.hostlib.control.view import Endpoint
from switchfold.hostlib.errors import HostlibError
from switchfold.hostlib.slots.wire import Flag, Operation

NARROW = 32
_T = TypeVar("_T")


class Link:
    """A row server's link whose callbacks are queues."""

    def __init__(self, controller: str, host: CabledHost, server_id: int) -> None:
        self.views: queue.SimpleQueue[RowView] = queue.SimpleQueue()
        self.installed: queue.SimpleQueue[tuple[int, int]] = queue.SimpleQueue()
        self.downs: list[HostlibError] = []
        request = RowServerRequest(
            job="train",
            server_id=server_id,
            identity=bytes([server_id]) * 16,
            local=Endpoint(address=host.host.address, udp_port=host.udp_port),
            rows_wanted=8,
        )
        self.link = RowServerLink(
            controller,
            request,
            on_view=self.views.put,
            on_installed=lambda generation, number: self.installed.put((generation, number)),
            on_down=self.downs.append,
        )
        self.link.start()

    async def until_view(self, is_so: Callable[[RowView], object]) -> RowView:
        """Return the next view of which something holds."""
        while not is_so(view := await in_thread(self.views)):
            pass
        return view

    async def set_rows(self, view: RowView, number: int, *rows: tuple[int, int, int]) -> None:
        """Set rows and wait until they are installed."""
        self.link.set_rows(view.generation, number, np.array(list(rows), ROW_DTYPE))
        while await in_thread(self.installed) != (view.generation, number):
            pass


async def in_thread(source: queue.SimpleQueue[_T]) -> _T:
    return await asyncio.to_thread(source.get, timeout=DEADLINE_S)


class Site:
    """Two workers and two places for servers, at one switch or at two."""

    def __init__(self, folder: Path, num_switches: int) -> None:
        self.listen = f"127.0.0.1:{free_port()}"
        self.addresses = [f"127.0.0.1:{free_port()}" for _ in range(num_switches)]
        self.hosts = [CabledHost(host, 5000 + n) for n, host in enumerate(HOSTS)]
        self.cables = [free_port(socket.SOCK_DGRAM) for _ in range(2)]
        last = num_switches - 1
        # Worker 1 is at the last switch; the others, and the servers, at the first.
        at = [[host for n, host in enumerate(HOSTS) if n != 1 or last == 0], HOSTS[1:2]]
        self.config = ControllerConfig(
            insecure=True,
            switches=tuple(
                SwitchConfig(
                    name=f"s{n + 1}",
                    address=address,
                    service_address=f"10.0.255.{n + 1}",
                    service_mac=f"02:53:46:00:00:{n + 1:02x}",
                    hosts=tuple(at[n]),
                )
                for n, address in enumerate(self.addresses)
            ),
            links=(LinkConfig(a="s1", a_port=9, b="s2", b_port=9),) if last else (),
            listen=self.listen,
            database=folder / "controller.sqlite3",
            lease_s=60.0,
            resume_grace_s=120.0,
            connect_timeout_s=DEADLINE_S,
            switch_gone_s=600.0,
        )

    @asynccontextmanager
    async def switches(self) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:
            for number, switch in enumerate(self.config.switches):
                addresses = {host.address for host in switch.hosts}
                specs = [host.spec for host in self.hosts if host.host.address in addresses]
                if self.config.links:
                    here, there = self.cables[:: 1 - 2 * number]
                    specs.append(f"9=udp:127.0.0.1:{here}-127.0.0.1:{there}")
                command = softswitch_command(switch.address, tuple(specs))
                await stack.enter_async_context(target(command, switch.address))
            yield

    def send(self, view: RowView, worker_id: int, packet: NDArray[np.void]) -> None:
        """Send a worker's packet about a row."""
        (member,) = [one for one in view.members if one.worker_id == worker_id]
        header = packet["header"]
        header["job_id"], header["generation"] = view.tree_id, view.generation
        header["worker_id"], header["worker_bitmap"] = member.child_id, member.worker_bitmap
        header["num_contributors"] = 1
        (config,) = [s for s in self.config.switches if s.service_address == member.switch.address]
        switch = Endpoint(address=config.service_address, mac=config.service_mac)
        self.hosts[worker_id].send(switch, packet)

    def read(self, view: RowView, worker_id: int, row: int, **fields: int) -> NDArray[np.void]:
        """Have a worker ask for a row, and return the answer."""
        self.send(view, worker_id, row_packet(Operation.READ, NARROW, row, **fields))
        return self.hosts[worker_id].receive()


@asynccontextmanager
async def closing_hosts(site: Site) -> AsyncGenerator[None]:
    try:
        yield
    finally:
        for host in site.hosts:
            host.close()


def check_row(
    site: Site, view: RowView, server: CabledHost, row: int, epoch: int, *, number: int
) -> None:
    """Push to a row, then write its values and read them."""
    for worker in (0, 1):
        fields = {"tensor_id": epoch, "round": number, "expected": 2}
        push = row_packet(Operation.AGGREGATE_ADD, NARROW, row, 10 + worker, **fields)
        site.send(view, worker, push)
    result = server.receive()
    header = result["header"]
    assert (header["operation"], header["flags"]) == (Operation.RESULT, Flag.TO_SERVER)
    assert (header["slot_index"], header["round"]) == (row, number)
    assert (header["worker_bitmap"], header["exponent"]) == (3, 118)
    assert set(result["values"].tolist()) == {21}
    for worker in (0, 1):
        assert is_cold(site.read(view, worker, row, tensor_id=epoch, round=number))
    packet = row_packet(
        Operation.WRITE, NARROW, row, 77, job_id=view.tree_id,
        generation=view.generation, worker_id=view.worker_id, tensor_id=epoch, round=number,
    )  # fmt: skip
    server.send(view.switch, packet)
    receipt = server.receive()["header"]
    assert (receipt["operation"], receipt["round"]) == (Operation.WRITE, number)
    for worker in (0, 1):
        answer = site.read(view, worker, row, tensor_id=epoch, round=1)
        # The values are on their way to this worker's switch, which has older ones, or none.
        while is_cold(answer) or answer["header"]["round"] < number:
            answer = site.read(view, worker, row, tensor_id=epoch, round=1)
        assert answer["header"]["operation"] == Operation.READ
        assert answer["header"]["round"] == number
        assert set(answer["values"].tolist()) == {77}


def is_cold(answer: NDArray[np.void]) -> bool:
    header = answer["header"]
    return bool(header["operation"] == Operation.NOTICE and header["flags"] & Flag.COLD)


async def entries(server: ControllerServer, switch: str) -> dict[RowKey, RowPlace]:
    connected = server.links[switch]._switch  # pyright: ignore[reportPrivateUsage]
    assert connected is not None
    found = await read_entities(connected, [P4TableEntry(TABLE)])
    return dict(read_row(entry) for entry in found if not entry.is_default_action)


async def join(site: Site, ids: Sequence[int], **fields: Any) -> list[FakeWorker]:
    return [await FakeWorker(site.listen, n, 2, udp_port=5000 + n, **fields).join() for n in ids]


@pytest.mark.parametrize("num_switches", [1, 2])
def test_rows_from_the_attachment_to_the_packets(tmp_path: Path, num_switches: int):
    async def scenario() -> None:
        site = Site(tmp_path, num_switches)
        names = [switch.name for switch in site.config.switches]
        async with closing_hosts(site), site.switches():
            link = Link(site.listen, site.hosts[3], 0)
            late: Link | None = None
            try:
                async with serving(site.config) as server:
                    waiting = await link.until_view(lambda view: True)
                    assert (waiting.generation, waiting.num_rows) == (0, 0)
                    workers = await join(site, (0, 1))
                    view = await link.until_view(lambda view: view.num_rows)
                    assert [member.worker_id for member in view.members] == [0, 1]
                    await link.set_rows(view, 1, (0, 32, -10), (3, 64, -10))
                    for name in names:
                        found = await entries(server, name)
                        assert {(key.row, place.epoch) for key, place in found.items()} == {
                            (0, 32), (3, 64)
                        }  # fmt: skip
                    check_row(site, view, site.hosts[3], 0, 32, number=1)
                    check_row(site, view, site.hosts[3], 3, 64, number=1)
                    assert is_cold(site.read(view, 0, 1, tensor_id=96))
                    await link.set_rows(view, 2, (3, 64, -10))
                    for worker in (0, 1):
                        assert is_cold(site.read(view, worker, 0, tensor_id=32))
                    check_row(site, view, site.hosts[3], 3, 64, number=2)

                    late = Link(site.listen, site.hosts[2], 1)
                    theirs = await late.until_view(lambda view: view.num_rows)
                    # The same view may come again.
                    after = await link.until_view(lambda new: new.generation > view.generation)
                    assert after.generation == theirs.generation > view.generation
                    assert after.num_rows
                    assert (theirs.first_row, theirs.worker_id) == (8, 33)
                    await link.set_rows(after, 3, (1, 96, -10))
                    await late.set_rows(theirs, 1, (9, 33, -10))
                    check_row(site, after, site.hosts[3], 1, 96, number=1)
                    check_row(site, theirs, site.hosts[2], 9, 33, number=1)
                    replies = [await worker.join_reply() for worker in workers]
                    generation = after.generation
                for worker in workers:
                    await worker.close()
                check_row(site, after, site.hosts[3], 1, 96, number=2)
                async with serving(site.config) as server:
                    workers = [
                        (await join(site, (n,), resume=resume_of(reply)))[0]
                        for n, reply in enumerate(replies)
                    ]
                    again = await link.until_view(lambda view: True)
                    assert again.generation == generation
                    while await in_thread(link.installed) != (generation, 3):
                        pass
                    while await in_thread(late.installed) != (generation, 1):
                        pass
                    check_row(site, after, site.hosts[3], 1, 96, number=3)
                    check_row(site, theirs, site.hosts[2], 9, 33, number=2)
                    for worker in workers:
                        await worker.send(leave=pb.Leave())
                        while not await worker.is_at_end():
                            pass
                        await worker.close()
                    over = await link.until_view(lambda view: not view.generation)
                    assert "the job has ended: completed" in over.reason
                    await server.membership.settled()
                    for name in names:
                        assert not await entries(server, name)
            finally:
                for one in (link, late):
                    if one is not None:
                        await asyncio.to_thread(one.link.close)
                        assert not one.downs

    run(scenario())


@pytest.mark.parametrize("name", [pytest.param("bmv2", marks=pytest.mark.bmv2), "softswitch"])
def test_target_holds_the_rows_that_were_set(tmp_path: Path, name: str):
    async def scenario() -> None:
        site = Site(tmp_path, 1)
        (address,) = site.addresses
        async with (
            closing_hosts(site),
            target(switch_command(name, address), address),
            serving(site.config) as server,
        ):
            link = Link(site.listen, site.hosts[3], 0)
            workers = await join(site, (0, 1))
            view = await link.until_view(lambda view: view.num_rows)
            rows = [(row, 32 * (row + 1), row - 4) for row in range(8)]
            await link.set_rows(view, 1, *rows)
            assert not await server.links["s1"].repair(), "what was written reads back the same"
            found = await entries(server, "s1")
            assert {
                (key.row, place.epoch, place.exponent - 128) for key, place in found.items()
            } == {*rows}
            await link.set_rows(view, 2, (5, 3200, 7))
            assert [key.row for key in await entries(server, "s1")] == [5]
            for worker in workers:
                await worker.close()
            await asyncio.to_thread(link.link.close)
            assert not link.downs

    run(scenario())
