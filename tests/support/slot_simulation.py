# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Slot streams of several workers over lossy links, in simulated time: the same on every machine.

Each worker has a link to the switch and one from it, with rate, delay and seeded loss. A worker
that is awake reads all packets that have arrived, sends what it may, and sleeps until a packet
arrives or a timer runs out. The streams are the product's; nothing else of a worker takes part.
With a ledger, the switch is the slot protocol's reference, and the ledger sees all packets.
"""

from __future__ import annotations

import heapq
import random
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fake_switch import FakeSwitch
from loss_ledger import LossLedger, Packet
from reference_job import ReferenceJob, worker_children
from slot_reference import Destination, ReferenceSwitch
from stale_ledger import StaleLedger
from stepped_reducer import SteppedReducer
from switchfold.hostlib.loss_tolerance import LossTolerance
from switchfold.hostlib.native.structures import ToleranceStruct
from switchfold.hostlib.options import SessionOptions
from switchfold.hostlib.slots.wire import Operation, Outcome, view_datagrams
from switchfold.hostlib.straggler import StragglerPolicy
from switchfold.hostlib.summation.chunks import (
    ExponentSource,
    FloatSource,
    IntegerSource,
    Summand,
    TensorChunks,
)
from switchfold.hostlib.summation.quantization import large_chunks

MOST_LATE_DELAYS = 40
"""A packet that others overtake is late by up to so many delays of a link."""


class Simulation:
    """Workers, links, one switch and a clock."""

    def __init__(  # noqa: PLR0913 - a test names the few that differ
        self,
        num_workers: int,
        *,
        loss: float = 0.0,
        seed: int = 1,
        slot_count: int = 128,
        packets_per_s: float = 8000.0,
        queue_packets: int = 1000,
        delay_s: float = 0.0002,
        pause_s: float = 0.0005,
        options: SessionOptions | None = None,
        tolerance: LossTolerance | None = None,
        ledger: LossLedger | StaleLedger | None = None,
        max_priority: int = 0,
    ) -> None:
        """`pause_s`: time between two reads of a worker; a full queue drops."""
        self.tolerance = tolerance
        self.ledger = ledger
        self.now_s = 0.0
        self.random = random.Random(seed)
        self.loss = loss
        self.packet_s = 1 / packets_per_s
        self.queue_packets = queue_packets
        self.delay_s = delay_s
        self.pause_s = pause_s
        self.losses: Callable[[int, int | None, NDArray[Any]], bool] = self._is_lost
        """Whether a packet of a worker, or to one, is lost in flight."""
        self.duplication = self.reordering = 0.0
        """Shares of packets that come twice, and that come up to MOST_LATE_DELAYS later."""
        self.dropped = 0
        self.bitmaps = np.zeros(0, np.uint32)
        """The workers in each chunk of the last tensor."""
        self.stale = np.zeros((num_workers, 0), bool)
        """By worker: the chunks of the last tensor whose results it has done without."""
        self.added: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
        """By tensor and chunk: whose contributions the switch has added up."""
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        kind = _SimulatedSwitch if ledger is None else _ReferenceSwitch
        self.switch = kind(self, num_workers, slot_count)
        self.switch.max_priority = max_priority
        self.switch.is_on_host = tolerance is not None and tolerance.stale > 0
        self.workers = [_Worker(self, i, options) for i in range(num_workers)]

    def _is_lost(self, worker_id: int, to: int | None, row: NDArray[Any]) -> bool:
        return self.random.random() < self.loss

    def happens(self, share: float) -> bool:
        """Draw whether something happens; what never does leaves the other lots as they are."""
        return share > 0 and self.random.random() < share

    def at(self, when_s: float, action: Callable[[], None]) -> None:
        """Do something later; what is due at the same time happens in the order of the calls."""
        self._count += 1
        heapq.heappush(self._events, (when_s, self._count, action))

    def run(self, until: Callable[[], bool], limit_s: float = 1000.0) -> None:
        """Let time pass until something holds; AssertionError after `limit_s` simulated seconds."""
        while not until():
            assert self._events, "no event is pending any more"
            self.now_s, _, action = heapq.heappop(self._events)
            assert self.now_s < limit_s, [worker.values.counters for worker in self.workers]
            action()

    def sum(
        self, num_chunks: int, *, late_s: float = 0.0, large: NDArray[np.bool_] | None = None
    ) -> float:
        """Let all workers sum a tensor, check it, and return the simulated seconds it took.

        Worker 0 begins so much later than the others. `large`: chunks that lack nothing.
        """
        began_s = self.now_s
        if self.ledger is not None:
            values = self.switch.values_per_packet
            flat = np.arange(num_chunks * values).reshape(num_chunks, values)
            given = np.array([flat * (worker + 1) for worker in range(len(self.workers))])
            self.ledger.begin(self.workers[0].num_submitted + 1, given, large)
        first, *others = self.workers
        for worker in others:
            worker.submit(num_chunks, large)
        number = first.num_submitted + 1
        if late_s:
            self.at(began_s + late_s, lambda: first.submit(num_chunks, large))
        else:
            first.submit(num_chunks, large)
        is_done = lambda: first.num_submitted == number and all(w.is_done for w in self.workers)  # noqa: E731
        self.run(is_done)
        self._check()
        return self.now_s - began_s

    def sum_floats(
        self, scales: NDArray[np.float32], *, large_first: bool = False, priority: int = 0
    ) -> None:
        """Let all workers sum a float32 tensor in blocks, which they agree on exponents for.

        It has whole numbers from 480 to 511 times powers of 2, the scale of each chunk.
        """
        for worker in self.workers:
            worker.submit_floats(scales, large_first=large_first, priority=priority)
        self.run(lambda: all(worker.is_done for worker in self.workers))
        self._check()

    def _check(self) -> None:
        """Check the last tensor where it came from the switch."""
        whole = [worker for worker in self.workers if not worker.has_missed]
        assert whole, "some worker has each tensor from the switch"
        for worker in whole:
            worker.check(len(self.workers))
        number, num_chunks = self.workers[0].num_submitted, len(whole[0].bitmaps)
        added = [sum(1 << w for w in self.added[number, chunk]) for chunk in range(num_chunks)]
        for worker in whole:
            got = np.where(worker.stale, 0, added)
            np.testing.assert_array_equal(worker.bitmaps, got, "the switch knows better")
            if self.ledger is not None:
                worker.compare(self.ledger)
        self.bitmaps = whole[0].bitmaps
        self.stale = np.array([worker.stale for worker in self.workers])


class _Link:
    """One direction of a worker's cable."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._free_s = 0.0

    def send(self, arrive: Callable[[], None], *, is_lost: bool) -> None:
        of = self._simulation
        start_s = max(of.now_s, self._free_s)
        if start_s - of.now_s > of.queue_packets * of.packet_s:
            of.dropped += 1
            return
        self._free_s = start_s + of.packet_s
        if not is_lost:
            for _ in range(1 + of.happens(of.duplication)):
                late = of.happens(of.reordering) * of.random.random() * MOST_LATE_DELAYS
                of.at(self._free_s + of.delay_s * (1 + late), arrive)


class _SimulatedSwitch(FakeSwitch):
    """The fake switch behind links that take time."""

    def __init__(self, simulation: Simulation, num_workers: int, slot_count: int) -> None:
        policy = StragglerPolicy(tolerance=simulation.tolerance)
        super().__init__(num_workers, slot_count=slot_count, straggler=policy)
        self._simulation = simulation
        self._links = [_Link(simulation) for _ in range(num_workers)]

    def _impaired(self, worker_id: int, to: int | None, row: NDArray[np.uint8]) -> None:
        assert to is not None, "contributions come by the worker's own link"
        of, row = self._simulation, row.copy()

        def arrive() -> None:
            of.workers[to].take(row)

        if of.ledger is not None:
            of.ledger.note_answered(Packet.of(self.packet(row)))
        self._links[to].send(arrive, is_lost=of.losses(to, to, row))

    def packet(self, row: NDArray[np.uint8]) -> NDArray[np.void]:
        """Return a datagram's fields."""
        return view_datagrams(row[None, :], self.values_per_packet)[0]


class _ReferenceSwitch(_SimulatedSwitch):
    """The reference of the slot protocol behind the same links."""

    def __init__(self, simulation: Simulation, num_workers: int, slot_count: int) -> None:
        super().__init__(simulation, num_workers, slot_count)
        self._reference = ReferenceSwitch(self.values_per_packet)
        (tree_id,) = self.trees
        self._reference.jobs[tree_id] = ReferenceJob(
            job_id=tree_id,
            generation=self.generation,
            slot_base=0,
            slot_count=slot_count,
            children=worker_children({i: (i, i) for i in range(num_workers)}),
            num_workers=num_workers,
            quorum=num_workers,
            allow_partial=simulation.tolerance is None or not simulation.tolerance.stale,
        )

    def process(self, worker_id: int, packet: NDArray[np.void]) -> Outcome:
        outcome, reply = self._reference.receive(worker_id, worker_id, packet.reshape(()))
        if reply is not None:
            row = np.frombuffer(reply.datagram.tobytes(), np.uint8)
            is_for_all = reply.to is Destination.CHILDREN
            for to in range(self.num_workers) if is_for_all else (worker_id,):
                self._impaired(to, to, row)
        return outcome


class _Worker:
    """A switch reducer without a session; also its transport."""

    def __init__(
        self, simulation: Simulation, worker_id: int, options: SessionOptions | None
    ) -> None:
        self._simulation = simulation
        self._worker_id = worker_id
        self._link = _Link(simulation)
        switch = simulation.switch
        transport: Any = self
        self.path = SteppedReducer(switch.view(worker_id), transport, options or SessionOptions())
        self.values = self.path.values
        self._inbox: list[NDArray[np.uint8]] = []
        self._sent: list[NDArray[np.uint8]] = []  # since the ledger last saw it
        self.num_submitted = 0
        self._source: IntegerSource | FloatSource | None = None
        self._exponents: ExponentSource | None = None
        self._floats = self._given = np.zeros(0, np.float32)
        self._large_first, self._priority = False, 0
        self._awake_s = -1.0
        self._wakes_s = np.inf

    def submit(self, num_chunks: int, large: NDArray[np.bool_] | None = None) -> None:
        """Begin with a tensor: no packet of the previous one may be in flight."""
        self.num_submitted += 1
        values = self._simulation.switch.values_per_packet
        flat = np.arange(num_chunks * values, dtype=np.int32) * (self._worker_id + 1)
        source = IntegerSource(Summand(tensor_id=self.num_submitted, flat=flat), values)
        source.large = large
        self._enqueue(source)
        self._wake_at(self._simulation.now_s)

    def submit_floats(
        self, scales: NDArray[np.float32], *, large_first: bool, priority: int
    ) -> None:
        """Begin likewise with a tensor of whole numbers as float32: first with its exponents."""
        self.num_submitted += 1
        values = self._simulation.switch.values_per_packet
        self._source, self._large_first, self._priority = None, large_first, priority
        self._given = (np.arange(len(scales) * values) % 31 + 480) * np.repeat(scales, values)
        self._floats = self._given * np.float32(self._worker_id + 1)
        chunks = TensorChunks(self._floats, values)
        self._exponents = ExponentSource(self.num_submitted, chunks, values)
        self.path.exponents.enqueue(self._exponents)
        self._wake_at(self._simulation.now_s)

    def _quantize(self) -> None:
        """Begin with the values of floats once the exponents are agreed."""
        exponents, switch = self._exponents, self._simulation.switch
        if exponents is None or not self.path.exponents.is_finished(exponents):
            return
        self._exponents = None
        summand = Summand(tensor_id=self.num_submitted, flat=self._floats)
        agreed, values = exponents.agreed(), switch.values_per_packet
        source = FloatSource(summand, agreed, values, num_workers=switch.num_workers)
        source.priority = self._priority
        if self._large_first:
            source.large, source.large_priority = large_chunks(agreed), self._priority + 1
        self._enqueue(source)

    def _enqueue(self, source: IntegerSource | FloatSource) -> None:
        """Let a sum lack what is tolerated, and send it."""
        self._source = source
        tolerance = self._simulation.tolerance
        if tolerance is not None and tolerance.stale:
            source.may_lose = tolerance.num_stale(source.num_chunks)
        elif tolerance is not None:
            num_workers = self._simulation.switch.num_workers
            if tolerance.lost(num_workers, source.num_chunks):
                left, limit = tolerance.budget(num_workers, source.num_chunks, self._worker_id)
                source.tolerance = ToleranceStruct(left=left, limit=limit)
            source.bitmaps = np.zeros(source.num_chunks, np.uint32)
        self.values.enqueue(source)

    @property
    def is_done(self) -> bool:
        if self._exponents is not None:
            return False
        return self._source is None or self.values.is_finished(self._source)

    @property
    def has_missed(self) -> bool:
        """Whether a result of the last tensor was gone; a session asks another worker for it."""
        return self._source is not None and self._source.has_missed

    @property
    def bitmaps(self) -> NDArray[np.uint32]:
        """The workers in each chunk of the last tensor."""
        source = self._source
        assert source is not None
        if source.bitmaps is None:
            everybody = (1 << self._simulation.switch.num_workers) - 1
            return np.full(source.num_chunks, everybody, "u4") * (source.contributors > 0)
        return source.bitmaps

    def check(self, num_workers: int) -> None:
        """Check that each sum is that of the workers that are said to be in it."""
        assert self._source is not None
        assert self.stale.sum() <= self._source.may_lose
        is_in = self.bitmaps[:, None] >> np.arange(num_workers, dtype=np.uint32) & 1
        np.testing.assert_array_equal(is_in.sum(axis=1), self._source.contributors)
        total = is_in @ np.arange(1, num_workers + 1)
        values = self._simulation.switch.values_per_packet
        given = np.arange(self._source.num_elements)
        if isinstance(self._source, FloatSource):
            given = self._given
        expected = given * np.repeat(total, values)
        is_here = np.repeat(~self.stale, values)
        np.testing.assert_array_equal(self._source.output.reshape(-1)[is_here], expected[is_here])

    @property
    def stale(self) -> NDArray[np.bool_]:
        """Chunks of the last tensor whose results this worker has done without."""
        assert self._source is not None
        return self._source.contributors == 0

    def compare(self, ledger: LossLedger | StaleLedger) -> None:
        """Have the ledger check what this worker has."""
        assert self._source is not None
        rows = self._source.output.reshape(self._source.num_chunks, -1)
        ledger.check(self._worker_id, rows, self.bitmaps)

    def send(self, datagrams: NDArray[np.uint8]) -> int:
        of = self._simulation
        for row in datagrams.copy():
            self._sent.append(row)

            def arrive(row: NDArray[np.uint8] = row) -> None:
                packet = view_datagrams(row[None, :], of.switch.values_per_packet)
                if of.ledger is not None:
                    of.ledger.note_arrived(self._worker_id, Packet.of(packet[0]))
                outcome = of.switch.process(self._worker_id, packet)
                of.switch.outcomes[outcome] += 1
                header = packet["header"][0]
                is_value = header["operation"] == Operation.AGGREGATE_ADD
                if is_value and outcome in (Outcome.ABSORBED, Outcome.COMPLETED):
                    of.added[int(header["tensor_id"]), int(header["chunk_index"])].add(
                        self._worker_id
                    )

            self._link.send(arrive, is_lost=of.losses(self._worker_id, None, row))
        return len(datagrams)

    def take(self, row: NDArray[np.uint8]) -> None:
        if self._simulation.ledger is not None:
            packet = Packet.of(self._simulation.switch.packet(row))
            self._simulation.ledger.note_got(self._worker_id, packet)
        self._inbox.append(row)
        self._wake_at(max(self._simulation.now_s, self._awake_s + self._simulation.pause_s))

    def _show_sent(self) -> None:
        """Show the ledger what was sent; an error in the library's callback would be lost."""
        ledger, rows = self._simulation.ledger, self._sent
        self._sent = []
        for row in rows if ledger is not None else ():
            packet = Packet.of(self._simulation.switch.packet(row))
            ledger.note_sent(self._worker_id, packet)

    def _wake_at(self, when_s: float) -> None:
        if when_s < self._wakes_s:
            self._wakes_s = when_s
            self._simulation.at(when_s, lambda: self._wake(when_s))

    def _wake(self, when_s: float) -> None:
        if when_s != self._wakes_s:
            return  # another wake-up came before
        self._awake_s, self._wakes_s = when_s, np.inf
        if self._inbox:
            rows = np.array(self._inbox)
            self._inbox.clear()
            self.path.take(rows, when_s)
        self.path.keep_time(when_s)
        self._quantize()
        self.path.send(when_s)
        self._show_sent()
        if self.path.next_s < np.inf:
            self._wake_at(max(self.path.next_s, when_s + 1e-6))
