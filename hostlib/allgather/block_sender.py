# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One worker's sequence of chunks to all others: window, receipts, retransmissions.

A chunk stays in the ring until every other member has it, in sequence. So a block may be forgotten
once all of its chunks were sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..control.view import JobView
from ..native.congestion import CongestionWindow
from ..native.rtt import RoundTripTimer
from ..options import SessionOptions
from ..slots.wire import (
    HEADER_WORDS,
    WORD_CHUNK,
    WORD_END,
    WORD_START,
    WORD_TENSOR,
    WORD_TREE,
    Flag,
    datagram_bytes,
)
from ..transports.base import Transport
from .allgather_task import AllgatherTask
from .packet import (
    MAX_DELAY_S,
    WINDOW_CHUNKS,
    WORD_RECEIVED,
    WORD_SEQUENCE,
    WORD_SIGNATURE,
    Headers,
    Receipts,
    ReportRow,
    header_template,
    unwrap,
)

INITIAL_CHUNKS = 16
"""Least window of all workers together that send to the same ports, and their first one."""
MINIMUM_WINDOW = 4
"""Least window of one worker: chunks after a lost one show the loss."""
MAX_BACKOFF = 8
STORM_LIMIT = 8
"""Chunks sent again when nothing at all comes back."""


def largest_window(window: int, num_others: int) -> int:
    """Return the largest window of one worker, as a share of a session's window.

    All members send to the same ports at a time.
    """
    return max(MINIMUM_WINDOW, min(WINDOW_CHUNKS, window // max(1, num_others)))


@dataclass(kw_only=True)
class SenderCounters:
    """What was sent of this worker's blocks, in packets."""

    sent: int = 0
    """First transmissions."""
    retransmitted: int = 0
    marked: int = 0
    """Chunks that members say met congestion, summed over the members."""


class BlockSender:
    """Sends blocks; each packet also says what this worker has received of another one."""

    def __init__(
        self,
        view: JobView,
        transport: Transport,
        options: SessionOptions,
        receipts: Callable[[int, float], Receipts],
    ) -> None:
        self.counters = SenderCounters()
        self._transport = transport
        self._receipts = receipts
        self._values = view.values_per_packet
        others = [i for i in view.member_ids if i != view.worker_id]
        self._others = others
        self._rows = {worker_id: row for row, worker_id in enumerate(others)}
        self._timer = RoundTripTimer(
            initial_s=options.initial_rto_s,
            minimum_s=options.min_rto_s,
            maximum_s=options.max_rto_s,
        )
        least = max(MINIMUM_WINDOW, INITIAL_CHUNKS // max(1, len(others)))
        self._window = CongestionWindow(
            largest_window(options.window, len(others)), initial=least, minimum=least
        )
        self._template = header_template(view)
        self._ring = np.zeros((0, datagram_bytes(self._values)), np.uint8)
        self._is_held = np.ones((len(others), WINDOW_CHUNKS), np.bool_)
        self._taken = np.zeros(len(others), np.int64)  # chunks received in sequence, by member
        self._marks = np.zeros(len(others), np.int64)
        self._sent_at_s = np.zeros(WINDOW_CHUNKS)
        self._is_again = np.zeros(WINDOW_CHUNKS, np.bool_)
        self._blocks: deque[tuple[int, AllgatherTask]] = deque()  # not sent to the end
        self._maximum_s = options.max_rto_s
        self._expiries = 0  # since a chunk was taken by all
        self._base = 0  # every member has taken all chunks below
        self._next = 0  # first chunk not sent yet
        self._end = 0  # first chunk that no block has claimed
        self.expiry_s = np.inf
        """When `keep_time` is to be called next."""

    def enqueue(self, task: AllgatherTask) -> None:
        """Append a block to the sequence."""
        if not self._others:
            task.note_sent()
            return
        if not len(self._ring):
            self._ring = np.zeros((WINDOW_CHUNKS, self._ring.shape[1]), np.uint8)
            words = self._ring.view(">u4")
            self._headers = words[:, :HEADER_WORDS]
            self._lanes = self._ring.view(np.uint32)[:, HEADER_WORDS:]
        self._blocks.append((self._end, task))
        self._end += task.num_chunks

    @property
    def outstanding(self) -> int:
        """Chunks that were sent and that some member has not taken."""
        return self._next - self._base

    @property
    def window(self) -> int:
        """Most chunks that may be outstanding now."""
        return self._window.limit

    @property
    def round_trip_s(self) -> float:
        """Smoothed time until a member says that it has a chunk, 0 before the first."""
        return self._timer.smoothed_s or 0.0

    @property
    def lagging_workers(self) -> list[int]:
        """Members that have not taken all that was sent."""
        return [self._others[row] for row in np.flatnonzero(self._taken < self._next).tolist()]

    def pump(self, now_s: float) -> bool:
        """Send what the window allows; return False when the transport took less."""
        while self._blocks:
            room = min(self._window.limit, WINDOW_CHUNKS) - self.outstanding
            start, task = self._blocks[0]
            first, slot = self._next - start, self._next % WINDOW_CHUNKS
            count = min(room, task.num_chunks - first, WINDOW_CHUNKS - slot)
            if count <= 0:
                return True
            self._write(task, first, slot, count, now_s)
            sent = self._transport.send(self._ring[slot : slot + count])
            self._note_sent(slot, sent, now_s)
            if sent:
                task.future.times.note_first_packet()
            if first + sent == task.num_chunks:
                task.note_sent()
                self._blocks.popleft()
            if sent < count:
                return False
        return True

    def _write(self, task: AllgatherTask, first: int, slot: int, count: int, now_s: float) -> None:
        headers = np.repeat(self._template[None, :], count, axis=0)
        chunks = np.arange(first, first + count)
        headers[:, WORD_SEQUENCE] = (self._next + chunks - first) & 0xFFFFFFFF
        headers[:, WORD_TENSOR] = task.wire_id
        headers[:, WORD_CHUNK] = chunks
        headers[:, WORD_START] = chunks * self._values
        headers[:, WORD_END] = np.minimum((chunks + 1) * self._values, task.num_words)
        headers[:, WORD_SIGNATURE] |= task.signature
        if first + count == task.num_chunks:
            headers[-1, 0] |= Flag.LAST
        self._add_receipts(headers, now_s)
        place = slice(slot, slot + count)
        self._headers[place] = headers
        self._lanes[place] = task.chunks[first : first + count]

    def _add_receipts(self, headers: Headers, now_s: float) -> None:
        """Write the present receipts into headers, over older ones."""
        workers, received, marks = self._receipts(len(headers), now_s)
        headers[:, WORD_TREE] = headers[:, WORD_TREE] & 0xFFFFFF00 | workers
        headers[:, WORD_RECEIVED] = received
        headers[:, WORD_SIGNATURE] = headers[:, WORD_SIGNATURE] & 0xFFFF00FF | marks << 8

    def _note_sent(self, slot: int, count: int, now_s: float) -> None:
        place = slice(slot, slot + count)
        self._is_held[:, place] = False
        self._sent_at_s[place] = now_s
        self._is_again[place] = False
        if not self.outstanding and count:
            self.expiry_s = now_s + self._timeout_s
        self._next += count
        self.counters.sent += count

    def take_receipts(self, receipts: Receipts, now_s: float) -> None:
        """Learn from the headers of members how many of this worker's chunks they have."""
        workers, received, marks = receipts
        marked = 0
        for worker_id in np.unique(workers).tolist():
            row, is_own = self._rows[worker_id], np.asarray(workers == worker_id)
            known = np.full(np.count_nonzero(is_own), self._taken[row])
            self._note_taken(row, int(unwrap(received[is_own], known).max()), now_s)
            marked += self._take_marks(row, marks[is_own])
        self._advance(marked, now_s)

    def take_report(self, worker_id: int, report: ReportRow, now_s: float) -> None:
        """Learn from a member which chunks of this worker it has, and send the lost ones again."""
        row = self._rows[worker_id]
        near = self._taken[row : row + 1]
        start = int(unwrap(np.array([report.received], np.uint32), near)[0])
        self._note_taken(row, start, now_s)
        held = np.flatnonzero(report.is_held) + start
        held = held[(held >= self._taken[row]) & (held < self._next)]
        self._acknowledge(row, held, now_s)
        self._advance(self._take_marks(row, np.array([report.marks], np.uint32)), now_s)
        under_way = np.arange(int(self._taken[row]), self._next)
        lost = under_way[~self._is_held[row, under_way % WINDOW_CHUNKS]]
        if not len(lost):
            return
        # A chunk is late if a later one has come; the rest may be under way.
        last = int(held[-1]) if len(held) else -1
        age_s = now_s - self._sent_at_s[lost % WINDOW_CHUNKS]
        lost = lost[age_s > np.where(lost < last, self.round_trip_s, self._timer.steady_s)]
        if len(lost):
            self._window.on_loss(self.outstanding)
            self._send_again(lost, now_s)

    def _note_taken(self, row: int, taken: int, now_s: float) -> None:
        """Note that a member has so many chunks without a gap; the news may be outdated."""
        taken = min(taken, self._next)
        if taken > self._taken[row]:
            self._acknowledge(row, np.arange(int(self._taken[row]), taken), now_s)
            self._taken[row] = taken

    def _acknowledge(self, row: int, chunks: NDArray[np.int64], now_s: float) -> None:
        """Note that a member holds chunks, whether or not it has taken them."""
        slots = chunks % WINDOW_CHUNKS
        slots = slots[~self._is_held[row, slots]]
        self._is_held[row, slots] = True
        # Chunks that were sent again, and those that waited for them, yield no round trip.
        if len(slots) and not self._is_again[slots].any():
            self._timer.add_sample(now_s - float(self._sent_at_s[slots[-1]]))

    def _take_marks(self, row: int, marks: NDArray[np.uint32]) -> int:
        more = (marks.astype(np.int64) - self._marks[row]) & 0xFF
        fresh = int(more[more < 128].max(initial=0))  # the others are from before
        self._marks[row] += fresh
        self.counters.marked += fresh
        return fresh

    def _advance(self, marked: int, now_s: float) -> None:
        """Move the base beyond the chunks that all members have taken."""
        base, before = int(self._taken.min()), self.outstanding
        count = base - self._base
        if count:
            self._base = base
            self._expiries = 0
            is_idle = base == self._next
            self.expiry_s = np.inf if is_idle else now_s + self._timeout_s
        if count or marked:
            self._window.on_results(count, marked, before)

    @property
    def _timeout_s(self) -> float:
        """Retransmission timeout: receipts may be delayed, and only progress ends a back-off."""
        steady_s = self._timer.steady_s + min(MAX_DELAY_S, self.round_trip_s)
        backed_off_s = steady_s * (1 << min(self._expiries, MAX_BACKOFF))
        return min(max(self._maximum_s, steady_s), backed_off_s)

    def keep_time(self, now_s: float) -> None:
        """Send chunks again if no member has taken any for too long."""
        if now_s < self.expiry_s:
            return
        under_way = np.arange(self._base, self._next)
        missing = under_way[~self._is_held[:, under_way % WINDOW_CHUNKS].all(axis=0)]
        if not len(missing):
            # All members hold the chunks. They have not submitted the allgather yet, or their
            # receipts were lost: one chunk makes them report.
            missing = under_way[:1]
        elif len(missing) < len(under_way):
            self._window.on_loss(self.outstanding)
        self._expiries += 1
        self._send_again(missing[:STORM_LIMIT], now_s)
        self.expiry_s = now_s + self._timeout_s

    def _send_again(self, chunks: NDArray[np.int64], now_s: float) -> None:
        slots = chunks % WINDOW_CHUNKS
        headers = self._headers[slots].astype(np.uint32)
        self._add_receipts(headers, now_s)
        self._headers[slots] = headers
        self._is_again[slots] = True
        sent = self._transport.send(self._ring[slots])
        self._sent_at_s[slots[:sent]] = now_s
        self.counters.retransmitted += sent
