# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The I/O thread of a session: moves tensors along the job's views and keeps the deadlines."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..allgather import AllgatherTask
from ..control.view import JobView
from ..errors import (
    AllreduceTimeoutError,
    HostlibError,
    PeerMismatchError,
    SessionBrokenError,
    SessionClosedError,
)
from ..future import AllgatherFuture, AllreduceFuture
from ..options import SessionOptions, Summation
from ..peers import PeerServer
from ..slots.arrival_pace import ArrivalPace
from ..slots.datagram_ring import Words
from ..slots.wire import datagram_bytes
from ..transports.base import Transport
from .allreduce_task import AllreduceTask, Quantizers
from .reducer import Reducer, Task
from .view_change import Commit, ViewChange
from .view_runner import ViewRunner

IDLE_S = 1.0
"""Longest wait without any event."""
BUSY_S = 0.001
"""Wait before sending again when the transport took less than all."""
COALESCE_CHUNKS = 32
"""With at least this many chunks under way, a short pause does not empty the window."""
QUEUE_SHARE = 2
"""The pause is at most this part of the time that chunks wait in queues: where the round trip is
the network's own, a pause would hold up what is to come."""
LEAD_S = 1.0
"""Probing starts this long before the deadline, or at three quarters of a short timeout."""
REPORT_S = 1.0
"""A worker whose path stalls tells the controller so often."""
LINGER_S = 0.5
"""Longest time that a closed session stays for those who lack what it has sent."""
ASK_S = 0.05
"""Pause between questions to a path."""
HEAR_S = 4 * ASK_S
"""Time for questions and answers before a verdict."""
_logger = logging.getLogger(__name__)


class EngineListener(Protocol):
    """Who is told what the engine has done; a controller link is one."""

    def view_entered(self, generation: int) -> None:
        """Learn that no view older than `generation` is used here."""
        ...

    def stalled(
        self, generation: int, missing_workers: Sequence[int], silent_s: float = 0.0
    ) -> None:
        """Learn that nothing comes back in a view though this worker sends."""
        ...

    def close(self, position: int | None = None) -> None:
        """Leave the job: this worker is broken, and must not hold up the others."""
        ...


class Engine:
    """Runs allreduces in a thread of its own, over the views that its job passes through."""

    def __init__(
        self,
        view: JobView,
        transport: Transport,
        options: SessionOptions,
        *,
        first_tensor: int = 0,
        listener: EngineListener | None = None,
        peers: PeerServer | None = None,
    ) -> None:
        self._transport = transport
        self._options = options
        self._listener = listener
        self._runner = ViewRunner(
            transport,
            options,
            peers,
            first_tensor=first_tensor,
            wake=self._wake,
            post=self._post,
        )
        self._change = ViewChange(view.generation)
        self._quantizers: Quantizers = {}
        self._lock = threading.Lock()
        self._inbox: deque[Task] = deque()
        self._commands: deque[Callable[[], None]] = deque()
        self._next_number = first_tensor
        self._failure: HostlibError | None = None
        self._is_closing = False
        self._is_woken = threading.Event()
        self._pace = ArrivalPace(options.coalesce_s)
        self._nap = threading.Lock()  # held, but for a wake that no pause has seen yet
        self._nap.acquire()
        self._progress_s = time.monotonic()
        self._reported_s = 0.0
        self._watch_s = 0.0  # when deadlines and stalls are to be looked at next
        self._asked_s = np.inf  # since when the path is asked why nothing comes
        self._enter(Commit(view=view, boundary=first_tensor, source_worker=view.worker_id))
        self._thread = threading.Thread(target=self._run, name="switchfold-io", daemon=True)
        self._thread.start()

    def submit(
        self, array: NDArray[Any], summation: Summation, timeout_s: float
    ) -> AllreduceFuture:
        """Queue an allreduce; all workers must submit the same sequence of shapes and dtypes."""
        with self._lock:
            self._refuse_if_over()
            task = AllreduceTask(
                self._next_number,
                array,
                summation,
                deadline_s=time.monotonic() + timeout_s,
                timeout_s=timeout_s,
            )
            self._next_number += 1
            self._inbox.append(task)
        self._wake()
        return task.future

    def gather(self, array: NDArray[Any], timeout_s: float) -> AllgatherFuture:
        """Queue an allgather; its place in the sequence is the same on all workers."""
        with self._lock:
            self._refuse_if_over()
            deadline_s = time.monotonic() + timeout_s
            task = AllgatherTask(
                self._next_number, array, deadline_s=deadline_s, timeout_s=timeout_s
            )
            self._next_number += 1
            self._inbox.append(task)
        self._wake()
        return task.future

    def _refuse_if_over(self) -> None:
        if self._failure is not None:
            raise SessionBrokenError(
                f"an earlier failure left this worker's slots out of step ({self._failure});"
                " close the session and join the job again"
            ) from self._failure
        if self._is_closing:
            raise SessionClosedError("the session is closed; join the job again")

    @property
    def view(self) -> JobView:
        """The newest view that this worker has entered."""
        return self._runner.view

    @property
    def statistics(self) -> Counter[str]:
        """Packets by stream and cause, over all views."""
        return self._runner.statistics()

    @property
    def round_trip_s(self) -> float:
        """Smoothed round trip of the value stream, 0 without a measurement."""
        reducer = self._runner.reducer
        return reducer.values.round_trip_s if reducer is not None else 0.0

    @property
    def window(self) -> int:
        """Congestion window of the value stream in chunks, 0 on the host path."""
        reducer = self._runner.reducer
        return reducer.values.window if reducer is not None else 0

    def propose(self, generation: int, is_abort: bool, reply: Callable[[int], None]) -> None:
        """Get ready for another view (any thread); `reply` gets this worker's position."""

        def take() -> None:
            runner = self._runner
            self._change.propose(
                generation,
                is_abort,
                reply,
                num_started=runner.num_started,
                num_completed=runner.num_completed,
            )
            if self._change.is_stopped:
                runner.stop()

        self._post(take)

    def commit(self, view: JobView, boundary: int, source_worker: int) -> None:
        """Run tensors from number `boundary` on in another view (any thread)."""
        commit = Commit(view=view, boundary=boundary, source_worker=source_worker)

        def take() -> None:
            self._change.agree(commit, num_started=self._runner.num_started)
            if self._change.is_stopped:
                self._runner.stop()

        self._post(take)

    def note_missing(self, generation: int, missing_workers: Sequence[int]) -> None:
        """Learn whom all that wait in a view wait for (any thread)."""

        def take() -> None:
            reducer = self._runner.reducer
            if reducer is not None and reducer.view.generation == generation:
                reducer.note_missing(missing_workers)

        self._post(take)

    def fail(self, error: HostlibError) -> None:
        """Break the session from any thread: every allreduce fails with `error`."""
        with self._lock:
            if self._failure is None:
                self._failure = error
        self._wake()

    def close(self) -> int | None:
        """Stop the thread; allreduces under way end with SessionClosedError.

        Returns how many of the job's tensors are complete; None if some were given up.
        """
        with self._lock:
            self._is_closing = True
        self._wake()
        if threading.current_thread() is not self._thread:
            self._thread.join()
        if self._failure is not None or self._runner.num_completed != self._next_number:
            return None
        return self._runner.num_completed

    def _wake(self) -> None:
        self._is_woken.set()
        with self._lock:
            if self._nap.locked():
                self._nap.release()
        self._transport.wake()

    def _post(self, command: Callable[[], None]) -> None:
        self._commands.append(command)
        self._wake()

    def _run(self) -> None:
        try:
            # Sums beyond a dtype's range are infinite, as documented: no warnings from here.
            with np.errstate(over="ignore", under="ignore"):
                while self._step():
                    pass
        except HostlibError as error:
            self._end_all(error)
        except Exception as error:
            _logger.exception("the I/O thread of job %d failed", self.view.job)
            broken = SessionBrokenError(f"the I/O thread failed: {error!r}; join the job again")
            broken.__cause__ = error
            self._end_all(broken)
        finally:
            if self._failure is None:
                self._linger()
            self._runner.close()

    def _step(self) -> bool:
        """Do one round of work; return False when the session is over."""
        if not self._take_inbox():
            return False
        while self._commands:
            self._commands.popleft()()
        runner, change = self._runner, self._change
        commit = change.ready(runner.num_completed)
        if commit is not None:
            self._enter(commit)
            if change.deferred is not None:
                (generation, reply), change.deferred = change.deferred, None
                self.propose(generation, is_abort=False, reply=reply)
        was_waiting = runner.reducer is not None and runner.reducer.is_waiting
        runner.start(change.limit, self._quantizers)
        if runner.num_gathers and change.commit is not None:
            runner.fetch_gathers()
        reducer = runner.reducer
        if reducer is None:
            self._wait_stopped()
            return True
        now_s = time.monotonic()
        is_idle = reducer.pump(now_s)
        has_finished = (bool(runner.num_gathers) or runner.is_behind) and runner.finish()
        if has_finished or not was_waiting:
            self._progress_s = now_s
        # What has finished may have held back others.
        wait_s = self._wait_s(reducer, now_s) if is_idle and not has_finished else BUSY_S
        count = self._receive_gathered(reducer, wait_s)
        now_s = time.monotonic()
        self._pace.note(count, now_s)
        if count and runner.take(self._received_words[:count], now_s):
            self._progress_s = now_s
        if runner.finish():
            self._progress_s = now_s
        reducer.keep_time(now_s)
        self._progress_s = max(self._progress_s, reducer.moved_s)
        self._keep_deadlines(reducer, now_s)
        return True

    def _receive_gathered(self, reducer: Reducer, wait_s: float) -> int:
        """Return how many datagrams came, after a pause where much is under way."""
        outstanding = reducer.outstanding
        if not outstanding:
            count = self._receive(wait_s)
            self._pace.rest()
            return count
        if outstanding >= COALESCE_CHUNKS:
            limit_s = min(wait_s, reducer.values.queueing_s / QUEUE_SHARE)
            pause_s = self._pace.pause_s(outstanding, limit_s)
            if pause_s:
                # One call of the interpreter, which a new tensor ends; an event takes a dozen.
                self._nap.acquire(timeout=pause_s)
        return self._receive(wait_s)

    def _receive(self, wait_s: float) -> int:
        """Return how many datagrams came; without a switch, only wait to be woken."""
        if self._runner.is_open:
            return self._transport.receive(self._received, wait_s)
        self._is_woken.wait(wait_s)
        self._is_woken.clear()
        return 0

    def _linger(self) -> None:
        """Stay until the others have this worker's blocks, which no switch keeps for them."""
        reducer = self._runner.reducer
        exchange = reducer.multicast if reducer is not None else None
        if exchange is None:
            return
        until_s = time.monotonic() + LINGER_S
        try:
            while exchange.is_owing and (now_s := time.monotonic()) < until_s:
                wait_s = max(0.0, min(exchange.next_s, until_s) - now_s)
                count = self._receive(wait_s)
                now_s = time.monotonic()
                if count:
                    self._runner.take(self._received_words[:count], now_s)
                exchange.keep_time(now_s)
        except HostlibError as error:
            _logger.info("closed while others may lack blocks of job %d: %s", self.view.job, error)

    def _wait_stopped(self) -> None:
        """Wait for the commit; what still arrives is of the view that was given up."""
        now_s = time.monotonic()
        until_s = min((task.deadline_s for task in self._runner.unfinished), default=np.inf)
        count = self._receive(max(0.0, min(IDLE_S, until_s - now_s)))
        self._runner.counters["generation"] += count
        self._check_deadlines(time.monotonic())

    def _enter(self, commit: Commit) -> None:
        self._quantizers.clear()
        size = datagram_bytes(commit.view.values_per_packet)
        self._received = np.empty((self._options.batch, size), np.uint8)
        self._received_words: Words = self._received.view(np.uint32)
        is_first = self._runner.reducer is None and not self._runner.has_entered
        self._runner.enter(commit)
        self._progress_s = time.monotonic()
        self._watch_s = 0.0
        self._asked_s = np.inf
        _logger.info("entered view %s from tensor %d on", commit.view, commit.boundary)
        if self._listener is not None and not is_first:
            self._listener.view_entered(commit.view.generation)

    def _take_inbox(self) -> bool:
        if not self._inbox and self._failure is None and not self._is_closing:
            return True
        with self._lock:
            failure, is_closing = self._failure, self._is_closing
            tasks, self._inbox = self._inbox, deque()
        self._runner.queue(tasks)
        self._watch_s = 0.0
        if failure is not None:
            raise failure
        if is_closing:
            raise SessionClosedError("the session was closed before this allreduce ended")
        return True

    def _wait_s(self, reducer: Reducer, now_s: float) -> float:
        if now_s >= self._watch_s:
            self._watch_s = self._next_watch_s(reducer, now_s)
        return max(0.0, min(reducer.next_s, now_s + IDLE_S, self._watch_s) - now_s)

    def _next_watch_s(self, reducer: Reducer, now_s: float) -> float:
        """Return when a deadline or a stall could ask for something, as things are now."""
        until_s = self._progress_s + reducer.stall_s
        if now_s >= until_s:
            is_stalled = self._listener is not None and reducer.is_waiting
            until_s = now_s + (ASK_S if is_stalled else REPORT_S)
        for task in self._runner.unfinished:
            lead_s = task.deadline_s - _lead_s(task)
            if now_s < lead_s:
                until_s = min(until_s, lead_s)
            else:
                until_s = min(until_s, now_s + ASK_S)
                if now_s < task.deadline_s:
                    until_s = min(until_s, task.deadline_s)
        return until_s

    def _keep_deadlines(self, reducer: Reducer, now_s: float) -> None:
        """Ask what nothing comes back for, tell the controller, and end what took too long."""
        failure = reducer.failure
        if failure is None and now_s < self._watch_s:
            return
        if failure is not None and (
            self._listener is None or isinstance(failure, PeerMismatchError)
        ):
            raise failure  # no other view will help
        is_near = any(now_s >= task.deadline_s - _lead_s(task) for task in self._runner.unfinished)
        is_stalled = (
            self._listener is not None
            and reducer.is_waiting
            and (now_s >= self._progress_s + reducer.stall_s or reducer.failure is not None)
        )
        if is_near or is_stalled:
            reducer.ask(now_s)
            self._asked_s = min(self._asked_s, now_s)
        else:
            reducer.end_probe()
            self._asked_s = np.inf
        self._check_deadlines(now_s)
        # The first questions need a moment for their answers.
        is_known = now_s >= self._asked_s + 2 * ASK_S or reducer.failure is not None
        if is_stalled and is_known and now_s >= self._reported_s + REPORT_S:
            self._reported_s = now_s
            assert self._listener is not None
            self._listener.stalled(
                reducer.view.generation, reducer.missing, reducer.silent_s(now_s)
            )

    def _check_deadlines(self, now_s: float) -> None:
        for task in self._runner.unfinished:
            if now_s >= task.deadline_s:
                reducer = self._runner.reducer
                if reducer is None or not task.has_begun:
                    raise AllreduceTimeoutError(
                        f"tensor {task.tensor_id}: no result after {task.timeout_s} s; the job was"
                        f" changing to view {self._change.generation}, which did not end: see"
                        " whether the controller runs"
                    )
                # A thread that was held up has not asked in time: first it hears what is wrong.
                if now_s >= self._asked_s + min(HEAR_S, _lead_s(task)):
                    raise reducer.verdict(task)

    def _end_all(self, error: HostlibError) -> None:
        """Fail everything under way with the error and refuse what comes later."""
        with self._lock:
            if self._failure is None and not self._is_closing:
                self._failure = error
            tasks = [*self._runner.unfinished, *self._inbox]
            self._inbox = deque()
        for task in tasks:
            task.future.set_exception(error)
        if self._failure is not None and self._listener is not None:
            self._listener.close()


def _lead_s(task: Task) -> float:
    """Return how long before its deadline questions about a task start."""
    return min(LEAD_S, task.timeout_s / 4)
