# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a worker measures of its requests to the tables of a server."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Final, NamedTuple, final

from ..peers.event_loop import EventLoop
from ..peers.frames import (
    HEADER_BYTES,
    DeniedFrame,
    EnteredFrame,
    Frame,
    FrameKind,
    ReceiptFrame,
    RowsFrame,
    ServerTimes,
    TableFrame,
    unpack_times,
)
from .parquet_log import ParquetLog
from .schema import NO_VALUE, OPERATIONS, OUTCOMES, REQUESTS

_PULL: Final = OPERATIONS.index("pull")
_PUSH: Final = OPERATIONS.index("push")
_ANSWERED, _DENIED, _LOST, _UNMEASURED = range(len(OUTCOMES))
_NO_TIMES: Final = (NO_VALUE,) * 3


@final
class WorkerLog:
    """The log of a worker's client. Raises LatencyLogError."""

    def __init__(self, directory: Path, *, worker_id: int, job: int) -> None:
        self.worker_id = worker_id
        self.call = 0
        """Number of the push or pull whose requests are being sent, from 1."""
        stem = f"worker{worker_id}-{secrets.token_hex(4)}"
        self._log = ParquetLog(directory, REQUESTS, stem, {"worker": worker_id, "job": job})

    def begin_call(self) -> None:
        """Learn that the requests of another push or pull follow."""
        self.call += 1

    def append(self, row: tuple[int, ...]) -> None:
        """Add a row of REQUESTS."""
        self._log.append(row)

    def close(self) -> None:
        """Write what is there."""
        self._log.close()


class _Sent(NamedTuple):
    t0_ns: int
    call: int
    iteration: int
    request_bytes: int
    num_keys: int


@final
class RequestMeter:
    """Sees the frames of one session, and logs a row for each push and pull.

    Only differences of two stamps of one clock count: the server's come with its answers. Runs in
    the loop's thread.
    """

    def __init__(self, loop: EventLoop, log: WorkerLog, server: int) -> None:
        self._loop = loop
        self._log = log
        self._server = server
        self._iteration: int | None = None
        self._last_advance = 0
        self._sent: tuple[dict[int, _Sent], ...] = ({}, {})  # by operation, by number
        self._read_ns = 0
        self._rows: list[tuple[int, ...]] = []  # without W_proc

    def sent(self, frame: TableFrame) -> None:
        """Learn that a request is handed to the kernel, perhaps once more."""
        if frame.kind is FrameKind.ADVANCE and frame.number > self._last_advance:
            self._last_advance = frame.number
            self._iteration = (self._iteration or 0) + 1
        if frame.kind not in (FrameKind.PUSH, FrameKind.PULL):
            return
        sent = self._sent[_PULL if frame.kind is FrameKind.PULL else _PUSH]
        earlier = sent.get(frame.number)
        sent[frame.number] = _Sent(
            self._loop.clock_ns(),
            self._log.call if earlier is None else earlier.call,
            (self._iteration or 0) if earlier is None else earlier.iteration,
            HEADER_BYTES + frame.payload_bytes,
            frame.num_keys,
        )

    def received(self, frame: Frame, payload: memoryview, arrived_ns: int) -> None:
        """Learn that the loop has taken an answer out of what it read at `arrived_ns`."""
        self._read_ns = self._loop.clock_ns()
        size = HEADER_BYTES + frame.payload_bytes
        match frame.kind:
            case FrameKind.ROWS:
                rows = RowsFrame.unpack(frame)
                self._answered((_PULL, rows.number), rows.times, size, arrived_ns)
            case FrameKind.RECEIPT:
                receipt = ReceiptFrame.unpack(frame)
                for number, times in unpack_times(payload, receipt.number):
                    self._answered((_PUSH, number), times, size, arrived_ns)
                self._close_up_to(receipt.number, size)
            case FrameKind.ENTERED:
                entered = EnteredFrame.unpack(frame)
                if self._iteration is None:
                    self._iteration = entered.clock
                self._close_up_to(entered.accepted - entered.num_open, size)
            case FrameKind.DENIED:
                denied = DeniedFrame.unpack(frame)
                name = (_PULL if denied.is_pull else _PUSH, denied.number)
                self._end(name, _DENIED, size, self._read_ns - arrived_ns)
            case _:
                return

    def parsed(self) -> None:
        """Learn that what was received is where the caller wants it."""
        if not self._rows:
            return
        w_proc_us = (self._loop.clock_ns() - self._read_ns) // 1000
        rows, self._rows = self._rows, []
        for row in rows:
            self._log.append((*row, w_proc_us, NO_VALUE))

    def lost(self) -> None:
        """Learn that the session gives up all that is open."""
        for operation in (_PUSH, _PULL):
            for number in list(self._sent[operation]):
                self._end((operation, number), _LOST, 0, NO_VALUE)

    def _answered(
        self, name: tuple[int, int], times: ServerTimes, size: int, arrived_ns: int
    ) -> None:
        sent = self._sent[name[0]].pop(name[1], None)
        if sent is None:
            return
        rtt_us = (arrived_ns - sent.t0_ns) // 1000
        w_queue_us = (self._read_ns - arrived_ns) // 1000
        head = self._head(name, sent, _ANSWERED, size)
        self._rows.append((*head, rtt_us, rtt_us - sum(times), *times, w_queue_us))

    def _close_up_to(self, number: int, size: int) -> None:
        """End pushes whose receipt has no times: they came over an earlier connection."""
        pushes = self._sent[_PUSH]  # in rising order
        while pushes and (first := next(iter(pushes))) <= number:
            self._end((_PUSH, first), _UNMEASURED, size, NO_VALUE)

    def _end(self, name: tuple[int, int], outcome: int, size: int, w_queue_ns: int) -> None:
        sent = self._sent[name[0]].pop(name[1], None)
        if sent is None:
            return
        head = self._head(name, sent, outcome, size)
        w_queue_us = w_queue_ns if w_queue_ns == NO_VALUE else w_queue_ns // 1000
        self._log.append((*head, NO_VALUE, NO_VALUE, *_NO_TIMES, w_queue_us, NO_VALUE, NO_VALUE))

    def _head(self, name: tuple[int, int], sent: _Sent, outcome: int, size: int) -> tuple[int, ...]:
        operation, number = name
        return (
            self._log.worker_id,
            self._server,
            sent.iteration,
            sent.call,
            number,
            operation,
            outcome,
            sent.t0_ns // 1000,
            sent.request_bytes,
            size,
            sent.num_keys,
        )
