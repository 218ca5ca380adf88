# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The I/O thread of a session: moves tensors through the slot streams and keeps the deadlines."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hostlib.allreduce_task import AllreduceTask
from hostlib.congestion import CongestionWindow
from hostlib.errors import (
    HostlibError,
    RoundClosedError,
    SessionBrokenError,
    SessionClosedError,
    TensorError,
)
from hostlib.future import AllreduceFuture
from hostlib.job_view import JobView
from hostlib.options import NonfinitePolicy, ReduceOperation, SessionOptions
from hostlib.quantization import Quantizer
from hostlib.reception import Notice, sort_out
from hostlib.round_trip import RoundTripTimer
from hostlib.slot_map import SlotMap
from hostlib.slot_probe import SlotProbe
from hostlib.slot_stream import WORD_SLOT, WORD_TREE, SlotStream, Words
from hostlib.transports.base import Transport
from hostlib.wire import Operation, datagram_bytes

IDLE_S = 1.0
"""Longest wait without any event."""
BUSY_S = 0.001
"""Wait before sending again when the transport took less than all."""
COALESCE_CHUNKS = 32
"""With at least this many chunks under way, a short pause does not empty the window."""
COALESCE_SHARE = 4
"""The pause is at most this part of a round trip."""
MIN_PAUSE_S = 0.0001
_logger = logging.getLogger(__name__)


def split_slots(slot_count: int) -> tuple[int, int]:
    """Return how many slots carry (exponents, values); a function of the job's slots alone."""
    exponent_slots = min(16, max(1, slot_count // 8))
    return exponent_slots, slot_count - exponent_slots


class Engine:
    """Runs allreduces over a transport in a thread of its own."""

    def __init__(self, view: JobView, transport: Transport, options: SessionOptions) -> None:
        self.counters: Counter[str] = Counter()
        """Received datagrams that were no awaited results, by cause."""
        self._view = view
        self._transport = transport
        self._options = options
        self._slot_map = SlotMap(view.trees)
        exponent_slots, value_slots = split_slots(view.slot_count)
        self.exponents = self._stream(Operation.AGGREGATE_MAX, 0, exponent_slots)
        self.values = self._stream(Operation.AGGREGATE_ADD, exponent_slots, value_slots)
        self._streams = (self.exponents, self.values)
        self.probe = SlotProbe(view, transport)
        size = datagram_bytes(view.values_per_packet)
        self._received = np.empty((options.batch, size), np.uint8)
        self._received_words: Words = self._received.view(np.uint32)
        self._quantizers: dict[np.dtype[Any], Quantizer] = {}
        self._lock = threading.Lock()
        self._inbox: deque[AllreduceTask] = deque()
        self._waiting: deque[AllreduceTask] = deque()  # not yet in the value stream
        self._running: deque[AllreduceTask] = deque()  # in the value stream
        self._next_tensor_id = 1
        self._failure: HostlibError | None = None
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, name="switchfold-io", daemon=True)
        self._thread.start()

    def _stream(self, operation: Operation, first_slot: int, slot_count: int) -> SlotStream:
        options = self._options
        timer = RoundTripTimer(
            initial_s=options.initial_rto_s,
            minimum_s=options.min_rto_s,
            maximum_s=options.max_rto_s,
        )
        return SlotStream(
            self._view,
            self._transport,
            timer,
            operation=operation,
            first_slot=first_slot,
            slot_count=slot_count,
            slot_map=self._slot_map,
            window=CongestionWindow(min(options.window, slot_count)),
        )

    def submit(
        self,
        array: NDArray[Any],
        operation: ReduceOperation,
        timeout_s: float,
        nonfinite: NonfinitePolicy,
    ) -> AllreduceFuture:
        """Queue an allreduce; all workers must submit the same sequence of shapes and dtypes."""
        with self._lock:
            self._refuse_if_over()
            task = AllreduceTask(
                self._next_tensor_id,
                array,
                self._view,
                operation=operation,
                nonfinite=nonfinite,
                deadline_s=time.monotonic() + timeout_s,
                timeout_s=timeout_s,
            )
            self._next_tensor_id += 1
            self._inbox.append(task)
        self._transport.wake()
        return task.future

    def _refuse_if_over(self) -> None:
        if self._failure is not None:
            raise SessionBrokenError(
                f"an earlier failure left this worker's slots out of step ({self._failure});"
                " close the session and join the job again"
            ) from self._failure
        if self._is_closing:
            raise SessionClosedError("the session is closed; join the job again")

    def fail(self, error: HostlibError) -> None:
        """Break the session from any thread: every allreduce fails with `error`."""
        with self._lock:
            if self._failure is None:
                self._failure = error
        self._transport.wake()

    def close(self) -> None:
        """Stop the thread; allreduces under way end with SessionClosedError."""
        with self._lock:
            self._is_closing = True
        self._transport.wake()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        try:
            while self._step():
                pass
        except HostlibError as error:
            self._end_all(error)
        except Exception as error:
            _logger.exception("the I/O thread of job %d failed", self._view.job)
            broken = SessionBrokenError(f"the I/O thread failed: {error!r}; join the job again")
            broken.__cause__ = error
            self._end_all(broken)

    def _step(self) -> bool:
        """Do one round of work; return False when the session is over."""
        if not self._take_inbox():
            return False
        self._start_values()
        now_s = time.monotonic()
        is_idle = self.exponents.pump(now_s)
        is_idle &= self.values.pump(now_s)
        wait_s = self._wait_s(now_s) if is_idle else BUSY_S
        if self.values.outstanding >= COALESCE_CHUNKS:
            # The window is in the network's queues; a small part of it may gather here.
            pause_s = min(self._options.coalesce_s, self.values.round_trip_s / COALESCE_SHARE)
            if pause_s > MIN_PAUSE_S:
                time.sleep(pause_s)
        count = self._transport.receive(self._received, wait_s)
        now_s = time.monotonic()
        if count:
            self._handle(self._received_words[:count], now_s)
            self._finish_values()
        for stream in self._streams:
            stream.retransmit(now_s)
        self._keep_deadlines(now_s)
        return True

    def _take_inbox(self) -> bool:
        if not self._inbox and self._failure is None and not self._is_closing:
            return True
        with self._lock:
            failure, is_closing = self._failure, self._is_closing
            tasks, self._inbox = self._inbox, deque()
        for task in tasks:
            if task.exponents is not None:
                self.exponents.enqueue(task.exponents)
            self._waiting.append(task)
        if failure is not None:
            raise failure
        if is_closing:
            raise SessionClosedError("the session was closed before this allreduce ended")
        return True

    def _start_values(self) -> None:
        """Move tensors to the value stream, in the order in which they were submitted."""
        while self._waiting:
            task = self._waiting[0]
            if task.exponents is not None and task.source is None:
                if not self.exponents.is_finished(task.exponents):
                    return
                try:
                    task.quantize_with(self._quantizers)
                except TensorError as error:
                    # All workers see the same exponents, so all leave this tensor out.
                    self._waiting.popleft()
                    task.future.set_exception(error)
                    continue
            self._waiting.popleft()
            assert task.source is not None
            self.values.enqueue(task.source)
            self._running.append(task)

    def _finish_values(self) -> None:
        while self._running:
            task = self._running[0]
            assert task.source is not None
            if not self.values.is_finished(task.source):
                return
            self._running.popleft()
            task.finish()

    def _handle(self, words: Words, now_s: float) -> None:
        trees = words[:, WORD_TREE].byteswap() >> np.uint32(16)
        slots = self._slot_map.slots(trees, words[:, WORD_SLOT].byteswap())
        is_value = self.values.owns(slots)
        if is_value.all():
            taken = self._accept(self.values, words, slots, now_s)
        else:
            taken = np.zeros(len(words), np.bool_)
            for stream, is_own in (
                (self.values, is_value),
                (self.exponents, self.exponents.owns(slots)),
            ):
                if is_own.any():
                    own = words[is_own]
                    taken[is_own] = self._accept(stream, own, slots[is_own], now_s)
        if taken.any():
            self.probe.note_answer()
        if not taken.all():
            rest = ~taken
            for notice in sort_out(
                words[rest], slots[rest], self._view, self._streams, self.counters
            ):
                self._take_notice(notice)

    def _accept(
        self, stream: SlotStream, words: Words, slots: NDArray[np.int64], now_s: float
    ) -> NDArray[np.bool_]:
        """Give datagrams to a stream; a result that came twice in one batch counts as duplicate."""
        before = stream.counters.received
        taken = stream.accept(words, slots, now_s)
        repeated = int(np.count_nonzero(taken)) - (stream.counters.received - before)
        if repeated:
            self.counters["duplicate"] += repeated
        return taken

    def _take_notice(self, notice: Notice) -> None:
        stream = self.exponents
        if notice.slot >= self.values.first_slot:
            stream = self.values
        own_round = stream.outstanding_round(notice.slot)
        self.probe.note_answer()
        if own_round is None or (notice.round ^ own_round) & 1:
            return  # about another copy than the one this worker waits for
        ahead = (notice.round - own_round) & 0xFFFFFFFF
        if 0 < ahead < 1 << 31:
            raise RoundClosedError(
                f"slot {notice.slot}: the job is at round {notice.round}, this worker at"
                f" {own_round}; fetch the model from another worker and join the job again"
            )
        self.probe.note_notice(notice, is_same_round=ahead == 0)

    def _head_stream(self) -> SlotStream:
        """Return the stream that the oldest allreduce waits in."""
        if self._running:
            return self.values
        return self.exponents

    def _wait_s(self, now_s: float) -> float:
        until_s = min(self.exponents.next_expiry_s, self.values.next_expiry_s, now_s + IDLE_S)
        for task in (*self._running, *self._waiting):
            until_s = min(until_s, task.deadline_s, self.probe.next_s(task, now_s))
        return max(0.0, until_s - now_s)

    def _keep_deadlines(self, now_s: float) -> None:
        for task in (*self._running, *self._waiting):
            if now_s >= task.deadline_s:
                raise self.probe.verdict(task)
            if now_s >= self.probe.start_s(task):
                self.probe.send(self._head_stream(), now_s)
                return
        self.probe.reset()

    def _end_all(self, error: HostlibError) -> None:
        """Fail everything under way with the error and refuse what comes later."""
        with self._lock:
            if self._failure is None and not self._is_closing:
                self._failure = error
            tasks = [*self._running, *self._waiting, *self._inbox]
            self._inbox = deque()
        for task in tasks:
            task.future.set_exception(error)
