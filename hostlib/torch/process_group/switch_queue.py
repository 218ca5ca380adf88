# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Queue of one group's collectives to its session, in the order in which they were called."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import torch

from ...errors import AllreduceTimeoutError, SessionClosedError, TensorError
from ...future import AllreduceFuture
from ...guarded_thread import thread_failure
from ...loss_tolerance import NO_LOSS, LossTolerance
from ...options import Precision, ReduceOperation
from ...session import Session, break_session
from ...summation.maxima import MAXIMA
from ...tracing.timeline import Timeline, finished_transfer
from ..bounded_loss import BoundedSum
from ..errors import (
    CollectiveInputError,
    CollectiveMismatchError,
    RankExitedError,
    collective_error,
)
from ..session_use import use_of
from ..staging.staging import Staging
from .failure_report import FailureReport, look_pauses_s
from .memory_use import CopiesBack, MemoryUse
from .work import SwitchfoldWork

JOIN_S: Final = 5.0
"""How long a closing queue waits for its threads."""


@dataclass(frozen=True)
class QueuedTransfer:
    """One allreduce of the session, and the collective that needs it."""

    work: SwitchfoldWork
    staging: Staging
    operation: ReduceOperation
    timeout_s: float
    name: str = ""
    """Name in a timeline."""
    label: str = ""
    """Text that must be the same on all ranks: tensors with different labels are not summed."""
    precision: Precision = "exact"
    bounded: BoundedSum | None = None
    """What it may lack, in a job that tolerates loss; None: nothing."""
    priority: int = 0
    ready_s: float = field(default_factory=time.monotonic)


_Staged = tuple[QueuedTransfer, Sequence[SwitchfoldWork]]
"""A transfer and the earlier works that use the same memory."""
_Submitted = tuple[QueuedTransfer, AllreduceFuture | Exception]


class SwitchQueue:
    """Submits transfers in call order and writes their results back in that order.

    A caller never waits. One thread copies into staging memory; others copy back, one at a time.
    The first transfer that needs a thread starts it. Callbacks of futures may wait for later
    transfers, so another thread goes on with those. If a transfer uses memory of an earlier one,
    its values are read after the earlier result is written back, and later transfers wait with it.
    A sum without some ranks is an error unless `is_partial_allowed`, or the transfer is bounded and
    all ranks are in the job.
    """

    def __init__(
        self,
        session: Session,
        name: str,
        timeline: Timeline | None = None,
        *,
        report: FailureReport | None = None,
        is_partial_allowed: bool = False,
    ) -> None:
        self._session = session
        self._use = use_of(session)
        self._report = report
        self._timeline = timeline
        self._is_partial_allowed = is_partial_allowed
        self._name = name
        self._num_ranks = session.view.num_workers
        self._lock = threading.Lock()
        self._is_closed = False
        self._num_staged = 0
        self._memory = MemoryUse()
        self._copies = CopiesBack()
        self._to_submit: queue.SimpleQueue[_Staged | None] = queue.SimpleQueue()
        self._to_finish: queue.SimpleQueue[_Submitted | None] = queue.SimpleQueue()
        self._submitter: threading.Thread | None = None
        self._finishers: list[threading.Thread] = []
        self._num_finishers = 0
        self._num_resolving = 0  # finishers that run callbacks
        self._turn = threading.Lock()  # held by the finisher that waits for the next transfer

    def put(self, transfer: QueuedTransfer) -> None:
        """Start a transfer; its work gets the result or the error."""
        with self._lock:
            if self._is_closed:
                closed = SessionClosedError("the process group was destroyed")
                transfer.work.finish(collective_error(transfer.work.place, closed))
                return
            owner = self._use.owner
            if owner:
                transfer.work.finish(_claimed(transfer.work.place, owner))
                return
            if not self._finishers:
                self._add_finisher()
            tensors = transfer.work.tensors
            before = self._memory.users(tensors)
            self._memory.add(transfer.work, tensors)
            if transfer.staging.is_immediate and not self._num_staged and not before:
                self._submit(transfer)
                return
            self._num_staged += 1
            self._use.stage()
            if self._submitter is None:
                self._submitter = self._started("submit", self._submit_all)
            self._to_submit.put((transfer, before))

    def settle(self, tensors: Sequence[torch.Tensor]) -> None:
        """Wait until no pending transfer uses the tensors' memory.

        The caller's next work on a device sees what the transfers have written there.
        """
        with self._lock:
            before = self._memory.users(tensors)
            copies = self._copies.into(tensors)
        for caller_waits in copies:  # of works that have ended
            caller_waits()
        for work in before:
            work.wait_for_end()
            work.make_visible()

    def close(self) -> None:
        """End all threads; the session should be closed, which ends pending transfers.

        With an open session, a device that hangs, or callbacks that block, threads may still run
        after JOIN_S; what they submit then ends, too.
        """
        deadline_s = time.monotonic() + JOIN_S
        with self._lock:
            self._is_closed = True
            submitter = self._submitter
        if submitter is not None:
            # It ends the finishers, which must finish what it submits.
            self._to_submit.put(None)
            _join(submitter, deadline_s)
        if submitter is None or not submitter.is_alive():
            self._to_finish.put(None)
        while True:  # a finisher that runs callbacks may have started another
            with self._lock:
                if not self._finishers:
                    return
                finisher = self._finishers.pop()
            _join(finisher, deadline_s)

    def _started(self, kind: str, target: Callable[[], None]) -> threading.Thread:
        name = f"switchfold-{kind}-{self._name}"
        thread = threading.Thread(target=target, name=name, daemon=True)
        thread.start()
        return thread

    def _add_finisher(self) -> None:
        self._finishers.append(self._started("finish", self._finish_all))
        self._num_finishers += 1

    def _submit(self, transfer: QueuedTransfer) -> None:
        outcome: AllreduceFuture | Exception
        try:
            values = transfer.staging.gather()
            if transfer.bounded is not None:
                values = transfer.bounded.contribution(values)
            is_maximum, is_exact = transfer.operation in MAXIMA, transfer.precision == "exact"
            is_whole = is_maximum or (is_exact and values.dtype.kind == "f")
            outcome = self._session.allreduce(
                values,
                transfer.operation,
                timeout_s=transfer.timeout_s,
                nonfinite="propagate",
                label=transfer.label,
                precision=transfer.precision,
                round_to=transfer.staging.round_to if is_exact and not is_maximum else None,
                tolerance=None if is_whole else self._tolerance_of(transfer),
                priority=transfer.priority,
                large_first=transfer.bounded is not None and transfer.bounded.large_first,
            )
        except Exception as error:
            outcome = error
        self._to_finish.put((transfer, outcome))

    def _tolerance_of(self, transfer: QueuedTransfer) -> LossTolerance | None:
        """Return what a sum may lack: what is not said to lack anything is whole."""
        if self._session.view.straggler.tolerance is None:
            return None
        return NO_LOSS if transfer.bounded is None else transfer.bounded.tolerance or NO_LOSS

    def _submit_all(self) -> None:
        while (staged := self._to_submit.get()) is not None:
            transfer, before = staged
            for work in before:
                work.wait_for_end()
            self._submit(transfer)
            self._use.submitted()
            with self._lock:
                self._num_staged -= 1
            # This thread must not keep the tensors alive while it waits.
            del staged, transfer, before
        self._to_finish.put(None)

    def _finish_all(self) -> None:
        while True:
            with self._turn:
                item = self._to_finish.get()
                if item is None:
                    self._to_finish.put(None)  # for the others
                    return
                work = item[0].work
                error = self._finish(*item)
                visibility = item[0].staging.visibility()
                with self._lock:  # a work that `settle` does not find has ended
                    self._memory.remove(work)
                    if visibility is not None:
                        self._copies.add(work.tensors, visibility)
                    has_future = work.end(error)
                # This thread must not keep the tensors alive while it waits.
                del item, error
                if has_future:
                    self._find_successor()
            if has_future:
                work.resolve()
                with self._lock:
                    self._num_resolving -= 1
            del work

    def _find_successor(self) -> None:
        """Let another thread take the next transfer while this one runs callbacks."""
        with self._lock:
            self._num_resolving += 1
            if self._num_resolving == self._num_finishers:
                # At interpreter exit no thread can start; this one comes back.
                with contextlib.suppress(RuntimeError):
                    self._add_finisher()

    def _finish(
        self, transfer: QueuedTransfer, outcome: AllreduceFuture | Exception
    ) -> Exception | None:
        if isinstance(outcome, Exception):
            return collective_error(transfer.work.place, outcome)
        try:
            error = self._write_back(transfer, outcome)
            self._record(transfer, outcome)
        except BaseException as cause:  # a defect: the transfers behind it must end, too
            return collective_error(transfer.work.place, thread_failure(cause))
        return error

    def _record(self, transfer: QueuedTransfer, future: AllreduceFuture) -> None:
        if self._timeline is not None:
            self._timeline.add_transfer(
                finished_transfer(
                    future, transfer.name, ready_s=transfer.ready_s, done_s=time.monotonic()
                )
            )

    def _write_back(self, transfer: QueuedTransfer, future: AllreduceFuture) -> Exception | None:
        place = transfer.work.place
        try:
            if self._report is not None:
                self._watch(future, self._report)
            result = future.result().reshape(-1)
            bounded = transfer.bounded
            num_ranks = future.num_contributors if bounded is None else len(future.members)
            if num_ranks < self._num_ranks and not self._is_partial_allowed:
                gone = sorted(set(range(self._num_ranks)) - set(future.members))
                return RankExitedError(
                    f"{place}: summed over {num_ranks} of {self._num_ranks} ranks"
                    f" (without ranks {gone}); restart the ranks, or let torchrun do so with"
                    " --max-restarts"
                )
            if bounded is not None:
                bounded.complete(result, future.delivery, transfer.operation)
            transfer.staging.scatter(result)
        except Exception as error:
            failure = collective_error(place, error)
            is_own = isinstance(error, TensorError | SessionClosedError | CollectiveMismatchError)
            if self._report is None or is_own:
                return failure
            return self._report.explain(place, failure)
        return None

    def _watch(self, future: AllreduceFuture, report: FailureReport) -> None:
        """Wait for the end; fail the session if the ranks' calls differ."""
        for pause_s in look_pauses_s():
            try:
                future.exception(pause_s)
            except AllreduceTimeoutError:  # of this wait, not of the transfer
                differs = report.disagreement()
                if differs:
                    break_session(self._session, CollectiveMismatchError(differs))
                    return
            else:
                return


def _claimed(place: str, owner: str) -> CollectiveInputError:
    return CollectiveInputError(
        f"{place}: {owner} uses the group's session, so the order of calls would differ between"
        " ranks; call it after the backward pass, or in another group"
        " (torch.distributed.new_group)"
    )


def _join(thread: threading.Thread, deadline_s: float) -> None:
    if thread is not threading.current_thread():
        thread.join(max(0.0, deadline_s - time.monotonic()))
