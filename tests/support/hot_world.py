# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Workers with hot rows, the reference switch and a simple server, in time that a test drives.

Packets and frames wait until the test delivers them. The workers' side is the product's, without
its socket and event loop. The server keeps exact sums, as whole numbers by key.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hot_world_server import (
    EXPONENT,
    FLUSH_S,
    JOB,
    LANES,
    TABLE,
    Floats,
    Keys,
    WorldServer,
    gradients_of,
)
from reference_job import (
    ReferenceChild,
    ReferenceJob,
    ReferenceRow,
)
from slot_reference import (
    Destination,
    ReferenceSwitch,
)
from switchfold.hostlib.errors import HostlibError
from switchfold.hostlib.hot_rows.row_packets import SERVER_ID_BASE, RowPackets
from switchfold.hostlib.parameter_server import ClientOptions
from switchfold.hostlib.parameter_server.hot_worker import ServerRows
from switchfold.hostlib.parameter_server.hot_worker import server_rows as module
from switchfold.hostlib.parameter_server.rows import PulledRows
from switchfold.hostlib.peers.event_loop import Timer
from switchfold.hostlib.peers.frames import (
    Frame,
    FrameKind,
    RoundsFrame,
    SampleFrame,
)
from switchfold.hostlib.slots.wire import EXPONENT_BIAS, Operation, view_datagrams


class HandLoop:
    """The timers of an event loop."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self._timers: list[tuple[float, int, Timer]] = []
        self._numbers = itertools.count()

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Timer:
        timer = Timer(self.now_s + max(0.0, delay_s), call)
        heapq.heappush(self._timers, (timer.when_s, next(self._numbers), timer))
        return timer

    def pass_by(self, duration_s: float) -> None:
        """Let time pass, and call what is due, each at its time."""
        end_s = self.now_s + duration_s
        while self._timers and self._timers[0][0] <= end_s:
            self.now_s, _, timer = heapq.heappop(self._timers)
            if timer.call is not None:
                timer.call()
        self.now_s = end_s


class Call:
    """A push or a pull, and how it ended."""

    def __init__(self) -> None:
        self.is_done = False
        self.error: HostlibError | None = None
        self.rows: PulledRows | None = None

    def done(self, error: HostlibError | None) -> None:
        assert not self.is_done
        self.is_done, self.error = True, error

    def pulled(self, rows: PulledRows | HostlibError) -> None:
        if isinstance(rows, HostlibError):
            self.done(rows)
        else:
            self.done(None)
            self.rows = rows


class WorldWorker:
    """One worker: its hot rows, and its session with the server, whose frames the test delivers."""

    def __init__(self, world: World, worker_id: int) -> None:
        self.world = world
        self.worker_id = worker_id
        self.shard = 0
        self.num_ahead = 0
        self.can_send = True
        self.from_server: deque[tuple[Frame, bytes]] = deque()
        self.decides: deque[tuple[int, NDArray[np.void]]] = deque()
        self.changes: deque[tuple[Keys, Floats, Callable[[HostlibError | None], None]]] = deque()
        self.pulls: deque[tuple[Keys, Callable[[PulledRows | HostlibError], None]]] = deque()
        self.sketches: list[bytes] = []
        self.batches: list[bytes] = []
        options = ClientOptions(worker_id=worker_id, hot_sample=1.0)
        loop: Any = world.loop
        self.rows = ServerRows(loop, _Session(self), options)

    def push(self, keys: Sequence[int], gradients: Floats) -> Call:
        call = Call()
        own = np.array(keys, np.int64)
        payload = memoryview(own.tobytes() + gradients.astype(np.float32).tobytes())
        self.world.note_push(own, gradients)
        self.rows.push(TABLE, payload, own.size, call.done)
        return call

    def pull_rows(self, keys: Sequence[int]) -> Call:
        call = Call()
        self.rows.pull(TABLE, np.array(keys, np.int64), self.world.width, call.pulled)
        return call

    def take_frame(self) -> None:
        """Deliver the oldest frame of the server."""
        frame, payload = self.from_server.popleft()
        self.rows.on_frame(frame, memoryview(payload))

    def take_change(self) -> None:
        """Deliver the oldest PUSH to the server, and its receipt."""
        keys, gradients, done = self.changes.popleft()
        self.world.server.add_by_tcp(keys, gradients)
        done(None)

    def take_pull(self) -> None:
        keys, done = self.pulls.popleft()
        done(self.world.server.rows_of(keys))

    def take_decide(self) -> None:
        self.world.server.take_decide(*self.decides.popleft())

    def cut(self) -> None:
        """Break the connection, and enter again: what was under way is lost, but for changes."""
        self.from_server.clear()
        self.decides.clear()
        self.world.server.tell_rows(self)

    # ServerRows calls these.

    def begin(self) -> None:
        pass

    def push_cold(
        self, keys: Keys, gradients: Floats, done: Callable[[HostlibError | None], None]
    ) -> None:
        self.changes.append((keys, gradients, done))

    def pull(self, table: int, keys: Keys, width: int, done: Any) -> None:
        assert (table, width) == (TABLE, self.world.width)
        self.pulls.append((keys, done))

    def send_frame(self, frame: Any, payload: memoryview) -> None:
        if isinstance(frame, SampleFrame):
            samples = self.sketches if frame.kind is FrameKind.SKETCH else self.batches
            samples.append(bytes(payload))
            return
        assert isinstance(frame, RoundsFrame)
        self.decides.append((frame.generation, frame.rounds(memoryview(bytes(payload)))))


class _Session:
    """What `ServerRows` sees of a worker: its method `push` has another meaning there."""

    def __init__(self, worker: WorldWorker) -> None:
        self._worker = worker

    def __getattr__(self, name: str) -> Any:
        return getattr(self._worker, name)

    def push(self, table: int, payload: memoryview, num_keys: int, done: Any) -> None:
        assert table == TABLE
        keys = np.frombuffer(payload, np.int64, num_keys)
        gradients = np.frombuffer(payload, np.float32, offset=8 * num_keys)
        self._worker.push_cold(keys, gradients.reshape(num_keys, -1), done)


class _Socket:
    """In place of a worker's socket."""

    def __init__(self, world: World, loop: Any, switch: Any, size: int, **rest: Any) -> None:
        self.switch, self.datagram_bytes = switch, size
        self.arrived_ns = 0
        self._world, self.take = world, rest["take"]
        self._worker = next(w for w in world.workers if w.rows._take == self.take)
        world.sockets[self._worker.worker_id] = self

    def send(self, datagrams: NDArray[np.uint8]) -> None:
        self._world.send_to_switch(self._worker.worker_id, datagrams)

    def close(self) -> None:
        self._world.sockets.pop(self._worker.worker_id, None)


class World:
    """All of it; `packets` are under way: receiver (None: the switch), sender, and packet."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, num_workers: int, width: int = 8) -> None:
        self.loop = HandLoop()
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.loop.now_s))
        monkeypatch.setattr(module, "RowSocket", lambda *a, **k: _Socket(self, *a, **k))
        self.width = width
        self.table, self.num_workers = TABLE, num_workers
        self.switch_address, self.switch_port = "10.0.0.1", 1
        self.packets: list[tuple[int | None, int, NDArray[np.void]]] = []
        self.passed: Counter[str] = Counter()
        self.sockets: dict[int, _Socket] = {}
        self.workers: list[WorldWorker] = []
        self.server = WorldServer(self)
        self.pushed: Counter[tuple[int, int]] = Counter()
        self._job = ReferenceJob(job_id=JOB, generation=0, slot_base=0, slot_count=0, children={})
        self.switch = ReferenceSwitch(LANES)
        for worker_id in range(num_workers):
            self.workers.append(WorldWorker(self, worker_id))

    def note_push(self, keys: Keys, gradients: Floats) -> None:
        for key, values in zip(keys.tolist(), gradients.tolist(), strict=True):
            for position, value in enumerate(values):
                self.pushed[key, position] += int(math.ldexp(value, -EXPONENT))

    def gradients(self, lanes: Any) -> Floats:
        return gradients_of(lanes)

    def install(self, generation: int, epochs: dict[int, int]) -> None:
        """Have the switch know these rows, and no others."""
        bits = {worker.worker_id: 1 << worker.worker_id for worker in self.workers}
        bits[SERVER_ID_BASE] = 0
        self._job = ReferenceJob(
            job_id=JOB,
            generation=generation,
            slot_base=0,
            slot_count=0,
            children={
                i: ReferenceChild(port=i, address=i, bit=bit, contributor_mask=bit)
                for i, bit in bits.items()
            },
            num_workers=self.num_workers,
            quorum=len(self.workers),
            hot_rows={
                number: ReferenceRow(
                    slot=number,
                    value_copy=4096 + number,
                    epoch=epoch,
                    exponent=EXPONENT + EXPONENT_BIAS,
                )
                for number, epoch in epochs.items()
            },
        )
        self.switch.jobs = {JOB: self._job}

    def evict(self, number: int) -> None:
        rows = {i: row for i, row in self._job.hot_rows.items() if i != number}
        self._job = replace(self._job, hot_rows=rows)
        self.switch.jobs = {JOB: self._job}

    def restart_switch(self) -> None:
        """Lose all registers."""
        self.switch = ReferenceSwitch(LANES)
        self.switch.jobs = {JOB: self._job}

    def server_packets(self, generation: int) -> RowPackets:
        return RowPackets(
            job_id=JOB,
            generation=generation,
            worker_id=SERVER_ID_BASE,
            worker_bitmap=0,
            num_workers=self.num_workers,
            values_per_packet=LANES,
        )

    def flush(self, number: int, epoch: int, round_: int) -> None:
        """Send a flush of the server."""
        names = (np.array([each], np.uint32) for each in (number, epoch, round_))
        packets = self.server_packets(self.server.generation)
        self.send_to_switch(SERVER_ID_BASE, packets.flush(*names, level=0))

    def send_to_switch(self, sender: int, datagrams: NDArray[np.uint8]) -> None:
        for packet in view_datagrams(datagrams.copy(), LANES):
            self.packets.append((None, sender, packet))

    def deliver(self, index: int = 0, *, is_kept: bool = False) -> None:
        """Deliver a packet that is under way, which may stay there."""
        to, sender, packet = self.packets[index] if is_kept else self.packets.pop(index)
        if to is None:
            self.passed[Operation(int(packet["header"]["operation"])).name] += 1
            _, reply = self.switch.receive(sender, sender, packet)
            if reply is not None:
                back = sender if reply.to is Destination.SENDER else SERVER_ID_BASE
                self.packets.append((back, sender, reply.datagram))
        elif to == SERVER_ID_BASE:
            if packet["header"]["operation"] == Operation.RESULT:
                self.server.take_result(packet)
        elif to in self.sockets:
            row = np.array([packet]).view(np.uint8).reshape(1, -1)
            self.sockets[to].take(row)

    def settle(self) -> None:
        """Deliver all that is under way, in order, until nothing is."""
        while self.packets or any(w.from_server or w.changes or w.pulls for w in self.workers):
            while self.packets:
                self.deliver()
            for worker in self.workers:
                while worker.from_server:
                    worker.take_frame()
                while worker.changes:
                    worker.take_change()
                while worker.pulls:
                    worker.take_pull()
                while worker.decides:
                    worker.take_decide()

    def run_until(self, calls: Sequence[Call], limit_s: float = 20.0) -> None:
        """Let time pass, with nothing lost, until calls are done."""
        end_s = self.loop.now_s + limit_s
        self.settle()
        while not all(call.is_done for call in calls):
            assert self.loop.now_s < end_s, "calls did not end"
            self.loop.pass_by(FLUSH_S / 2)
            for worker in self.workers:
                while worker.decides:
                    worker.take_decide()
            self.settle()

    def check_sums(self) -> None:
        pushed = {place: units for place, units in self.pushed.items() if units}
        assert {place: units for place, units in self.server.sums.items() if units} == pushed
