# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One iteration of all syncers: who is ready, who may start, and when all are through."""

from __future__ import annotations

import threading
import time
from typing import Any, final

from ..staging.streams import CopyStream
from .completion_vector import CompletionVector
from .submission_order import SubmissionOrder
from .sync_error import RESTART, SyncError, SyncTimeoutError
from .syncer import Syncer
from .syncer_pools import SyncerPools


@final
class SyncSchedule:
    """Starts syncers in their agreed order, each as soon as its layer's gradients are there.

    Without `has_overlap` they start at the end of the backward pass. Bulk synchronous: an iteration
    ends when the bits of all syncers are set. A layer must be through `timeout_s` after its turn
    has come, however long the backward pass takes.
    """

    def __init__(
        self,
        syncers: list[Syncer],
        pools: SyncerPools,
        *,
        has_overlap: bool,
        timeout_s: float,
        place: str,
    ) -> None:
        self.syncers = syncers
        self.completion = CompletionVector(len(syncers))
        self.iteration = -1
        """The one under way, or the last; -1 before the first."""
        self._pools = pools
        self._order = SubmissionOrder()
        self._has_overlap = has_overlap
        self._timeout_s = timeout_s
        self._place = place
        self._lock = threading.Lock()
        self._ready: dict[int, Any] = {}
        self._next = 0

    def begin(self, iteration: int) -> None:
        """Begin an iteration; the one before must have ended."""
        self.check()
        self.iteration = iteration
        self._order.restart()
        self.completion.clear()
        with self._lock:
            self._ready.clear()
            self._next = 0

    def check(self) -> None:
        """Raise SyncError unless all bits are set."""
        if self.completion.error is not None:
            raise self.completion.error
        if not all(self.completion.bits):
            raise SyncError(
                f"{self._place}: the backward pass of iteration {self.iteration} did not end, so"
                f" not all layers were synchronised; {RESTART}"
            )

    def ready(self, index: int, mark: Any) -> None:
        """Learn that a layer's gradients are there; `mark` is what the device must do first."""
        with self._lock:
            if index in self._ready:
                raise SyncError(
                    f"{self._place}, layer {self.syncers[index].name}: gradients came twice in one"
                    " backward pass; with activation checkpointing pass use_reentrant=False"
                )
            self._ready[index] = mark
            if self._has_overlap:
                self._start()

    def finish(self, mark: Any) -> None:
        """End the backward pass: start what is left, and wait for all bits.

        Raises SyncError, or SyncTimeoutError with the layers that are not through.
        """
        with self._lock:
            for index in range(len(self.syncers)):
                self._ready.setdefault(index, mark)
            self._start()
        # Every job ends by its deadline with an error of its own, which says more.
        missing = self.completion.wait(self._timeout_s + 1.0)
        if missing:
            names = ", ".join(self.syncers[index].name for index in missing)
            error = SyncTimeoutError(
                f"{self._place}, iteration {self.iteration}: layers {names} are not through after"
                f" {self._timeout_s:g} s; give pool more threads, or a longer timeout_s"
            )
            self.fail(error)
            raise error

    def settle(self) -> bool:
        """Wait until the layers that were started have been sent; return whether they have.

        A backward pass that failed has started the same layers on all ranks, as it fails at the
        same place. Threads send them, and who uses the session next must come after all of them.
        Returns True after `fail`, which lets nothing more be sent.
        """
        with self._lock:
            num_tickets = sum(syncer.num_tickets for syncer in self.syncers[: self._next])
        return self._order.wait(num_tickets, self._timeout_s + 1.0)

    def fail(self, error: Exception) -> None:
        """End the iteration under way, and all later ones, with an error."""
        self.completion.fail(error)
        self._order.fail(error)

    def _start(self) -> None:
        """Start those whose turn it is; all workers start in the same order."""
        while self._next in self._ready:
            self._pools.submit(self._job(self._next, self._ready[self._next]))
            self._next += 1

    def _job(self, index: int, mark: Any) -> Any:
        syncer, iteration = self.syncers[index], self.iteration
        deadline_s = time.monotonic() + self._timeout_s

        def run(stream: CopyStream) -> None:
            syncer.run(
                stream,
                iteration=iteration,
                order=self._order,
                completion=self.completion,
                deadline_s=deadline_s,
                mark=mark,
            )

        return run
