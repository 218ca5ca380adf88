# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Collectives of one group on their way through its session, in the order they were called."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from hostlib.errors import SessionClosedError, TensorError
from hostlib.future import AllreduceFuture
from hostlib.options import ReduceOperation
from hostlib.session import Session
from hostlib.timeline import Timeline, finished_transfer
from hostlib.torch.errors import RankExitedError, collective_error
from hostlib.torch.failure_report import FailureReport
from hostlib.torch.staging import Staging
from hostlib.torch.work import SwitchfoldWork


@dataclass(frozen=True)
class Transfer:
    """One allreduce of the session, and what it serves."""

    work: SwitchfoldWork
    staging: Staging
    operation: ReduceOperation
    timeout_s: float
    name: str = ""
    """In a timeline."""
    called: str = ""
    """Name and tensors, the same on all ranks if they agree."""
    ready_s: float = field(default_factory=time.monotonic)


class SwitchQueue:
    """Submits transfers in call order and writes their results back in that order.

    A caller never waits: copies into staging memory are made in one thread, copies back in
    another. Both are started with the first transfer that needs them. Sums that lack ranks are
    errors unless `is_partial_allowed`.
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
        self._report = report
        self._timeline = timeline
        self._is_partial_allowed = is_partial_allowed
        self._name = name
        self._num_ranks = session.view.num_workers
        self._lock = threading.Lock()
        self._is_closed = False
        self._num_staged = 0
        self._to_submit: queue.SimpleQueue[Transfer | None] = queue.SimpleQueue()
        self._to_finish: queue.SimpleQueue[tuple[Transfer, AllreduceFuture] | None] = (
            queue.SimpleQueue()
        )
        self._threads: dict[str, threading.Thread] = {}

    def put(self, transfer: Transfer) -> None:
        """Start a transfer; its work carries whatever becomes of it."""
        with self._lock:
            if self._is_closed:
                closed = SessionClosedError("the process group was destroyed")
                transfer.work.finish(collective_error(transfer.work.place, closed))
                return
            self._start("finish", self._finish_all)
            if transfer.staging.is_immediate and not self._num_staged:
                self._submit(transfer)
                return
            self._num_staged += 1
            self._start("submit", self._submit_all)
            self._to_submit.put(transfer)

    def close(self) -> None:
        """End both threads; the session must be closed, which ends what is under way."""
        with self._lock:
            self._is_closed = True
            threads = dict(self._threads)
        for kind, thread in threads.items():
            (self._to_submit if kind == "submit" else self._to_finish).put(None)
            if thread is not threading.current_thread():
                thread.join()

    def _start(self, kind: str, target: Callable[[], None]) -> None:
        if kind not in self._threads:
            thread = threading.Thread(
                target=target, name=f"switchfold-{kind}-{self._name}", daemon=True
            )
            self._threads[kind] = thread
            thread.start()

    def _submit(self, transfer: Transfer) -> None:
        try:
            future = self._session.allreduce(
                transfer.staging.gather(),
                transfer.operation,
                timeout_s=transfer.timeout_s,
                nonfinite="propagate",
            )
        except Exception as error:
            transfer.work.finish(collective_error(transfer.work.place, error))
            return
        self._to_finish.put((transfer, future))

    def _submit_all(self) -> None:
        while (transfer := self._to_submit.get()) is not None:
            self._submit(transfer)
            with self._lock:
                self._num_staged -= 1
            del transfer

    def _finish_all(self) -> None:
        while (item := self._to_finish.get()) is not None:
            transfer, future = item
            error = self._write_back(transfer, future)
            self._record(transfer, future)
            transfer.work.finish(error)
            # Nothing may keep the tensors alive while this thread waits.
            del item, transfer, future

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
            if self._report is None or isinstance(error, TensorError | SessionClosedError):
                return failure
            return self._report.explain(place, transfer.called, failure)
        return None
