# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a worker measures of its requests to the tables of a server."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, final

from ..peers.event_loop import EventLoop
from ..peers.frames import (
    HEADER_BYTES,
    DeniedFrame,
    EnteredFrame,
    Frame,
    FrameKind,
    ReceiptFrame,
    ServerTimes,
    TableFrame,
    unpack_times,
)
from .call_sampler import CallSampler
from .parquet_log import ParquetLog
from .schema import CALLS, NO_VALUE, OPERATIONS, OUTCOMES, PATHS, RECORDED_CALLS, REQUESTS

_PULL: Final = OPERATIONS.index("pull")
_PUSH: Final = OPERATIONS.index("push")
_SERVER: Final = PATHS.index("server")
_ANSWERED, _DENIED, _LOST, _UNMEASURED = range(len(OUTCOMES))


@final
class WorkerLog:
    """The log of a worker's client, of whole calls. Raises LatencyLogError.

    A call is a push or pull with its requests to all servers. The methods, but for `close`, run in
    the loop's thread.
    """

    def __init__(
        self,
        directory: Path,
        *,
        worker_id: int,
        job: int,
        clock_ns: Callable[[], int] = time.process_time_ns,
    ) -> None:
        """`clock_ns`: processor time of the process, which bounds what is recorded."""
        self.worker_id = worker_id
        self.recording = 0
        """Number of the call whose requests are recorded as they are sent; 0: none are."""
        self.num_requests = 0
        """That were sent of recorded calls, and have a row sooner or later."""
        self._num_calls = 0
        self._num_recorded = 0
        self._is_paused = False
        self._sampler = CallSampler(worker_id, clock_ns)
        stem, about = f"worker{worker_id}-{secrets.token_hex(4)}", {"worker": worker_id, "job": job}
        self.log = ParquetLog(directory, REQUESTS, stem, about, self._totals)

    def begin_call(self) -> None:
        """Learn that the requests of another push or pull follow, until `end_call`."""
        self._num_calls += 1
        self.recording = 0
        if not self._is_paused and self._sampler.begin_call(self.num_requests):
            self._num_recorded += 1
            self.recording = self._num_calls

    def end_call(self) -> None:
        """Learn that the call's requests have been made."""
        self.recording = 0

    def pause(self, is_paused: bool) -> None:
        """Record no call from now on, or record calls again."""
        if self._is_paused and not is_paused:
            self._sampler.restart(self.num_requests)
        self._is_paused = is_paused

    def append(self, row: tuple[int, ...]) -> None:
        """Add a row of REQUESTS."""
        self.log.append(row)

    def close(self) -> None:
        """Write what is there."""
        self.log.close()

    def _totals(self) -> dict[str, int]:
        # In the writer's thread, so in the order that never says more than all.
        return {RECORDED_CALLS: self._num_recorded, CALLS: self._num_calls}


_Sent = tuple[int, int, int, int, int]
"""When it was handed over (ns), call, iteration, size in bytes, number of keys."""


@final
class RequestMeter:
    """Sees the frames of one session, and logs a row for each push and pull of a recorded call.

    Only differences of two stamps of one clock count: the server's come with its answers. Runs in
    the loop's thread, for each request, so it takes frames apart without their classes. While no
    recorded request is open, it reads no clock.
    """

    def __init__(self, loop: EventLoop, log: WorkerLog, server: int) -> None:
        self.loop = loop
        self.log = log
        self.server = server
        self.iteration = -1
        """How many the worker had ended; -1 until the first answer."""
        self.num_by_switch = 0
        """Recorded requests by the switch that are open."""
        self.arrived_ns = self.read_ns = self.answer_bytes = 0
        """Of the last answer, also by the switch: when it arrived, was taken; its size."""
        self._pushes: dict[int, _Sent] = {}  # by number, in rising order
        self._pulls: dict[int, _Sent] = {}
        self._rows: list[tuple[int, ...]] = []  # without W_proc

    def sent(self, frame: TableFrame) -> None:
        """Learn that a request is handed to the kernel, or waits for a connection.

        Those are recorded that ask the server for their times, during a recorded call.
        """
        log, kind = self.log, frame[0]
        if kind is FrameKind.ADVANCE:
            self.iteration += 1
        elif frame.is_measured:
            _, payload_bytes, number, _, num_keys, *_ = frame
            log.num_requests += 1
            (self._pulls if kind is FrameKind.PULL else self._pushes)[number] = (
                self.loop.clock_ns(),
                log.recording,
                self.iteration,
                HEADER_BYTES + payload_bytes,
                num_keys,
            )

    def resent(self, frame: TableFrame) -> None:
        """Learn that a request is handed over once more, over another connection."""
        open_ones = self._pulls if frame.kind is FrameKind.PULL else self._pushes
        sent = open_ones.get(frame.number)
        if sent is not None:
            open_ones[frame.number] = self.loop.clock_ns(), *sent[1:]

    def received(self, frame: Frame, payload: memoryview, arrived_ns: int) -> None:
        """Learn that the loop has taken an answer, which had arrived at `arrived_ns`."""
        kind, payload_bytes, fields = frame
        if kind is FrameKind.ENTERED and self.iteration < 0:
            self.iteration = EnteredFrame.unpack(frame).clock
        if not (self._pushes or self._pulls or self.num_by_switch):
            return
        size = HEADER_BYTES + payload_bytes
        self.note_answer(arrived_ns, size)
        if kind is FrameKind.ROWS:
            number, high, low, queue_us, _, proc_us, _ = fields
            sent = self._pulls.pop(number, None)
            if sent is not None:
                times = queue_us, proc_us, high << 16 | low
                self._answered(_PULL, number, sent, times, (arrived_ns, size))
        elif kind is FrameKind.RECEIPT:
            if self._pushes:
                self._end_pushes(ReceiptFrame.unpack(frame), payload, (arrived_ns, size))
        elif kind is FrameKind.ENTERED:
            entered = EnteredFrame.unpack(frame)
            self._close_up_to(entered.accepted - entered.num_open, size)
        elif kind is FrameKind.DENIED:
            denied = DeniedFrame.unpack(frame)
            operation = _PULL if denied.is_pull else _PUSH
            sent = (self._pulls if denied.is_pull else self._pushes).pop(denied.number, None)
            if sent is not None:
                self._end(operation, denied.number, sent, _DENIED, size)

    def _end_pushes(
        self, receipt: ReceiptFrame, payload: memoryview, answer: tuple[int, int]
    ) -> None:
        """Note rows of the pushes of a receipt, which arrived then and has that size."""
        if payload:
            for number, times in unpack_times(payload, receipt.number):
                sent = self._pushes.pop(number, None)
                if sent is not None:
                    self._answered(_PUSH, number, sent, times, answer)
        if receipt.times is not None:
            sent = self._pushes.pop(receipt.number, None)
            if sent is not None:
                self._answered(_PUSH, receipt.number, sent, receipt.times, answer)
        self._close_up_to(receipt.number, answer[1])

    def note_answer(self, arrived_ns: int, size: int) -> None:
        """Learn that the loop has taken an answer of so many bytes."""
        self.read_ns = self.loop.clock_ns()
        self.arrived_ns, self.answer_bytes = arrived_ns, size

    def parsed(self) -> None:
        """Learn that what was received is where the caller wants it."""
        if not self._rows:
            return
        w_proc_us = (self.loop.clock_ns() - self.read_ns) // 1000
        for row in self._rows:
            self.log.append((*row, w_proc_us, NO_VALUE))
        self._rows.clear()

    def lost(self) -> None:
        """Learn that the session gives up all that is open."""
        for operation, open_ones in ((_PUSH, self._pushes), (_PULL, self._pulls)):
            for number, sent in open_ones.items():
                self._end(operation, number, sent, _LOST, 0)
            open_ones.clear()

    def _answered(
        self, operation: int, number: int, sent: _Sent, times: ServerTimes, answer: tuple[int, int]
    ) -> None:
        """Note a row, of an answer's arrival and size."""
        t0_ns, call, iteration, request_bytes, num_keys = sent
        queue_us, proc_us, wait_us = times
        arrived_ns, size = answer
        rtt_us = (arrived_ns - t0_ns) // 1000
        self._rows.append(
            (
                self.log.worker_id,
                self.server,
                iteration,
                call,
                number,
                operation,
                _SERVER,
                _ANSWERED,
                t0_ns // 1000,
                request_bytes,
                size,
                num_keys,
                rtt_us,
                rtt_us - queue_us - proc_us - wait_us,
                queue_us,
                proc_us,
                wait_us,
                (self.read_ns - arrived_ns) // 1000,
            )
        )

    def _close_up_to(self, number: int, size: int) -> None:
        """End pushes whose receipt has no times: they came over an earlier connection."""
        pushes = self._pushes
        while pushes and (first := next(iter(pushes))) <= number:
            self._end(_PUSH, first, pushes.pop(first), _UNMEASURED, size)

    def _end(self, operation: int, number: int, sent: _Sent, outcome: int, size: int) -> None:
        """Log a request without times."""
        t0_ns, call, iteration, request_bytes, num_keys = sent
        worker_id, sent_us = self.log.worker_id, t0_ns // 1000
        head = (worker_id, self.server, iteration, call, number, operation, _SERVER, outcome)
        self.log.append((*head, sent_us, request_bytes, size, num_keys, *(NO_VALUE,) * 8))
