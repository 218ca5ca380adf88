# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The server side of hot rows on the reference switch, with a controller and workers of tests."""

from __future__ import annotations

import shutil
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import numpy as np
import pytest
from numpy.typing import NDArray

from loopback import LOOPBACK
from row_switch import RowEntry, RowSwitch
from switchfold.hostlib.control.row_server_link import RowMember, RowView
from switchfold.hostlib.control.view import Endpoint
from switchfold.hostlib.hot_rows import FrequencySketch, LaneLayout
from switchfold.hostlib.hot_rows.row_packets import SERVER_ID_BASE, RowPackets
from switchfold.hostlib.parameter_server.hot_server import hot_row_server
from switchfold.hostlib.parameter_server.hot_server.hot_row_server import HotRowServer
from switchfold.hostlib.parameter_server.hot_server.options import HotRowOptions
from switchfold.hostlib.parameter_server.hot_server.rounds import RowsOfRounds
from switchfold.hostlib.parameter_server.tables import TableDefinition
from switchfold.hostlib.peers.frames import (
    DECISION_DTYPE,
    Frame,
    FrameKind,
    HotRowsState,
    Packable,
    RoundsFrame,
)
from switchfold.hostlib.slots.wire import Flag, Operation
from switchfold.hostlib.transports.udp import UdpTransport
from table_cases import FakeClient, ServiceBench
from worker_packets import push_packets, read_packets

WAIT_S: Final = 60.0
FLUSH_S: Final = 0.01
TABLE: Final = TableDefinition(name="hot", width=4, hot_keys=16)
HOT_KEYS: Final = np.arange(16)


class FakeRowLink:
    """Puts the rows that the server asks for into the switch at once, unless `is_away`."""

    def __init__(self, bench: HotBench) -> None:
        self._bench = bench
        self.is_away = False
        self.sets: list[tuple[int, int, NDArray[np.void]]] = []

    def start(self) -> None:
        """The bench tells views."""

    def close(self) -> None:
        """Nothing is open."""

    def set_rows(self, generation: int, number: int, rows: NDArray[np.void]) -> None:
        self.sets.append((generation, number, rows.copy()))
        if not self.is_away:
            self.install()

    def install(self) -> None:
        generation, number, rows = self.sets[-1]
        switch = self._bench.switch
        if generation != switch.generation:
            return
        switch.delete_rows([row for row in switch.rows if row not in rows["row"]])
        switch.set_rows(
            {int(row["row"]): RowEntry(int(row["epoch"]), int(row["exponent"])) for row in rows}
        )
        self._bench.loop.post(lambda: self._bench.server.on_installed(generation, number))


class HotBench:
    """A service of tables with its server of hot rows; `restart` kills it and starts another."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        folder: Path | None = None,
        num_workers: int = 2,
        *,
        refresh_s: float = 0.05,
        flush_s: float = FLUSH_S,
        silent_s: float = WAIT_S,
        **switch: Any,
    ) -> None:
        monkeypatch.setattr(hot_row_server, "SILENT_S", silent_s)
        self._monkeypatch, self._folder, self._num_workers = monkeypatch, folder, num_workers
        self.options = HotRowOptions(
            controller="none", job="job", address=LOOPBACK, flush_s=flush_s, refresh_s=refresh_s
        )
        self.switch = RowSwitch(num_workers, **switch)
        self.endpoints: dict[int, Endpoint] = {}

    def _start(self) -> None:
        self.bench = ServiceBench(self._monkeypatch, self._folder, self._num_workers)
        self.service, self.loop = self.bench.service, self.bench.loop
        self.server = HotRowServer(self.loop, self.service, 0, self.options)
        self.service.hot = self.server
        self.link = FakeRowLink(self)
        local = self.server.local
        assert local is not None
        self.switch.attach(SERVER_ID_BASE, local.address, local.udp_port)
        self.loop.run(lambda: self.server.start(self.link))

    def _stop(self) -> None:
        self.bench.disk.go_on()
        self.loop.run(self.server.close)
        self.bench.__exit__(None, None, None)

    def restart(self) -> None:
        """End the server, and start another one that has the log."""
        self._stop()
        self._start()
        self.tell_view()

    def crash(self, workers: Sequence[HotWorker]) -> None:
        """Kill the server at any moment, and start another one with what its disk holds.

        What it has not told when the disk stops, it tells nobody.
        """
        assert self._folder is not None
        self.bench.disk.stop()
        for worker in workers:
            worker.disconnect()
        crashed = self._folder.with_name(f"{self._folder.name}-again")
        shutil.copytree(self._folder, crashed)
        self._stop()
        self._folder = crashed
        self._start()
        self.tell_view()

    def view(self, **fields: Any) -> RowView:
        members = tuple(
            RowMember(worker_id=w, child_id=w, worker_bitmap=1 << w, switch=self.switch.endpoint)
            for w in range(self._num_workers)
        )
        known: dict[str, Any] = {
            "generation": self.switch.generation,
            "tree_id": self.switch.job_id,
            "first_row": 4,
            "num_rows": 8,
            "values_per_packet": 32,
            "worker_id": SERVER_ID_BASE,
            "switch": self.switch.endpoint,
            "num_workers": self._num_workers,
            "members": members,
            "reason": "",
        }
        return RowView(**known | fields)

    def tell_view(self, **fields: Any) -> None:
        view = self.view(**fields)
        self.loop.run(lambda: self.server.on_view(view))

    def begin_view(self) -> None:
        """Have the next generation at the switch, and tell the server."""
        self.switch.begin_view(self.switch.generation + 1, self._num_workers)
        self.tell_view()

    def count(self, name: str) -> int:
        return self.service.counters[name]

    def values(self, keys: NDArray[np.int64] = HOT_KEYS) -> NDArray[np.float32]:
        found: list[NDArray[np.float32]] = []
        self.loop.run(lambda: found.append(self.service.state.tables[TABLE.number].values(keys)))
        return found[0]

    def __enter__(self) -> Self:
        self.switch.__enter__()
        self._start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop()
        self.switch.__exit__(exc_type, exc, traceback)


def wait_for(condition: Callable[[], bool], *workers: HotWorker) -> None:
    """Let workers work until a condition holds."""
    end_s = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end_s, [worker.describe() for worker in workers]
        for worker in workers:
            worker.step()
        time.sleep(0.001)


def push_until_hot(
    pusher: HotWorker, row: int, lanes: NDArray[np.int32], workers: Sequence[HotWorker]
) -> int:
    """Push until a push is in a sum of the switch; return how many pushes that took.

    On a busy machine, the server may decide a round before the switch has its sum.
    """
    goal, count, end_s = pusher.num_hot + 1, 0, time.monotonic() + WAIT_S
    while pusher.num_hot < goal:
        assert time.monotonic() < end_s, [worker.describe() for worker in workers]
        wait_for(lambda: pusher.has_rows and pusher.is_free(row), *workers)
        pusher.push(row, lanes)
        count += 1
        wait_for(lambda: not pusher.pending, *workers)
    return count


@dataclass
class PendingPush:
    """A push that is not decided, as the row was when it was made."""

    lanes: NDArray[np.int32]
    epoch: int
    layout: LaneLayout
    at: int
    """The row in the layout."""
    exponent: int
    since_s: float
    count: int = 0
    """How often it was looked at."""


class HotCallerOf:
    """A worker's connection, until it breaks."""

    is_behind = False

    def __init__(self) -> None:
        self.inbox: deque[tuple[Packable, bytes]] = deque()

    def send_hot(self, frame: Packable, payload: bytes) -> None:
        self.inbox.append((frame, payload))


class HotWorker:
    """A worker by the rules of docs/protocol.md, in plain Python; `step` does its work."""

    def __init__(self, bench: HotBench, worker_id: int, incarnation: int = 0) -> None:
        self.bench = bench
        self.worker_id = worker_id
        self.incarnation = incarnation or 100 + worker_id
        self._transport = UdpTransport(LOOPBACK)
        self._caller = HotCallerOf()
        self._number = 0
        self._cold: dict[int, tuple[NDArray[np.int64], NDArray[np.float32]]] = {}
        self.pending: dict[tuple[int, int, int], PendingPush] = {}
        """By generation, row and round."""
        self.layouts: dict[tuple[int, int], tuple[LaneLayout, int, int]] = {}
        """By generation and row: the layout, the row in it, the exponent."""
        self.state = HotRowsState(0)
        self.states: list[HotRowsState] = []
        self.decisions: list[tuple[int, int, int, int]] = []
        self.used: dict[tuple[int, int], int] = {}
        self.next: dict[int, int] = {}
        self.ahead: dict[int, bool] = {}
        self.num_cold = self.num_hot = 0
        self.client: FakeClient | None = None

    def disconnect(self) -> None:
        """Hear nothing more of this server."""
        self._caller = HotCallerOf()

    def enter(self) -> Self:
        """Connect, also after the server was started again."""
        self.client = FakeClient(self.bench.bench, self.worker_id, self.incarnation).enter()
        wait_for(lambda: self._client.num_entered == 1)
        accepted = self.bench.service.accepted(self.worker_id)
        for number, (keys, gradients) in self._cold.items():
            if number > accepted:
                self._submit(number, keys, gradients)
        caller = self._caller = HotCallerOf()
        self.bench.loop.run(lambda: self.bench.server.enter(self.worker_id, caller))
        return self

    @property
    def _client(self) -> FakeClient:
        assert self.client is not None
        return self.client

    def define(self) -> None:
        self._number += 1
        self._client.define(self._number, TABLE)
        wait_for(lambda: self._client.applied == [self._number])

    def sketch(self, keys: NDArray[np.int64] = HOT_KEYS) -> None:
        sketch = FrequencySketch(TABLE.sketch_capacity)
        sketch.update(np.repeat(keys, 100))
        self.bench.loop.run(lambda: self.bench.server.add_sketch(TABLE.number, sketch))

    def push_cold(self, keys: NDArray[np.int64], gradients: NDArray[np.float32]) -> None:
        self._number += 1
        self.num_cold += 1
        self._cold[self._number] = (keys, gradients)
        self._submit(self._number, keys, gradients)

    def _submit(self, number: int, keys: NDArray[np.int64], gradients: NDArray[np.float32]) -> None:
        payload = keys.astype(np.int64).tobytes() + gradients.astype(np.float32).tobytes()
        self._client.submit(FrameKind.PUSH, number, payload, TABLE.number, keys.size)

    def is_free(self, row: int) -> bool:
        return self._next_round(row) <= self.next[row] + 1

    def _next_round(self, row: int) -> int:
        return max(self.used.get((self.state.generation, row), 0) + 1, self.next[row])

    def push(self, row: int, lanes: NDArray[np.int32]) -> None:
        """Push in the next round, which the slot rule must allow."""
        assert self.is_free(row)
        number, generation = self._next_round(row), self.state.generation
        layout, at, exponent = self.layouts[generation, row]
        now_s = time.monotonic()
        made = PendingPush(lanes, self.epoch(row), layout, at, exponent, now_s)
        if number == self.next[row] + 1 and self.ahead[row]:
            self._send_cold(made)  # the round is over, and the one after it is not open yet
            return
        self.used[generation, row] = number
        self.pending[generation, row, number] = made
        self._send(generation, row, number)

    def _send_cold(self, push: PendingPush) -> None:
        """Send by TCP what a push to a row means."""
        per_row, width = push.layout.shape.keys_per_row, push.layout.shape.width
        keys = push.layout.keys.reshape(-1, per_row)[push.at]
        gradients = np.ldexp(push.lanes[: per_row * width].astype(np.float64), push.exponent)
        gradients = gradients.reshape(per_row, width)
        which = gradients.any(axis=1) & (keys >= 0)
        if which.any():
            self.push_cold(keys[which], gradients[which].astype(np.float32))

    @property
    def packets(self) -> RowPackets:
        return RowPackets(
            job_id=self.state.job_id,
            generation=self.state.generation,
            worker_id=self.state.worker_id,
            worker_bitmap=self.state.worker_bitmap,
            num_workers=self.state.num_workers,
            values_per_packet=self.state.values_per_packet,
        )

    def epoch(self, row: int) -> int:
        (at,) = np.flatnonzero(self.state.rows["row"] == row)
        return int(self.state.rows["epoch"][at])

    def _send(self, generation: int, row: int, number: int) -> None:
        if generation == self.state.generation:
            push = self.pending[generation, row, number]
            place = self._place(row, push.epoch, number)
            self._transport.send(push_packets(self.packets, *place, push.lanes[None, :]))

    @staticmethod
    def _place(row: int, epoch: int, number: int) -> tuple[NDArray[np.uint32], ...]:
        return tuple(np.array([n], np.uint32) for n in (row, epoch, number))

    def read(self, row: int, version: int) -> tuple[int, NDArray[np.float32]] | None:
        """Return version and values of a row from the switch; None: it is cold there."""
        end_s = time.monotonic() + WAIT_S
        while time.monotonic() < end_s:
            self._transport.send(
                read_packets(self.packets, *self._place(row, self.epoch(row), version))
            )
            for packet in self._receive(0.02):
                header = packet["header"]
                if header["operation"] == Operation.READ and header["slot_index"] == row:
                    bits = packet["values"].astype(np.int32)
                    return int(header["round"]), bits.view(np.float32)
                if header["flags"] & Flag.COLD:
                    return None
        raise AssertionError("no answer to a READ")

    def _receive(self, timeout_s: float) -> NDArray[np.void]:
        out = np.empty((64, self.packets.datagram_bytes), np.uint8)
        return self.packets.view(out[: self._transport.receive(out, timeout_s)])

    def decide(self, generation: int, row: int, number: int) -> None:
        asked = RowsOfRounds(np.array([row], np.uint32), np.array([number], np.uint32))
        server, caller = self.bench.server, self._caller
        self.bench.loop.run(lambda: server.decide(self.worker_id, caller, generation, asked))

    def step(self) -> None:
        """Take what the server says; send again what waits."""
        while self._caller.inbox:
            frame, payload = self._caller.inbox.popleft()
            if isinstance(frame, RoundsFrame):
                self._take_decisions(frame.generation, payload)
            else:
                header = Frame.unpack(frame.pack())
                assert header.kind is FrameKind.HOT_ROWS
                self._take_state(HotRowsState.unpack(memoryview(payload)))
        if self.state.generation:
            self._receive(0.0)
        now_s = time.monotonic()
        for name, push in list(self.pending.items()):
            if now_s - push.since_s < self.bench.options.flush_s * min(2**push.count, 8):
                continue
            push.since_s, push.count = now_s, push.count + 1
            generation, row, number = name
            if push.count > 1 and generation == self.state.generation:
                self._send(*name)
                place = self._place(row, push.epoch, number)
                self._transport.send(self.packets.flush(*place, level=0))
            if push.count > 2:
                self.decide(*name)

    def _take_decisions(self, generation: int, payload: bytes) -> None:
        for row, number, bitmap, version in np.frombuffer(payload, DECISION_DTYPE).tolist():
            self.decisions.append((row, number, bitmap, version))
            self._settle(generation, row, number, bool(bitmap >> self.worker_id & 1))
            if generation == self.state.generation and row in self.next:
                self._note(row, number)

    def _note(self, row: int, number: int) -> None:
        if number == self.next[row] + 1:
            self.ahead[row] = True
        elif number == self.next[row]:
            self.next[row] += 1 + self.ahead[row]
            self.ahead[row] = False

    def _settle(self, generation: int, row: int, number: int, has_counted: bool) -> None:
        waiting = self.pending.pop((generation, row, number), None)
        if waiting is None:
            return
        if has_counted:
            self.num_hot += 1
        else:
            self._send_cold(waiting)

    def _take_state(self, state: HotRowsState) -> None:
        known = {int(row["row"]): row for row in state.rows}
        for generation, row, number in list(self.pending):
            marks = known[row]["counted"].tolist() if row in known else []
            has_counted = generation << 32 | number in marks
            is_over = generation != state.generation
            if row in known and not is_over:
                first = int(known[row]["next"])
                is_over = number < first or (number == first + 1 and known[row]["is_ahead"] == 1)
            if is_over:
                self._settle(generation, row, number, has_counted)
        self.state = state
        self.states.append(state)
        if state.generation:
            endpoint = Endpoint(address=state.switch_address, udp_port=state.switch_udp_port)
            self._transport.open(endpoint, self.packets.datagram_bytes)
        hot = state.rows[state.rows["epoch"] > 0]
        self.next = {int(row["row"]): int(row["next"]) for row in hot}
        self.ahead = {int(row["row"]): bool(row["is_ahead"]) for row in hot}
        for table, packed in state.tables:
            layout = LaneLayout.unpack(packed)
            for at, row in enumerate(hot[hot["table"] == table]):
                place = (layout, at, int(row["exponent"]))
                self.layouts[state.generation, int(row["row"])] = place

    @property
    def has_rows(self) -> bool:
        return bool(self.next)

    def describe(self) -> str:
        return (
            f"worker {self.worker_id}: generation {self.state.generation}, rows {self.next},"
            f" pending {list(self.pending)}, {self.num_hot} hot, {self.num_cold} cold"
        )

    def close(self) -> None:
        self._transport.close()
