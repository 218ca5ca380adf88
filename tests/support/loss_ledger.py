# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A second account of sums that may lack a share, kept from the packets alone.

It shares no code with the host library: budgets, debits, who may flush, and what results hold are
computed here once more, by docs/protocol.md, from what workers send and get.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from switchfold.hostlib.slots.wire import Operation

CONTRIBUTION = int(Operation.AGGREGATE_ADD)


Values = tuple[int, ...]


class Packet(NamedTuple):
    """What the ledger reads of a packet: `wire.HEADER_DTYPE` says what the fields are."""

    operation: int
    slot: int
    round: int
    tensor: int
    chunk: int
    bitmap: int
    contributors: int
    expected: int
    values: Values
    exponent: int = 0

    @classmethod
    def of(cls, packet: NDArray[np.void]) -> Packet:
        """Take a datagram's fields."""
        header = packet["header"]
        names = ("operation", "slot_index", "round", "tensor_id", "chunk_index", "worker_bitmap")
        names += ("num_contributors", "expected")
        fields = (int(header[name]) for name in names)
        return cls(*fields, tuple(packet["values"].tolist()), int(header["exponent"]))


def parts(total: int, num_workers: int) -> list[int]:
    """Split a number; the first parts are larger by one."""
    return [(total + num_workers - 1 - worker) // num_workers for worker in range(num_workers)]


@dataclass
class _Chunk:
    """What has been seen of one chunk."""

    round: int = 0
    sent: set[int] = field(default_factory=set[int])
    """Who has sent its contribution."""
    arrived: set[int] = field(default_factory=set[int])
    """Whose contribution came to the switch before the round closed."""
    paid: defaultdict[int, int] = field(default_factory=lambda: defaultdict[int, int](int))
    """By worker, whose flushes say it."""
    flushed: int = 0
    """The most that was paid, by a flush that came to the switch."""
    members: int = 0
    """Bitmap of its result; 0: it is not closed."""
    had: set[int] = field(default_factory=set[int])
    """Who got its result."""
    missed: set[int] = field(default_factory=set[int])
    """Who got a notice instead."""

    def lacking(self, num_workers: int) -> int:
        """Return how many contributions its result lacks."""
        return num_workers - self.members.bit_count()


class LossLedger:
    """Watches the packets of one job over one switch with one tree; AssertionError says what."""

    def __init__(
        self, num_workers: int, num_slots: int, *, loss: float, worker_floor: float | None
    ) -> None:
        """`num_slots`: those of values."""
        self._num_workers, self._num_slots = num_workers, num_slots
        self._loss = Fraction(str(loss))
        floor = None if worker_floor is None else Fraction(str(worker_floor))
        self._floor = max(Fraction(0), 1 - 2 * self._loss) if floor is None else floor
        self._values: list[list[Values]] = []
        self._chunks: list[_Chunk] = []
        self._tensor = self._first_place = 0
        self._large = set[int]()
        self._missing: list[int] = []
        self._waiting: dict[tuple[int, int], _Chunk] = {}  # by worker and slot: sent last
        self._lenient_from = [0] * num_workers  # place of the first chunk that each may close
        self.num_flushes = self.num_lacking = self.num_missed = 0
        """Of all tensors: flushes seen, contributions that results lack, results that were gone."""

    def begin(
        self, tensor: int, values: NDArray[np.int64], large: NDArray[np.bool_] | None = None
    ) -> None:
        """Expect a tensor; `values` by worker, chunk, lane. All workers are done with the last.

        Nothing of `large` chunks may be let go.
        """
        self._first_place += len(self._chunks)
        self._tensor = tensor
        self._values = [[tuple(chunk) for chunk in of_worker] for of_worker in values.tolist()]
        self._chunks = [_Chunk() for _ in self._values[0]]
        self._missing = [0] * self._num_workers  # in rounds that have closed
        self._waiting.clear()
        self._large = set[int]() if large is None else set(np.flatnonzero(large).tolist())
        count = len(self._chunks)
        self._may_lack = int(self._loss * self._num_workers * count)
        self._may_lack_of_one = int((1 - self._floor) * count)
        self._spendable = parts(self._may_lack, self._num_workers)
        self._spendable_of_one = parts(self._may_lack_of_one, self._num_workers)

    def _chunk(self, packet: Packet) -> _Chunk | None:
        """Return the chunk that a packet is about; None: late, of an earlier tensor."""
        return self._chunks[packet.chunk] if packet.tensor == self._tensor else None

    def note_sent(self, worker: int, packet: Packet) -> None:
        """See what a worker sends, whether it arrives or not."""
        number, chunk = packet.chunk, self._chunk(packet)
        assert chunk is not None, "a worker is done with the tensor before"
        if packet.operation == CONTRIBUTION:
            assert packet.bitmap == 1 << worker
            assert packet.values == self._values[worker][number]
            chunk.sent.add(worker)
            chunk.round = packet.round
            assert chunk.round == (self._first_place + number) // self._num_slots + 1
            self._waiting[worker, packet.slot] = chunk
            return
        assert packet.operation == Operation.FLUSH
        self.num_flushes += 1
        what = f"worker {worker} flushes chunk {number} of {len(self._chunks)}"
        assert worker in chunk.sent, f"{what}, to which it has not contributed"
        turn = (worker - number) % self._num_workers
        assert turn <= 1, f"{what}, which is not its to close"
        assert number not in self._large, f"{what}, of large values"
        chunk.paid[worker] += 1
        expected = self._num_workers - chunk.paid[worker]
        assert packet.expected == expected >= 1, f"{what}, and says {packet.expected}"
        assert self._spent(worker) <= self._spendable[worker], f"{what}, with nothing left"
        for other in range(self._num_workers):
            of_one = self._spent_of_one(worker, other)
            assert of_one <= self._spendable_of_one[worker], f"{what}, and may lack {other} again"
        is_whole = self._first_place + number >= self._lenient_from[worker]
        assert is_whole, f"{what}, and has missed a result that others may miss then"

    def _spent(self, worker: int) -> int:
        """Return what a worker has paid for, less what its results show not to be missing."""
        spent = 0
        for chunk in self._chunks:
            paid = chunk.paid.get(worker, 0)
            spent += min(paid, chunk.lacking(self._num_workers)) if worker in chunk.had else paid
        return spent

    def _spent_of_one(self, worker: int, other: int) -> int:
        """Return how many chunks that a worker has paid for lack another one, or may do so."""
        return sum(
            worker not in chunk.had or not chunk.members >> other & 1
            for chunk in self._chunks
            if chunk.paid.get(worker, 0)
        )

    def note_arrived(self, worker: int, packet: Packet) -> None:
        """See what comes to the switch, before it does anything."""
        chunk = self._chunk(packet)
        if chunk is None or chunk.members:
            return
        if packet.operation == CONTRIBUTION:
            chunk.arrived.add(worker)
        elif len(chunk.arrived) >= packet.expected:
            chunk.flushed = self._num_workers - packet.expected

    def note_answered(self, packet: Packet) -> None:
        """See what the switch sends: each result is the sum of what had arrived, to the bit."""
        chunk = self._chunk(packet)
        if chunk is None or packet.operation != Operation.RESULT:
            return
        if not chunk.members:
            chunk.members = sum(1 << worker for worker in chunk.arrived)
            self.num_lacking += chunk.lacking(self._num_workers)
            self._check_bounds(chunk)
        what = f"result of chunk {packet.chunk} of {len(self._chunks)}"
        assert packet.bitmap == chunk.members, what
        assert packet.contributors == chunk.members.bit_count(), what
        assert packet.values == self._sum(packet.chunk, chunk), what

    def _sum(self, number: int, chunk: _Chunk) -> Values:
        """Return the sum of what had arrived of a chunk."""
        return tuple(map(sum, zip(*(self._values[w][number] for w in chunk.arrived), strict=True)))

    def _check_bounds(self, closed: _Chunk) -> None:
        """Check a round that has closed: what it lacks, and what the tensor lacks by now."""
        lacking = closed.lacking(self._num_workers)
        assert lacking <= closed.flushed <= sum(closed.paid.values()), "it was not paid for"
        for worker in range(self._num_workers):
            self._missing[worker] += not closed.members >> worker & 1
            assert self._missing[worker] <= self._may_lack_of_one, f"worker {worker}"
        assert sum(self._missing) <= self._may_lack

    def note_got(self, worker: int, packet: Packet) -> None:
        """See what comes to a worker: a result, or a notice of the slot's copy."""
        if packet.operation == Operation.RESULT:
            chunk = self._chunk(packet)
            if chunk is not None and worker not in chunk.missed:
                chunk.had.add(worker)
            return
        chunk = self._waiting.get((worker, packet.slot))
        if chunk is None or worker in chunk.had | chunk.missed:
            return
        ahead = packet.round - chunk.round
        if ahead > 0 and ahead % 2 == 0:
            chunk.missed.add(worker)
            self.num_missed += 1
            self._lenient_from[worker] = self._first_place + len(self._chunks) + self._num_slots

    def check(self, worker: int, output: NDArray[Any], bitmaps: NDArray[Any]) -> None:
        """Compare what a worker has in the end, but for results that were gone."""
        rows, members = output.tolist(), bitmaps.tolist()
        for number, chunk in enumerate(self._chunks):
            if worker in chunk.missed:
                continue
            assert members[number] == chunk.members, f"chunk {number} at worker {worker}"
            assert tuple(rows[number]) == self._sum(number, chunk), f"chunk {number}"

    def check_whole(self) -> None:
        """Check that some worker has all results, so that the others can have them from it."""
        missed = {worker for chunk in self._chunks for worker in chunk.missed}
        assert len(missed) < self._num_workers, "all workers have missed results of a tensor"
