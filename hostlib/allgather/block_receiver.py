# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Receiving the blocks of other workers: chunks are put in sequence, handed over, and reported.

Chunks wait in a ring until all before them are there, and until this worker submits the allgather
that they belong to. Only chunks that an allgather has taken count as received. So a sender stops
when this worker is late.
"""

from __future__ import annotations

from collections import Counter, deque

import numpy as np
from numpy.typing import NDArray

from ..control.view import JobView
from ..errors import PeerMismatchError
from ..slots.wire import (
    HEADER_WORDS,
    MAX_WORKERS,
    WORD_CHUNK,
    WORD_END,
    WORD_TENSOR,
    Flag,
    Words,
    datagram_bytes,
)
from .allgather_task import AllgatherTask
from .packet import (
    WINDOW_CHUNKS,
    WORD_SEQUENCE,
    WORD_SIGNATURE,
    Headers,
    Receipts,
    ReportRow,
    unwrap,
)


class BlockReceiver:
    """The sequences of all other members."""

    def __init__(self, view: JobView, counters: Counter[str]) -> None:
        self._counters = counters
        self._values = view.values_per_packet
        self._others = [i for i in view.member_ids if i != view.worker_id]
        self._ids = np.array(self._others, np.uint32)
        self._row_of = np.zeros(MAX_WORKERS, np.int64)
        self._row_of[self._others] = np.arange(len(self._others))
        self._words = datagram_bytes(self._values) // 4
        self._ring: Words = np.empty((0, WINDOW_CHUNKS, self._words), np.uint32)
        self._is_here = np.zeros((len(self._others), WINDOW_CHUNKS), np.bool_)
        self._order = np.arange(2 * WINDOW_CHUNKS) % WINDOW_CHUNKS
        self._taken = np.zeros(len(self._others), np.int64)
        self._marks = np.zeros(len(self._others), np.int64)
        self._is_due = np.zeros(len(self._others), np.bool_)  # by member: a report is due
        self._tasks: deque[tuple[int, AllgatherTask]] = deque()  # not complete
        self._end = 0  # first chunk of each sequence that belongs to no allgather yet
        self._next_row = 0
        self.received = 0
        """Chunks that were new."""
        self.due_since_s: float | None = None
        """Since when a report is due; None if none is."""

    def enqueue(self, task: AllgatherTask, now_s: float) -> None:
        """Append an allgather, to which the next block of each member belongs."""
        self._tasks.append((self._end, task))
        self._end += task.num_chunks
        for row in range(len(self._others)):
            self._hand_over(row, now_s)
        self._forget_complete()

    def take(
        self, workers: NDArray[np.uint32], headers: Headers, words: Words, now_s: float
    ) -> int:
        """Take chunks of other members, one per row; return how many were new.

        Raises PeerMismatchError.
        """
        if not len(self._ring):
            self._ring = np.empty((len(self._others), WINDOW_CHUNKS, self._words), np.uint32)
        rows = self._row_of[workers]
        marked = headers[:, 0] & Flag.ECN_ECHO != 0
        if marked.any():
            np.add.at(self._marks, rows[marked], 1)
        sequence = unwrap(headers[:, WORD_SEQUENCE], self._taken[rows])
        ahead = sequence - self._taken[rows]
        is_fit = (ahead >= 0) & (ahead < WINDOW_CHUNKS)
        slots = sequence % WINDOW_CHUNKS
        is_new = is_fit & ~self._is_here[rows, slots]
        present = np.unique(rows)
        self._note_due(present, now_s)
        before = int(np.count_nonzero(self._is_here))
        if is_new.all():
            self._ring[rows, slots] = words
            self._is_here[rows, slots] = True
        else:
            self._ring[rows[is_new], slots[is_new]] = words[is_new]
            self._is_here[rows[is_new], slots[is_new]] = True
        count = int(np.count_nonzero(self._is_here)) - before
        self.received += count
        if count < len(rows):
            self._counters["duplicate"] += len(rows) - count
        for row in present.tolist():
            self._hand_over(row, now_s)
        self._forget_complete()
        return count

    def _note_due(self, rows: NDArray[np.int64], now_s: float) -> None:
        self._is_due[rows] = True
        if self.due_since_s is None:
            self.due_since_s = now_s

    def _hand_over(self, row: int, now_s: float) -> None:
        """Give allgathers the chunks of one member that have come without a gap."""
        for start, task in self._tasks:
            end = start + task.num_chunks
            while True:
                at = int(self._taken[row])
                slot = at % WINDOW_CHUNKS
                here = self._is_here[row, slot : min(WINDOW_CHUNKS, slot + end - at)]
                count = len(here) if here.all() else int(here.argmin())
                if at >= end or not count:
                    break
                chunks = self._ring[row, slot : slot + count]
                self._check(task, row, at - start, chunks)
                task.store(self._others[row], at - start, chunks[:, HEADER_WORDS:])
                here[:count] = False
                self._taken[row] += count
                self._note_due(np.array([row]), now_s)
            if self._taken[row] < end:
                return

    def _check(self, task: AllgatherTask, row: int, first: int, chunks: Words) -> None:
        """Raise PeerMismatchError if the other worker's headers are of another tensor."""
        headers = chunks[:, :HEADER_WORDS].byteswap()
        numbers = np.arange(first, first + len(chunks))
        ends = np.minimum((numbers + 1) * self._values, task.num_words)
        is_own = (
            (headers[:, WORD_TENSOR] == task.wire_id)
            & (headers[:, WORD_CHUNK] == numbers)
            & (headers[:, WORD_END] == ends)
            & (headers[:, WORD_SIGNATURE] & 0xFF == task.signature)
        )
        if not is_own.all():
            raise PeerMismatchError(
                f"tensor {task.tensor_id}: worker {self._others[row]} gathers something else there"
                f" (its tensor {int(headers[~is_own][0, WORD_TENSOR])}); all workers must submit"
                " the same sequence of shapes, dtypes and operations"
            )

    def _forget_complete(self) -> None:
        while self._tasks:
            start, task = self._tasks[0]
            if (self._taken < start + task.num_chunks).any():
                return
            task.future.times.note_last_result()
            self._tasks.popleft()

    @property
    def missing_workers(self) -> list[int]:
        """Workers whose blocks the oldest allgather waits for."""
        return self._tasks[0][1].missing_workers if self._tasks else []

    @property
    def has_gap(self) -> bool:
        """Whether chunks came beyond a missing one, or before their allgather."""
        return bool(self._is_here.any())

    def receipts(self, count: int, now_s: float) -> Receipts:
        """Return the receipts for the headers of `count` packets: one member after the other."""
        rows = (self._next_row + np.arange(count)) % len(self._others)
        self._next_row = int(rows[-1] + 1) % len(self._others)
        is_told = np.zeros(len(self._others), np.bool_)
        is_told[rows] = True
        # Gaps need a whole report.
        self._is_due &= ~is_told | self._is_here.any(axis=1)
        self.due_since_s = now_s if self._is_due.any() else None
        received = (self._taken[rows] & 0xFFFFFFFF).astype(np.uint32)
        return self._ids[rows], received, (self._marks[rows] & 0xFF).astype(np.uint32)

    def rows_due(self, most: int) -> list[ReportRow]:
        """Return at most `most` rows of a report that is due; they count as reported then."""
        rows: list[int] = np.flatnonzero(self._is_due)[:most].tolist()
        self._is_due[rows] = False
        if not self._is_due.any():
            self.due_since_s = None
        return [
            ReportRow(
                worker_id=self._others[row],
                marks=int(self._marks[row]) & 0xFF,
                received=int(self._taken[row]),
                is_held=self._is_here[row, self._order[slot : slot + WINDOW_CHUNKS]],
            )
            for row in rows
            for slot in [int(self._taken[row]) % WINDOW_CHUNKS]
        ]
