# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Which rounds of each hot row are decided, and which of them counted which worker.

A worker pushes in round `next` or `next` + 1 of a row, `next` being the lowest round that it does
not know to be decided. So all rounds from the server's `next` + 2 on are empty, and a worker has at
most two undecided pushes of a row: the last two rounds that counted it answer all its questions.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ...errors import StorageDamagedError
from ...peers.frames import DECISION_DTYPE
from ...slots.wire import MAX_WORKERS

U32 = NDArray[np.uint32]
MOST_ROWS: Final = 1 << 16
"""Row numbers are below it, which bounds the memory: 512 bytes per row with 32 workers."""
_BOTH: Final = 3
_HEAD: Final = struct.Struct("<IIII")
_ROW: Final = np.dtype([("next", "<u4"), ("is_ahead", "<u4")])


def count_workers(bitmaps: U32) -> NDArray[np.int64]:
    """Return how many workers each bitmap names."""
    return (bitmaps[:, None] >> np.arange(MAX_WORKERS, dtype=np.uint32) & 1).sum(axis=1)


class RowsOfRounds(NamedTuple):
    """Rounds, each of a row; both arrays have the same length."""

    rows: U32
    rounds: U32

    def where(self, which: NDArray[np.bool_]) -> RowsOfRounds:
        """Return some of them."""
        return RowsOfRounds(self.rows[which], self.rounds[which])


@final
class RowRounds:
    """The rounds of all rows by their number, for one generation at a time.

    A round is first *claimed*: no other sum of it counts any more. When the record that says so is
    durable, it is *decided*. Claims are in memory alone, and decisions come from the log.
    """

    def __init__(self, num_workers: int) -> None:
        self.generation = 0
        self.next: U32 = np.empty(0, np.uint32)
        """By row, the lowest round that is not decided."""
        self.is_ahead: NDArray[np.bool_] = np.empty(0, np.bool_)
        """By row, whether round `next` + 1 is decided."""
        self._claimed: NDArray[np.uint8] = np.empty(0, np.uint8)  # bit 0: next, bit 1: next + 1
        num_workers = min(num_workers, MAX_WORKERS)
        self.counted: NDArray[np.uint64] = np.empty((0, num_workers, 2), np.uint64)
        """By row and worker, the last two rounds that counted it: generation * 2^32 + round."""

    def make_rows(self, num_rows: int) -> None:
        """Have rows 0 to `num_rows` - 1, at least; new ones begin at round 1."""
        missing = num_rows - self.next.size
        if missing <= 0:
            return
        self.next = np.concatenate([self.next, np.ones(missing, np.uint32)])
        self.is_ahead = np.concatenate([self.is_ahead, np.zeros(missing, np.bool_)])
        self._claimed = np.concatenate([self._claimed, np.zeros(missing, np.uint8)])
        more = np.zeros((missing, *self.counted.shape[1:]), np.uint64)
        self.counted = np.concatenate([self.counted, more])

    def start_generation(self, generation: int) -> None:
        """Begin with round 1 of all rows; all rounds of other generations count as decided."""
        if generation < self.generation:
            self.counted[:] = 0  # the higher number is the newer round only while they rise
        self.generation = generation
        self.next[:] = 1
        self.is_ahead[:] = False
        self._claimed[:] = 0

    def forget_worker(self, worker_id: int) -> None:
        """Learn that a worker has a new process, which asks for no push of the old one."""
        if worker_id < self.counted.shape[1]:
            self.counted[:, worker_id] = 0

    def claim(self, asked: RowsOfRounds) -> NDArray[np.bool_]:
        """Claim rounds; return which were free: of rounds that repeat, the first."""
        is_free = self._is_first_free(asked, self._claimed)
        rows, rounds = asked.where(is_free)
        is_second = rounds != self.next[rows]
        self._claimed[rows[~is_second]] |= 1
        self._claimed[rows[is_second]] |= 2
        return is_free

    def claim_open(self, rows: U32) -> RowsOfRounds:
        """Claim all rounds of some rows that are free; return them."""
        firsts = rows[self._claimed[rows] & 1 == 0]
        seconds = rows[self._claimed[rows] & 2 == 0]
        claimed = RowsOfRounds(
            np.concatenate([firsts, seconds]),
            np.concatenate([self.next[firsts], self.next[seconds] + np.uint32(1)]),
        )
        self._claimed[rows] = _BOTH
        return claimed

    def is_undecided(self, asked: RowsOfRounds) -> NDArray[np.bool_]:
        """Return which rounds are not decided, of those that a worker may have used."""
        return self._is_first_free(asked, self._decided_bits())

    def is_decided(self, asked: RowsOfRounds) -> NDArray[np.bool_]:
        """Return which rounds of known rows are decided."""
        offsets = asked.rounds - self.next[asked.rows]  # modulo 2^32: large before `next`
        return (offsets >= 1 << 31) | ((offsets == 1) & self.is_ahead[asked.rows])

    def decide(self, decided: RowsOfRounds, bitmaps: U32) -> NDArray[np.bool_]:
        """Decide rounds that count the workers of a bitmap; return which were undecided."""
        is_new = self._is_first_free(decided, self._decided_bits())
        new, bitmaps = decided.where(is_new), bitmaps[is_new]
        is_second = new.rounds != self.next[new.rows]
        for which in (is_second, ~is_second):  # each row once
            self._count(new.where(which), bitmaps[which])
        self.is_ahead[new.rows[is_second]] = True
        self._claimed[new.rows[is_second]] |= 2
        rows = new.rows[~is_second]
        steps = 1 + self.is_ahead[rows].astype(np.uint8)
        self.next[rows] += steps
        self._claimed[rows] >>= steps
        self.is_ahead[rows] = False
        return is_new

    def decide_open(self, rows: U32) -> NDArray[np.void]:
        """Decide all rounds of some rows up to `next` + 1, without workers; return them."""
        seconds = rows[~self.is_ahead[rows]]
        decided = np.zeros(rows.size + seconds.size, DECISION_DTYPE)
        decided["row"] = np.concatenate([rows, seconds])
        decided["round"] = np.concatenate([self.next[rows], self.next[seconds] + np.uint32(1)])
        self.next[rows] += np.uint32(2)
        self.is_ahead[rows] = False
        self._claimed[rows] = 0
        return decided

    def counts(self, asked: RowsOfRounds, worker_id: int, generation: int) -> NDArray[np.bool_]:
        """Return which rounds of a generation counted a worker, if they are among its last two."""
        has_counted = asked.rows < self.next.size
        if worker_id >= self.counted.shape[1]:
            has_counted[:] = False
        known = asked.where(has_counted)
        marks = np.uint64(generation << 32) | known.rounds.astype(np.uint64)
        counted = self.counted[known.rows, worker_id] if known.rows.size else np.empty((0, 2))
        has_counted[has_counted] = (counted == marks[:, None]).any(axis=1)
        return has_counted

    def pack(self) -> bytes:
        """Return what is decided as bytes for `restore`."""
        rows = np.zeros(self.next.size, _ROW)
        rows["next"], rows["is_ahead"] = self.next, self.is_ahead
        head = _HEAD.pack(self.generation, self.next.size, self.counted.shape[1], 0)
        return head + rows.tobytes() + self.counted.tobytes()

    def restore(self, data: memoryview) -> None:
        """Take what `pack` returned; nothing is claimed. Raises StorageDamagedError."""
        try:
            generation, num_rows, num_workers, _ = _HEAD.unpack_from(data)
            shape = (num_rows, num_workers, 2)
            if num_rows > MOST_ROWS or shape[1:] != self.counted.shape[1:]:
                raise ValueError(f"{num_rows} hot rows of {num_workers} workers")
            rows = np.frombuffer(data, _ROW, num_rows, _HEAD.size)
            counted = np.frombuffer(data, np.uint64, offset=_HEAD.size + rows.nbytes)
            self.counted = counted.reshape(shape).copy()
        except (struct.error, ValueError) as error:
            raise StorageDamagedError(f"rounds of hot rows in a snapshot: {error}") from error
        self.generation = generation
        self.next = rows["next"].astype(np.uint32)
        self.is_ahead = rows["is_ahead"] != 0
        self._claimed = self._decided_bits()

    def _decided_bits(self) -> NDArray[np.uint8]:
        return self.is_ahead.astype(np.uint8) << np.uint8(1)

    def _is_first_free(self, asked: RowsOfRounds, taken: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Return which rounds are `next` or the one after it, are not taken, and do not repeat."""
        is_free = asked.rows < self.next.size
        known = np.flatnonzero(is_free)
        rows = asked.rows[known]
        offsets = asked.rounds[known] - self.next[rows]  # modulo 2^32: large before `next`
        is_free[known] = (offsets < 2) & (taken[rows] >> np.minimum(offsets, 1) & 1 == 0)
        free = known[is_free[known]]
        codes = asked.rows[free].astype(np.uint64) << np.uint64(32) | asked.rounds[free]
        _, firsts = np.unique(codes, return_index=True)
        is_free[:] = False
        is_free[free[firsts]] = True
        return is_free

    def _count(self, counted: RowsOfRounds, bitmaps: U32) -> None:
        """Note the workers that rounds of different rows have counted."""
        workers = np.arange(self.counted.shape[1], dtype=np.uint32)
        is_named = (bitmaps[:, None] >> workers & 1).astype(np.bool_)
        marks = np.uint64(self.generation << 32) | counted.rounds.astype(np.uint64)
        before = self.counted[counted.rows]
        lower, higher = before[:, :, 0], before[:, :, 1]
        marks = np.where(is_named, marks[:, None], np.uint64(0))  # 0 changes nothing
        after = np.empty_like(before)
        after[:, :, 0] = np.maximum(lower, np.minimum(higher, marks))
        after[:, :, 1] = np.maximum(higher, marks)
        self.counted[counted.rows] = after
