# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One iteration of all syncers: which are ready, which may start, and when all have finished."""

from __future__ import annotations

import threading
import time
from typing import Any, Final, final

from ..staging.streams import CopyStream
from .completion_vector import CompletionVector
from .submission_order import SubmissionOrder
from .sync_error import RESTART, SyncError, SyncTimeoutError
from .syncer import Syncer
from .syncer_pools import SyncerPools

OWN_ERROR_S: Final = 10.0
"""How long after the deadline a layer's own error, which is more precise, may come."""


@final
class SyncSchedule:
    """Starts syncers in their agreed order, each as soon as its layer's gradients are computed.

    Without `has_overlap` they start at the end of the backward pass. Training is bulk synchronous:
    an iteration ends when the bits of all syncers are set. A layer must finish within `timeout_s`
    after its turn has come, however long the backward pass takes.
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
        """The current or last iteration; -1 before the first."""
        self._pools = pools
        self._order = SubmissionOrder()
        self._has_overlap = has_overlap
        self._timeout_s = timeout_s
        self._place = place
        self._lock = threading.Lock()
        self._ready: dict[int, Any] = {}
        self._next = 0

    def begin(self, iteration: int) -> None:
        """Begin an iteration; the previous one must have ended."""
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
        """Note that a layer's gradients are ready; `mark` is what the device must do first."""
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
        """End the backward pass: start the remaining syncers and wait for all bits.

        Raises SyncError, or SyncTimeoutError with the layers that have not finished.
        """
        with self._lock:
            for index in range(len(self.syncers)):
                self._ready.setdefault(index, mark)
            self._start()
        missing = self.completion.wait(self._timeout_s + OWN_ERROR_S)
        if missing:
            names = ", ".join(self.syncers[index].name for index in missing)
            error = SyncTimeoutError(
                f"{self._place}, iteration {self.iteration}: layers {names} did not finish within"
                f" {self._timeout_s:g} s; give pool more threads, or a longer timeout_s"
            )
            self.fail(error)
            raise error

    def settle(self) -> bool:
        """Wait until all started layers have been sent; return False if they are not in time.

        A failed backward pass has started the same layers on all ranks, because it fails at the
        same layer everywhere. Threads still send them, and the next user of the session must come
        after all of them. Returns True after `fail`, which stops all sending.
        """
        with self._lock:
            num_tickets = sum(syncer.num_tickets for syncer in self.syncers[: self._next])
        return self._order.wait(num_tickets, self._timeout_s + 1.0)

    def fail(self, error: Exception) -> None:
        """End the current iteration and all later ones with an error."""
        self.completion.fail(error)
        self._order.fail(error)

    def _start(self) -> None:
        """Start the syncers whose turn has come; all workers start them in the same order."""
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
