# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""An endless sequence of chunks over a range of slots: window, sending, results, retransmission.

Chunk k of the sequence uses slot k % n and round k // n + 1, on every worker alike. Chunks are sent
in order; chunk k waits until the result of chunk k - n is there: that is the slot protocol's rule.
Slots are the view's, over all of its trees; headers carry the tree's id and its own slot number.
The ring holds the datagram of each slot's latest chunk: it is sent from there, and sent again.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..control.view import JobView
from ..engine.straggler_timeout import StragglerTimeout
from ..summation.chunks import BLOCK_CHUNKS, ChunkSource
from ..transports.base import Transport
from .congestion import CongestionWindow
from .datagram_ring import (
    HEADER_WORDS,
    WORD_CHUNK,
    WORD_CONTRIBUTORS,
    WORD_ROUND,
    WORD_TENSOR,
    DatagramRing,
    Words,
)
from .loss_recovery import LossRecovery
from .rtt import RoundTripTimer
from .slot_map import SlotMap
from .wire import Flag, Operation

OPERATION_BYTE = 1
FLAGS_BYTES = slice(2, 4)
_TOLD_FLAGS = int(Flag.REPLAY | Flag.ECN_ECHO | Flag.FLUSHED)
"""Flags of results that need a closer look."""


@dataclass(kw_only=True)
class StreamCounters:
    """What a stream sent and received, in packets."""

    sent: int = 0
    """First transmissions."""
    retransmitted: int = 0
    fast_retransmitted: int = 0
    """Of these, as later results had shown the loss."""
    probe_retransmitted: int = 0
    """Of these, after silence; all others when a timer ran out."""
    received: int = 0
    """Results taken."""
    replayed: int = 0
    """Of these, answers to retransmissions."""
    flushed: int = 0
    """Flushes sent for rounds that waited too long."""
    marked: int = 0
    """Of these, with ECN_ECHO: a contribution met congestion."""


@dataclass(frozen=True, kw_only=True)
class Pacing:
    """How many chunks a stream may have under way, and when it sends one again."""

    timer: RoundTripTimer
    window: CongestionWindow
    straggler_timeout: StragglerTimeout | None = None
    """None: the job waits for all workers."""


class SlotStream:
    """One operation's chunk sequence over a range of a view's slots."""

    def __init__(
        self,
        view: JobView,
        transport: Transport,
        operation: Operation,
        slots: range,
        *,
        slot_map: SlotMap,
        pacing: Pacing,
    ) -> None:
        slot_count = len(slots)
        timer = pacing.timer
        self.counters = StreamCounters()
        self.first_slot = slots.start
        self.slot_count = slot_count
        self._view = view
        self._transport = transport
        self._timer = timer
        self._straggler_timeout = pacing.straggler_timeout
        self._since_s = 0.0  # since when the tensor that is being prepared is under way
        self._window = pacing.window
        self._ring = DatagramRing(view, operation, slot_map, slots)
        self._datagrams = self._ring.datagrams
        own_tree_ids = slot_map.tree_ids[slots.start : slots.stop]
        tree_of_row = np.unique(own_tree_ids, return_inverse=True)[1]
        self._recovery = LossRecovery(tree_of_row, timer)
        self._ring_order = np.arange(2 * slot_count) % slot_count
        self._is_busy = np.zeros(slot_count, np.bool_)
        self._is_withheld = np.zeros(slot_count, np.bool_)
        self._has_withheld = False  # whether any of these may be set
        self._active: deque[tuple[int, ChunkSource]] = deque()
        self._filling: deque[tuple[int, ChunkSource]] = deque()
        self._unsent: deque[tuple[int, ChunkSource]] = deque()
        self._unfinished: set[int] = set()  # identities of the active sources
        self._abandoned: set[int] = set()  # of these, whose results came another way
        self._gaps: deque[tuple[int, int]] = deque()  # chunks of these that are not to be sent
        self._base = 0  # all chunks below have their results
        self._next = 0  # first chunk not sent yet
        self._prepared = 0  # first chunk whose datagram is not in the ring yet
        self._end = 0  # first chunk that no tensor has claimed
        self._outstanding = 0

    def enqueue(self, source: ChunkSource) -> None:
        """Append a tensor to the sequence."""
        entry = (self._end, source)
        self._active.append(entry)
        self._unfinished.add(id(source))
        self._filling.append(entry)
        self._unsent.append(entry)
        self._end += source.num_chunks

    @property
    def outstanding(self) -> int:
        """Chunks that were sent and have no result yet."""
        return self._outstanding

    @property
    def window(self) -> int:
        """Most chunks that may be without result now."""
        return self._window.limit

    @property
    def round_trip_s(self) -> float:
        """Smoothed round-trip time, 0 before the first measurement."""
        return self._timer.smoothed_s or 0.0

    @property
    def queueing_s(self) -> float:
        """Part of the smoothed round-trip time that queues and waiting account for."""
        return self._timer.queueing_s

    @property
    def next_expiry_s(self) -> float:
        """When `retransmit` is to be called next, at the latest."""
        if self._straggler_timeout is not None:
            return min(self._recovery.next_s, self._straggler_timeout.next_s)
        return self._recovery.next_s

    def num_done(self, source: ChunkSource) -> int:
        """Return how many chunks of an enqueued tensor, from its first, have their results."""
        for start, active in self._active:
            if active is source:
                return min(max(0, self._base - start), source.num_chunks)
        return source.num_chunks

    def oldest_datagram(self) -> NDArray[np.uint8] | None:
        """Return a copy of the datagram of the oldest chunk without result, or None."""
        if not self._outstanding:
            return None
        return self._datagrams[self._base % self.slot_count].copy()

    def outstanding_round(self, slot: int) -> int | None:
        """Return the round that a slot of the view waits for, or None for nothing."""
        row = slot - self.first_slot
        if not self._is_busy[row]:
            return None
        return int(self._ring.headers[row, WORD_ROUND])

    def outstanding_tensor(self, slot: int) -> int:
        """Return the tensor id of the latest chunk that a slot of the view carried."""
        return int(self._ring.headers[slot - self.first_slot, WORD_TENSOR])

    def abandon(self, source: ChunkSource) -> None:
        """Count all chunks of an enqueued tensor as done: its result came another way."""
        start = next((start for start, active in self._active if active is source), None)
        if start is None:
            return
        is_own = self._ring.headers[:, WORD_TENSOR] == source.tensor_id & 0xFFFFFFFF
        rows = np.flatnonzero(is_own & self._is_busy)
        self._release(rows)
        self._recovery.abandon(rows, is_idle=not self._outstanding)
        self._ring.forget(source)
        self._abandoned.add(id(source))
        self._filling = deque(entry for entry in self._filling if entry[1] is not source)
        self._unsent = deque(entry for entry in self._unsent if entry[1] is not source)
        self._gaps = deque(sorted([*self._gaps, (start, start + source.num_chunks)]))
        self._jump()
        self._advance()

    def _jump(self) -> None:
        """Step over chunks that are not to be sent."""
        while self._gaps and self._gaps[0][0] <= self._next:
            self._next = max(self._next, self._gaps.popleft()[1])
        self._prepared = max(self._prepared, self._next)
        if not self._outstanding:
            self._base = self._next

    def _release(self, rows: NDArray[np.int64]) -> None:
        self._is_busy[rows] = False
        if self._straggler_timeout is not None:
            self._straggler_timeout.stop(rows)
        self._outstanding = int(np.count_nonzero(self._is_busy))

    def owns(self, slots: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which slots of the view are this stream's."""
        return (slots >= self.first_slot) & (slots < self.first_slot + self.slot_count)

    def pump(self, now_s: float) -> bool:
        """Send what window and slots allow; return False when the transport took less."""
        if self._next == self._end:
            return True
        while True:
            free = self._base + self.slot_count - self._next
            room = min(self._window.limit - self._outstanding, free)
            if room <= 0:
                return True
            while self._prepared - self._next < room and self._prepare(now_s):
                pass
            slot = self._next % self.slot_count
            count = min(room, self._prepared - self._next, self.slot_count - slot)
            if self._gaps:
                count = min(count, self._gaps[0][0] - self._next)
            if count <= 0:
                return True
            if self._has_withheld:
                withheld = self._is_withheld[slot : slot + count]
                sent, count = self._send_unless_withheld(slot, withheld)
            else:
                sent = self._transport.send(self._datagrams[slot : slot + count])
            self._note_sent(slot, sent, now_s)
            if self._gaps:
                self._jump()
                self._advance()
            if sent < count:
                return False

    def _send_unless_withheld(self, slot: int, withheld: NDArray[np.bool_]) -> tuple[int, int]:
        """Send the rows before the first withheld one, or pass those over; return (done, tried)."""
        count = int((withheld != withheld[0]).argmax()) or len(withheld)
        if withheld[0]:
            return count, count
        return self._transport.send(self._datagrams[slot : slot + count]), count

    def _note_sent(self, slot: int, count: int, now_s: float) -> None:
        if not count:
            return
        rows = slice(slot, slot + count)
        self._is_busy[rows] = True
        withheld = self._is_withheld[rows] if self._has_withheld else None
        self._recovery.start(rows, now_s, withheld, after_pause=not self._outstanding)
        if self._straggler_timeout is not None:
            self._straggler_timeout.start(rows, now_s, self._timer.steady_s)
        self._next += count
        while self._unsent and self._unsent[0][0] < self._next:
            self._unsent.popleft()[1].times.note_first_packet()
        self._outstanding += count
        self.counters.sent += count

    def _prepare(self, now_s: float) -> bool:
        """Fill the next block of datagrams into the ring; return whether there was one."""
        if not self._filling:
            return False
        start, source = self._filling[0]
        self._prepared = max(self._prepared, start)  # over abandoned tensors
        slot = self._prepared % self.slot_count
        first = self._prepared - start
        count = min(
            BLOCK_CHUNKS,
            source.num_chunks - first,
            self.slot_count - slot,
            self._base + self.slot_count - self._prepared,
        )
        if count <= 0:
            return False
        rows = slice(slot, slot + count)
        if self._straggler_timeout is not None:
            if not first:
                self._since_s = now_s
            self._straggler_timeout.prepare(rows, self._since_s)
        if source.withheld is not None:
            self._is_withheld[rows] = source.withheld[first : first + count]
            self._has_withheld = True
        elif self._has_withheld:
            self._is_withheld[rows] = False
            self._has_withheld = bool(self._is_withheld.any())
        self._ring.write(source, self._prepared, first, count)
        self._prepared += count
        if first + count == source.num_chunks:
            self._ring.forget(source)
            self._filling.popleft()
        return True

    def accept_run(self, words: Words, now_s: float) -> int:
        """Take results from the front of a batch as long as they are those of the oldest chunks.

        That is how results come unless something was lost: this costs a fixed number of calls.
        Returns how many were taken; the rest is for `accept`.
        """
        before, done = self._outstanding, 0
        # With no chunk missing between base and next, what comes is what has waited longest.
        while done < len(words) and 0 < self._outstanding == self._next - self._base:
            row = self._base % self.slot_count
            count = min(len(words) - done, self._outstanding, self.slot_count - row)
            run = words[done : done + count]
            if not self._ring.is_plain_run(run, row):
                break
            self._store_run(run)
            self._release_run(slice(row, row + count))
            self._recovery.finish_run(
                slice(row, row + count),
                now_s,
                is_sampled=not done,
                is_idle=not self._outstanding,
            )
            done += count
        if done:
            self.counters.received += done
            self._window.on_results(done, 0, before)
            self._drain()
            if self._recovery.has_again:
                self._send_lost(now_s)
        return done

    def _store_run(self, words: Words) -> None:
        """Copy the results of the oldest chunks to their tensors."""
        place = self._base
        for start, source in self._active:
            first = place - start
            count = min(source.num_chunks - first, len(words))
            if count <= 0:
                continue  # complete by a run before, of the same batch
            source.results.view(np.uint32)[first : first + count] = words[:count, HEADER_WORDS:]
            contributors = words[:count, WORD_CONTRIBUTORS].byteswap()
            contributors >>= 16
            source.contributors[first : first + count] = contributors
            if count == len(words):
                return
            words = words[count:]
            place += count

    def _release_run(self, rows: slice) -> None:
        """Let the rows of the oldest chunks wait no more."""
        count = rows.stop - rows.start
        self._is_busy[rows] = False
        if self._straggler_timeout is not None:
            self._straggler_timeout.stop(rows)
        self._outstanding -= count
        self._base += count

    def accept(self, words: Words, slots: NDArray[np.int64], now_s: float) -> NDArray[np.bool_]:
        """Take the results among `words` that outstanding chunks wait for.

        `slots` are the view's and all this stream's. Returns which rows were results for their
        slot's outstanding chunk; the caller accounts for the others.
        """
        rows = slots - self.first_slot
        is_taken = self._ring.are_results(words, rows) & self._is_busy[rows]
        if not is_taken.all():
            words, rows = words[is_taken], rows[is_taken]
            if not len(rows):
                return is_taken
        marked, is_prompt = self._store(words)
        before = self._outstanding
        self._release(rows)
        count = before - self._outstanding
        if count < len(rows):
            rows, places = np.unique(rows, return_index=True)
            is_prompt = is_prompt[places]
        self._recovery.finish(rows, now_s, is_prompt, is_idle=not self._outstanding)
        self.counters.received += count
        self._window.on_results(count, marked, before)
        self._advance()
        self._send_lost(now_s)
        return is_taken

    def _store(self, words: Words) -> tuple[int, NDArray[np.bool_]]:
        """Copy result lanes to their tensors, the oldest of those that wait.

        Returns how many met congestion, and which tell the round trip: not those that waited for
        somebody's straggler_timeout to end.
        """
        flags = int(np.bitwise_or.reduce(words[:, 0]).byteswap())
        marked = 0
        is_prompt = np.ones(len(words), np.bool_)
        if flags & _TOLD_FLAGS:
            all_flags = words[:, 0].byteswap()
            self.counters.replayed += int(np.count_nonzero(all_flags & Flag.REPLAY))
            marked = int(np.count_nonzero(all_flags & Flag.ECN_ECHO))
            self.counters.marked += marked
            is_prompt = (all_flags & Flag.FLUSHED) == 0
        tensors = words[:, WORD_TENSOR]
        left = len(words)
        for _, source in self._active:
            wanted = np.uint32(source.tensor_id & 0xFFFFFFFF).byteswap()
            is_own = tensors == wanted
            count = int(np.count_nonzero(is_own))
            if count == len(words):
                self._store_tensor(source, words)
            elif count:
                self._store_tensor(source, words[is_own])
            left -= count
            if not left:
                break
        return marked, is_prompt

    def _store_tensor(self, source: ChunkSource, words: Words) -> None:
        chunks = words[:, WORD_CHUNK].byteswap()
        source.results.view(np.uint32)[chunks] = words[:, HEADER_WORDS:]
        source.contributors[chunks] = words[:, WORD_CONTRIBUTORS].byteswap() >> 16
        flags = int(np.bitwise_or.reduce(words[:, 0]).byteswap())
        if flags & Flag.OVERFLOW:
            source.has_saturated = True

    def _advance(self) -> None:
        """Move the base over finished chunks, and let tensors drain."""
        span = self._next - self._base
        if self._outstanding:
            place = self._base % self.slot_count
            self._base += int(self._is_busy[self._ring_order[place : place + span]].argmax())
        else:
            self._base = self._next
        self._drain()

    def _drain(self) -> None:
        """Let tensors have what is below the base, and let go of those that are complete."""
        while self._active:
            start, source = self._active[0]
            done = min(self._base - start, source.num_chunks)
            is_abandoned = id(source) in self._abandoned
            if done < source.num_chunks:
                if not is_abandoned:
                    source.drain(done)
                return
            if not is_abandoned:
                source.times.note_last_result()
                source.drain(done)
            self._active.popleft()
            self._unfinished.remove(id(source))
            self._abandoned.discard(id(source))

    def is_finished(self, source: ChunkSource) -> bool:
        """Return whether all results of an enqueued tensor are there."""
        return id(source) not in self._unfinished

    def retransmit(self, now_s: float) -> None:
        """Send expired chunks again, or a few after silence; flush rounds that waited too long."""
        if now_s >= self._recovery.next_s:
            rows, outrun = self._recovery.expired(now_s)
            if outrun:
                self._window.on_loss(self._outstanding, outrun)
            if not self._send_again(rows, now_s):
                probes = self._recovery.silent(now_s)
                sent = self._send_again(probes, now_s, is_probe=True)
                self.counters.probe_retransmitted += sent
        if self._straggler_timeout is not None and now_s >= self._straggler_timeout.next_s:
            rows, levels = self._straggler_timeout.due(now_s)
            if len(rows):
                flushes = self._datagrams[rows]
                flushes[:, OPERATION_BYTE] = Operation.FLUSH
                flushes[:, FLAGS_BYTES] = 0
                flushes.view(">u4")[:, WORD_CONTRIBUTORS] = levels << np.uint32(16)
                self.counters.flushed += self._transport.send(flushes)

    def _send_lost(self, now_s: float) -> None:
        """Send again at once what later results show to be lost."""
        rows = self._recovery.lost(now_s)
        if len(rows):
            lost = self._recovery.num_new(rows)
            if lost:
                self._window.on_loss(self._outstanding, lost)
            self.counters.fast_retransmitted += self._send_again(rows, now_s)

    def _send_again(self, rows: NDArray[np.int64], now_s: float, *, is_probe: bool = False) -> int:
        """Send rows again; return how many the transport took."""
        if not len(rows):
            return 0
        sent = self._transport.send(self._datagrams[rows])
        self._recovery.start_again(rows[:sent], now_s, is_probe=is_probe)
        self.counters.retransmitted += sent
        return sent
