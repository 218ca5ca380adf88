# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Collectives of one group on their way through its session, in the order they were called."""

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
from ...options import Precision, ReduceOperation
from ...session import Session, break_session
from ...tracing.timeline import Timeline, finished_transfer
from ..errors import (
    CollectiveInputError,
    CollectiveMismatchError,
    RankExitedError,
    collective_error,
)
from ..session_use import use_of
from ..staging.staging import Staging
from .failure_report import FailureReport, look_pauses_s
from .memory_use import MemoryUse
from .work import SwitchfoldWork

JOIN_S: Final = 5.0
"""How long a queue that is closed waits for its threads."""


@dataclass(frozen=True)
class Transfer:
    """One allreduce of the session, and what it serves."""

    work: SwitchfoldWork
    staging: Staging
    operation: ReduceOperation
    timeout_s: float
    name: str = ""
    """In a timeline."""
    label: str = ""
    """What must be the same on all ranks: others are not added up."""
    precision: Precision = "exact"
    ready_s: float = field(default_factory=time.monotonic)


_Staged = tuple[Transfer, Sequence[SwitchfoldWork]]
"""A transfer and the works before it that use the same memory."""
_Submitted = tuple[Transfer, AllreduceFuture | Exception]


class SwitchQueue:
    """Submits transfers in call order and writes their results back in that order.

    A caller never waits: copies into staging memory are made in one thread, copies back in
    others, one at a time. All are started with the first transfer that needs them. Callbacks of
    futures may wait for later transfers: another thread then goes on with those. A transfer of
    memory that one before it uses is read when that one is written back, and so are all behind it.
    Sums that lack ranks are errors unless `is_partial_allowed`.
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
        self._to_submit: queue.SimpleQueue[_Staged | None] = queue.SimpleQueue()
        self._to_finish: queue.SimpleQueue[_Submitted | None] = queue.SimpleQueue()
        self._submitter: threading.Thread | None = None
        self._finishers: list[threading.Thread] = []
        self._num_finishers = 0
        self._num_telling = 0  # of these, who run callbacks
        self._turn = threading.Lock()  # held by the finisher that waits for the next transfer

    def put(self, transfer: Transfer) -> None:
        """Start a transfer; its work carries whatever becomes of it."""
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
        """Wait until no transfer under way uses the tensors' memory."""
        with self._lock:
            before = self._memory.users(tensors)
        for work in before:
            work.wait_for_end()

    def close(self) -> None:
        """End all threads; the session should be closed, which ends what is under way.

        With an open session, or callbacks that block, they are left to themselves after JOIN_S.
        """
        deadline_s = time.monotonic() + JOIN_S
        with self._lock:
            self._is_closed = True
            submitter = self._submitter
        if submitter is not None:
            # First: what it submits is to be finished.
            self._to_submit.put(None)
            _join(submitter, deadline_s)
        self._to_finish.put(None)
        while True:  # one that runs callbacks may have started another
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

    def _submit(self, transfer: Transfer) -> None:
        outcome: AllreduceFuture | Exception
        try:
            outcome = self._session.allreduce(
                transfer.staging.gather(),
                transfer.operation,
                timeout_s=transfer.timeout_s,
                nonfinite="propagate",
                label=transfer.label,
                precision=transfer.precision,
                round_to=transfer.staging.round_to if transfer.precision == "exact" else None,
            )
        except Exception as error:
            outcome = error
        self._to_finish.put((transfer, outcome))

    def _submit_all(self) -> None:
        while (staged := self._to_submit.get()) is not None:
            transfer, before = staged
            for work in before:
                work.wait_for_end()
            self._submit(transfer)
            self._use.submitted()
            with self._lock:
                self._num_staged -= 1
            # Nothing may keep the tensors alive while this thread waits.
            del staged, transfer, before

    def _finish_all(self) -> None:
        while True:
            with self._turn:
                item = self._to_finish.get()
                if item is None:
                    self._to_finish.put(None)  # for the others
                    return
                work = item[0].work
                error = self._finish(*item)
                with self._lock:
                    self._memory.remove(work)
                has_future = work.end(error)
                # Nothing may keep the tensors alive while this thread waits.
                del item, error
                if has_future:
                    self._find_successor()
            if has_future:
                work.resolve()
                with self._lock:
                    self._num_telling -= 1
            del work

    def _find_successor(self) -> None:
        """See to it that somebody takes the next transfer while this thread runs callbacks."""
        with self._lock:
            self._num_telling += 1
            if self._num_telling == self._num_finishers:
                # None can be started as the interpreter ends; this one comes back.
                with contextlib.suppress(RuntimeError):
                    self._add_finisher()

    def _finish(self, transfer: Transfer, outcome: AllreduceFuture | Exception) -> Exception | None:
        if isinstance(outcome, Exception):
            return collective_error(transfer.work.place, outcome)
        error = self._write_back(transfer, outcome)
        self._record(transfer, outcome)
        return error

    def _record(self, transfer: Transfer, future: AllreduceFuture) -> None:
        if self._timeline is not None:
            self._timeline.add_transfer(
                finished_transfer(
                    future, transfer.name, ready_s=transfer.ready_s, done_s=time.monotonic()
                )
            )

    def _write_back(self, transfer: Transfer, future: AllreduceFuture) -> Exception | None:
        place = transfer.work.place
        try:
            if self._report is not None:
                self._watch(future, self._report)
            result = future.result()
            if future.num_contributors < self._num_ranks and not self._is_partial_allowed:
                gone = sorted(set(range(self._num_ranks)) - set(future.members))
                return RankExitedError(
                    f"{place}: summed over {future.num_contributors} of {self._num_ranks} ranks"
                    f" (without ranks {gone}); restart the ranks, or let torchrun do so with"
                    " --max-restarts"
                )
            transfer.staging.scatter(result.reshape(-1))
        except Exception as error:
            failure = collective_error(place, error)
            is_own = isinstance(error, TensorError | SessionClosedError | CollectiveMismatchError)
            if self._report is None or is_own:
                return failure
            return self._report.explain(place, failure)
        return None

    def _watch(self, future: AllreduceFuture, report: FailureReport) -> None:
        """Wait for the end; break the session once the ranks are seen to disagree."""
        for pause_s in look_pauses_s():
            try:
                future.exception(pause_s)
            except AllreduceTimeoutError:  # of this waiting, not the transfer's own
                differs = report.disagreement()
                if differs:
                    break_session(self._session, CollectiveMismatchError(differs))
                    return
            else:
                return


def _claimed(place: str, owner: str) -> CollectiveInputError:
    return CollectiveInputError(
        f"{place}: {owner} uses the group's session, and ranks would differ in what comes first;"
        " call it after the backward pass, or in a group of its own (torch.distributed.new_group)"
    )


def _join(thread: threading.Thread, deadline_s: float) -> None:
    if thread is not threading.current_thread():
        thread.join(max(0.0, deadline_s - time.monotonic()))
