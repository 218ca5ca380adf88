# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The switch that tests of hot rows use: workers and a server by UDP."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from loopback import LOOPBACK
from row_switch import RowEntry, RowSwitch
from switchfold.hostlib.hot_rows.row_packets import SERVER_ID_BASE, RowPackets
from switchfold.hostlib.slots.wire import EXPONENT_BIAS, Flag, Operation, Outcome
from switchfold.hostlib.transports.udp import UdpTransport
from worker_packets import push_packets, read_packets

WAIT_S = 60.0
SERVER = SERVER_ID_BASE


class End:
    """A worker's or a server's socket."""

    def __init__(self, switch: RowSwitch, worker_id: int) -> None:
        self.transport = UdpTransport(LOOPBACK)
        self.transport.open(switch.endpoint, switch.datagram_bytes)
        self.packets = RowPackets(
            job_id=switch.job_id,
            generation=switch.generation,
            worker_id=worker_id,
            worker_bitmap=1 << worker_id if worker_id < SERVER else 0,
            num_workers=switch.num_workers,
            values_per_packet=32,
        )

    def push(self, rows: Sequence[int], round_: int, value: int, epoch: int = 64) -> None:
        lanes = np.full((len(rows), 32), value, np.int32)
        self.transport.send(push_packets(self.packets, *self._names(rows, epoch, round_), lanes))

    def flush(self, rows: Sequence[int], round_: int) -> None:
        self.transport.send(self.packets.flush(*self._names(rows, 64, round_), level=0))

    def read(self, rows: Sequence[int], version: int) -> None:
        self.transport.send(read_packets(self.packets, *self._names(rows, 64, version)))

    def write(self, rows: Sequence[int], version: int, value: int) -> None:
        lanes = np.full((len(rows), 32), value, np.int32)
        self.transport.send(self.packets.write(*self._names(rows, 64, version), lanes))

    def _names(self, rows: Sequence[int], epoch: int, round_: int) -> list[NDArray[np.uint32]]:
        own = np.array(rows, np.uint32)
        return [own, np.full(own.size, epoch, np.uint32), np.full(own.size, round_, np.uint32)]

    def receive(self, count: int) -> NDArray[np.void]:
        """Wait for so many packets."""
        found: list[NDArray[np.void]] = []
        while sum(each.size for each in found) < count:
            room = np.zeros((64, self.packets.datagram_bytes), np.uint8)
            arrived = self.transport.receive(room, WAIT_S)
            assert arrived, f"{sum(each.size for each in found)} of {count} packets came"
            found.append(self.packets.view(room[:arrived]))
        return np.concatenate(found)


@contextlib.contextmanager
def running(**options: Any) -> Generator[tuple[RowSwitch, list[End], End]]:
    """Run a switch with two workers and a server, and rows 3 and 5 of it."""
    with RowSwitch(2, num_rows=8, **options) as switch, contextlib.ExitStack() as stack:
        ends = [End(switch, worker_id) for worker_id in (0, 1, SERVER)]
        for end in ends:
            stack.callback(end.transport.close)
        server = ends[2].transport.local
        switch.attach(SERVER, server.address, server.udp_port)
        switch.set_rows({3: RowEntry(64, -10), 5: RowEntry(64, -12)})
        yield switch, ends[:2], ends[2]


def test_sums_go_to_the_server_and_values_to_workers() -> None:
    with running() as (switch, workers, server):
        workers[0].push([3, 5], 1, 10)
        switch.wait(lambda: switch.outcomes[Outcome.ABSORBED] == 2)
        workers[1].push([3, 5], 1, 7)
        sums = server.receive(2)
        assert sums["values"].tolist() == [[17] * 32] * 2
        assert sums["header"]["operation"].tolist() == [Operation.RESULT] * 2
        assert sorted(sums["header"]["exponent"]) == [EXPONENT_BIAS - 12, EXPONENT_BIAS - 10]
        assert switch.passed["to_servers"] == 2
        server.write([3], 9, 4)
        assert server.receive(1)["header"]["operation"] == Operation.WRITE
        workers[0].read([3], 9)
        values = workers[0].receive(1)
        assert values["values"].tolist() == [[4] * 32]
        assert values["header"]["round"] == 9


def test_a_flush_brings_a_lost_sum() -> None:
    with running() as (switch, workers, server):
        switch.drop = lambda packet, to: to == SERVER
        workers[0].push([3], 1, 5)
        workers[1].push([3], 1, 6)
        switch.wait(lambda: switch.passed["lost"] == 1)
        switch.drop = None
        server.flush([3], 1)
        result = server.receive(1)
        assert result["values"].tolist() == [[11] * 32]
        assert result["header"]["worker_bitmap"] == 3


def test_evicted_rows_and_other_epochs_are_cold() -> None:
    with running() as (switch, workers, _):
        switch.delete_rows([3])
        assert set(switch.rows) == {5}
        workers[0].push([3], 1, 5)
        workers[0].push([5], 1, 5, epoch=96)
        assert (workers[0].receive(2)["header"]["flags"] & Flag.COLD).all()


def test_a_restart_loses_registers_and_a_stopped_switch_answers_nothing() -> None:
    with running() as (switch, workers, server):
        workers[0].push([3], 1, 5)
        switch.wait(lambda: switch.outcomes[Outcome.ABSORBED] == 1)
        switch.stop()
        workers[1].push([3], 1, 6)
        switch.wait(lambda: switch.passed["ignored"] == 1)
        switch.restart()
        workers[1].push([3], 1, 6)
        switch.wait(lambda: switch.outcomes[Outcome.ABSORBED] == 2)
        workers[0].push([3], 1, 5)
        assert server.receive(1)["values"].tolist() == [[11] * 32]


def test_a_new_view_has_no_rows() -> None:
    with running() as (switch, workers, _):
        switch.begin_view(1001, 1)
        workers[0].push([3], 1, 5)
        switch.wait(lambda: switch.outcomes[Outcome.BAD_GENERATION] == 1)
        assert switch.rows == {}


def test_impairments_occur() -> None:
    with running(loss=0.3, duplication=0.3, reordering=0.3) as (switch, workers, _):
        for round_ in range(1, 40):
            workers[0].read([3, 5], round_)
        switch.wait(lambda: switch.passed["lost"] + switch.outcomes[Outcome.COLD] >= 60)
        assert min(switch.passed[each] for each in ("lost", "doubled", "held", "to_workers")) > 0


def test_a_defect_in_the_thread_fails_the_test() -> None:
    with pytest.raises(AssertionError, match="3 bytes"), running() as (_, workers, _):
        workers[0].transport._socket.socket.send(b"abc")
