# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The blocks of one view: sent once by each worker, copied by its switch to all others.

Every worker multicasts one sequence of chunks and receives those of the others. The headers of its
own chunks carry how much it has received, of one other worker in each. It sends reports as well,
when it has nothing to send for a moment or chunks are missing. See docs/protocol.md.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from ..control.view import JobView
from ..errors import AllgatherTimeoutError
from ..options import SessionOptions
from ..slots.wire import (
    HEADER_WORDS,
    MAX_WORKERS,
    WORD_BITMAP,
    WORD_GENERATION,
    WORD_TREE,
    Flag,
    Words,
    datagram_bytes,
)
from ..transports.base import Transport
from .allgather_task import AllgatherTask
from .block_receiver import BlockReceiver
from .block_sender import BlockSender
from .packet import (
    MAX_DELAY_S,
    MIN_DELAY_S,
    REPORT_WORDS,
    WORD_RECEIVED,
    WORD_SIGNATURE,
    Headers,
    Receipts,
    header_template,
    pack_row,
    report_header,
    unpack_rows,
)

DELAY_SHARE = 2
"""The pause between reports is a round trip divided by this, and half of that if chunks are
missing."""


class BlockExchange:
    """All allgathers of a view; used by the I/O thread alone."""

    def __init__(
        self,
        view: JobView,
        transport: Transport,
        options: SessionOptions,
        counters: Counter[str],
    ) -> None:
        self._view = view
        self._transport = transport
        self._counters = counters
        self.receiver = BlockReceiver(view, counters)
        self.sender = BlockSender(view, transport, options, self._receipts)
        self.reports = 0
        """Reports sent."""
        self._reported_s = -math.inf
        self._told_s = -math.inf
        self._template = header_template(view)
        self._is_other = np.zeros(MAX_WORKERS, np.bool_)
        self._is_other[[i for i in view.member_ids if i != view.worker_id]] = True
        self._waiting: list[AllgatherTask] = []

    def enqueue(self, task: AllgatherTask, now_s: float) -> None:
        """Append an allgather to the sequence, which is the same on all workers."""
        self._waiting.append(task)
        self.sender.enqueue(task)
        # This comes first: if the others have sent another tensor, they must learn of it, too.
        self.sender.pump(now_s)
        self.receiver.enqueue(task, now_s)

    def pump(self, now_s: float) -> bool:
        """Send what the window allows; return False when the transport took less."""
        return self.sender.pump(now_s)

    @property
    def is_waiting(self) -> bool:
        """Whether blocks, or receipts for this worker's, are due."""
        self._waiting = [task for task in self._waiting if not task.is_settled]
        return bool(self._waiting)

    @property
    def is_owing(self) -> bool:
        """Whether a member may still miss chunks, or a report, of this worker."""
        return bool(self.sender.outstanding) or self.receiver.due_since_s is not None

    @property
    def missing(self) -> list[int]:
        """Workers that the oldest allgather waits for: their blocks, or else their receipts."""
        return self._blame(self.receiver.missing_workers)

    def _blame(self, incomplete: list[int]) -> list[int]:
        """Return the workers to wait for, given those whose blocks are incomplete here.

        A late worker takes no chunks, so all others stop within their windows. Then no block is
        complete, and the late worker is the only one that lags in taking this worker's block.
        """
        lagging = self.sender.lagging_workers
        return [i for i in incomplete if i in lagging] or incomplete or lagging

    def take(self, words: Words, now_s: float) -> int:
        """Take multicasts; return how many brought news. Others are counted by cause.

        Raises PeerMismatchError.
        """
        headers: Headers = words[:, :HEADER_WORDS].byteswap()
        senders = np.log2(np.maximum(headers[:, WORD_BITMAP], 1)).astype(np.uint32)
        left = np.ones(len(words), np.bool_)
        for cause, is_bad in (
            ("foreign_job", headers[:, WORD_TREE] >> 16 != self._view.trees[0].tree_id),
            ("generation", headers[:, WORD_GENERATION] != self._view.generation),
            ("foreign_worker", ~self._is_other[senders]),
        ):
            if (is_bad & left).any():
                self._counters[cause] += int(np.count_nonzero(is_bad & left))
                left &= ~is_bad
        if not left.all():
            headers, words, senders = headers[left], words[left], senders[left]
        about = headers[:, WORD_TREE] & 0xFF == self._view.worker_id
        if about.any():
            told = headers[about]
            marks = (told[:, WORD_SIGNATURE] >> 8 & 0xFF).astype(np.uint32)
            self.sender.take_receipts((senders[about], told[:, WORD_RECEIVED], marks), now_s)
        is_report = headers[:, 0] & Flag.REPORT != 0
        count = int(np.count_nonzero(is_report))
        if count:
            for place in np.flatnonzero(is_report).tolist():
                self._take_report(int(senders[place]), headers[place], words[place], now_s)
            chunks = ~is_report
            headers, words, senders = headers[chunks], words[chunks], senders[chunks]
        if len(words):
            count += self.receiver.take(senders, headers, words, now_s)
        return count

    def _take_report(self, sender: int, header: Headers, words: Words, now_s: float) -> None:
        for row in unpack_rows(header, words[HEADER_WORDS:]):
            if row.worker_id == self._view.worker_id:
                self.sender.take_report(sender, row, now_s)

    def _receipts(self, count: int, now_s: float) -> Receipts:
        self._told_s = now_s
        return self.receiver.receipts(count, now_s)

    @property
    def _report_s(self) -> float:
        """When a report is due."""
        since_s = self.receiver.due_since_s
        if since_s is None:
            return math.inf
        delay_s = self.sender.round_trip_s / DELAY_SHARE
        if self.receiver.has_gap:
            delay_s /= 2
        else:
            since_s = max(since_s, self._told_s)
        delay_s = min(MAX_DELAY_S, max(MIN_DELAY_S, delay_s))
        return max(since_s, self._reported_s) + delay_s

    @property
    def next_s(self) -> float:
        """When `keep_time` is to be called next."""
        return min(self.sender.expiry_s, self._report_s)

    def keep_time(self, now_s: float) -> None:
        """Send again what is overdue, and report what is due."""
        self.sender.keep_time(now_s)
        while now_s >= self._report_s:
            self._report(now_s)

    def _report(self, now_s: float) -> None:
        values = self._view.values_per_packet
        rows = self.receiver.rows_due(values // REPORT_WORDS)
        datagram = np.zeros((1, datagram_bytes(values)), np.uint8)
        words = datagram.view(">u4")[0]
        words[:HEADER_WORDS] = report_header(self._template, len(rows))
        lanes = words[HEADER_WORDS:][: len(rows) * REPORT_WORDS]
        lanes.reshape(len(rows), REPORT_WORDS)[:] = [pack_row(row) for row in rows]
        # A report that the transport does not take is like a lost one: the sender sends again.
        self.reports += self._transport.send(datagram)
        if self.receiver.due_since_s is None:
            self._reported_s = now_s

    @property
    def counts(self) -> Counter[str]:
        """Packets by kind, for statistics."""
        counters = self.sender.counters
        return Counter(
            {
                "multicast_packets_sent": counters.sent,
                "multicast_packets_retransmitted": counters.retransmitted,
                "multicast_packets_received": self.receiver.received,
                "multicast_packets_marked": counters.marked,
                "multicast_packets_reported": self.reports,
            }
        )

    def verdict(self, task: AllgatherTask) -> AllgatherTimeoutError:
        """Return the error that says why an allgather has no result in time."""
        what = f"tensor {task.tensor_id}: no result of the allgather after {task.timeout_s} s"
        incomplete = task.missing_workers
        missing = self._blame(incomplete)
        cause = "its block is not complete"
        if not incomplete:
            cause = "it does not take this worker's block"
        return AllgatherTimeoutError(
            f"{what}; job {self._view.job} waits for worker {', '.join(str(i) for i in missing)}"
            f" ({cause}): see whether it runs and submits the same sequence of tensors",
            missing,
        )
