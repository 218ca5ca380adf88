# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The I/O thread of a session: moves tensors along the job's views and keeps the deadlines."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ..allgather import AllgatherTask
from ..control.controller_seam import ControllerLink
from ..control.view import JobView
from ..errors import (
    HostlibError,
    SessionBrokenError,
    SessionClosedError,
)
from ..future import AllgatherFuture, AllreduceFuture
from ..options import SessionOptions, Summation
from ..peers import PeerServer
from ..transports.base import Transport
from .allreduce_task import AllreduceTask
from .reducer import Task
from .view_change import Commit, ViewChange
from .view_runner import ViewRunner

IDLE_S = 1.0
"""Longest wait without any event."""
LINGER_S = 0.5
"""Longest time that a closed session waits for members that miss blocks of it."""
_logger = logging.getLogger(__name__)


@final
class Engine:
    """Runs allreduces in a thread of its own, over the views that its job passes through."""

    def __init__(
        self,
        view: JobView,
        transport: Transport,
        options: SessionOptions,
        *,
        first_tensor: int,
        link: ControllerLink | None,
        peers: PeerServer | None,
    ) -> None:
        self._transport = transport
        self._options = options
        self._link = link
        self._runner = ViewRunner(
            transport,
            options,
            peers,
            first_tensor=first_tensor,
            link=link,
            post=self._post,
        )
        self._change = ViewChange(view.generation, link)
        self._heard = view.generation  # generation of the newest proposal
        self._lock = threading.Lock()
        self._inbox: deque[Task] = deque()
        self._commands: deque[Callable[[], None]] = deque()
        self._next_number = first_tensor
        self._failure: HostlibError | None = None
        self._is_closing = False
        self._is_woken = threading.Event()
        self._enter(Commit(view=view, boundary=first_tensor, source_worker=view.worker_id))
        self._thread = threading.Thread(target=self._run, name="switchfold-io", daemon=True)
        self._thread.start()

    def submit(
        self, submissions: Sequence[tuple[NDArray[Any], Summation]], timeout_s: float
    ) -> list[AllreduceFuture]:
        """Queue allreduces, the highest priority first; nothing comes between them.

        All workers must submit the same sequence of shapes and dtypes. Raises the TensorError of
        the first array that cannot be summed; then none is queued.
        """
        order = sorted(range(len(submissions)), key=lambda i: -submissions[i][1].priority)
        with self._lock:
            self._refuse_if_over()
            deadline_s = time.monotonic() + timeout_s
            tasks = [
                AllreduceTask(
                    self._next_number + place,
                    *submissions[i],
                    deadline_s=deadline_s,
                    timeout_s=timeout_s,
                )
                for place, i in enumerate(order)
            ]
            self._next_number += len(tasks)
            self._inbox.extend(tasks)
        self._wake()
        futures = {i: task.future for i, task in zip(order, tasks, strict=True)}
        return [futures[i] for i in range(len(submissions))]

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
        return self._runner.round_trip_s

    @property
    def exponent_round_trip_s(self) -> float:
        """The same of the exponent stream, whose packets are control packets."""
        return self._runner.exponent_round_trip_s

    @property
    def window(self) -> int:
        """Congestion window of the value stream in chunks, 0 if nothing limits them."""
        return self._runner.window

    @property
    def proposed(self) -> int:
        """Generation of a proposal that was heard and whose commit was not, 0 without one."""
        heard = self._heard
        return heard if heard > self._change.committed else 0

    def propose(self, generation: int, *, is_abort: bool) -> None:
        """Get ready for another view, and answer through the link (any thread)."""
        self._heard = max(self._heard, generation)
        self._post(partial(self._take_proposal, generation, is_abort=is_abort))

    def _take_proposal(self, generation: int, *, is_abort: bool) -> None:
        runner, change = self._runner, self._change
        change.propose(
            generation,
            is_abort=is_abort,
            num_started=runner.num_started,
            num_completed=runner.num_completed,
        )
        if change.is_stopped:
            runner.stop()

    def commit(self, view: JobView, boundary: int, source_worker: int) -> None:
        """Run tensors from number `boundary` on in another view (any thread)."""
        commit = Commit(view=view, boundary=boundary, source_worker=source_worker)

        def take() -> None:
            self._change.agree(commit, num_started=self._runner.num_started)
            if self._change.is_stopped:
                self._runner.stop()

        self._post(take)

    def note_missing(self, generation: int, missing_workers: Sequence[int]) -> None:
        """Learn which workers a view waits for (any thread)."""
        self._post(partial(self._runner.note_missing, generation, missing_workers))

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
        self._runner.interrupt()

    def _post(self, command: Callable[[], None]) -> None:
        self._commands.append(command)
        self._wake()

    def _run(self) -> None:
        try:
            # Sums beyond a dtype's range are infinite, as documented: no warnings from here.
            with np.errstate(over="ignore", under="ignore"):
                while True:
                    self._tick()
        except HostlibError as error:
            self._end_all(error)
        except BaseException as error:  # by SystemExit, too, nobody would be told
            _logger.exception("the I/O thread of job %d failed", self.view.job)
            broken = SessionBrokenError(f"the I/O thread failed: {error!r}; join the job again")
            broken.__cause__ = error
            self._end_all(broken)
        finally:
            if self._failure is None:
                self._linger()
            self._runner.close()

    def _tick(self) -> None:
        """Do one turn of the thread. Each step says why it comes before the next.

        Only the steps that receive may wait. Raises the error that ends the session.
        """
        self._take_inbox()
        self._take_commands()
        self._enter_committed_view()
        self._start_tensors()
        if self._runner.is_stopped:
            self._await_commit()
            return
        self._poll()
        self._keep_deadlines()

    def _take_inbox(self) -> None:
        """Queue the submitted tensors; raise the error if the session failed or was closed.

        This comes first, so that a session that is over sends nothing more.
        """
        if not self._inbox and self._failure is None and not self._is_closing:
            return
        with self._lock:
            failure, is_closing = self._failure, self._is_closing
            tasks, self._inbox = self._inbox, deque()
        self._runner.queue(tasks)
        if failure is not None:
            raise failure
        if is_closing:
            raise SessionClosedError("the session was closed before this allreduce ended")

    def _take_commands(self) -> None:
        """Run what other threads have posted: proposals, commits, fetched results.

        A proposal must stop further tensors, and a commit names the view in which they start. So
        this comes before any tensor starts.
        """
        while self._commands:
            self._commands.popleft()()

    def _enter_committed_view(self) -> None:
        """Enter a committed view once this worker is done with the one before.

        This comes right after the commands, which may hold the commit, and before tensors start:
        what starts in this turn starts in the new view.
        """
        change = self._change
        commit = change.ready(self._runner.num_completed)
        if commit is None:
            return
        self._enter(commit)
        deferred = change.enter()
        if deferred:
            # In the next turn, when this view's first tensors have started.
            self._post(partial(self._take_proposal, deferred, is_abort=False))

    def _start_tensors(self) -> None:
        """Start the tensors that may start in the present view.

        This comes before sending, so that their first packets leave in the same turn.
        """
        runner, change = self._runner, self._change
        runner.start(change.limit)
        if change.is_committed:
            runner.fetch_gathers()

    def _await_commit(self) -> None:
        """Wait while no view is at work; what arrives belongs to the view that was given up.

        This takes the place of all later steps, which need a view.
        """
        until_s = min((task.deadline_s for task in self._runner.unfinished), default=np.inf)
        self._is_woken.wait(max(0.0, min(IDLE_S, until_s - time.monotonic())))
        self._is_woken.clear()
        self._keep_deadlines()

    def _poll(self) -> None:
        """Send what may be sent, wait for results, and complete tensors.

        This comes after what other threads ask for, and does not wait if more has come meanwhile.
        """
        self._is_woken.clear()
        now_s = time.monotonic()
        until_s = min(self._runner.next_s, now_s + IDLE_S)
        if self._inbox or self._commands or self._failure is not None or self._is_closing:
            until_s = now_s
        self._runner.poll(until_s)

    def _keep_deadlines(self) -> None:
        """Ask, report or give up where results do not come.

        This comes last: a result that came in this turn is in time.
        """
        self._runner.keep_deadlines(time.monotonic(), self._change.generation)

    def _linger(self) -> None:
        """Stay until the others have this worker's blocks, which no switch keeps for them."""
        until_s = time.monotonic() + LINGER_S
        try:
            while (next_s := self._runner.next_owed_s) is not None:
                now_s = time.monotonic()
                if now_s >= until_s:
                    return
                self._runner.poll(min(next_s, until_s))
        except HostlibError as error:
            _logger.info("closed while others may miss blocks of job %d: %s", self.view.job, error)

    def _enter(self, commit: Commit) -> None:
        """Run in a view."""
        self._runner.enter(commit)
        _logger.info("entered view %s from tensor %d on", commit.view, commit.boundary)

    def _end_all(self, error: HostlibError) -> None:
        """Fail all unfinished tensors with the error, and refuse later ones."""
        with self._lock:
            if self._failure is None and not self._is_closing:
                self._failure = error
            tasks = [*self._runner.unfinished, *self._inbox]
            self._inbox = deque()
        for task in tasks:
            task.future.set_exception(error)
        if self._failure is not None and self._link is not None:
            self._link.close()
