# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Work of a collective that the switch runs."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.futures import Future

from ..errors import CollectiveTimeoutError
from ..profiling import ProfiledEvent, no_events
from ..staging.staging import Staging
from ..torch_seam import run_as_is

NO_TIMEOUT = timedelta(0)
"""The value that PyTorch passes if the caller gave no timeout."""


@run_as_is
class SwitchfoldWork(dist.Work):
    """One collective; safe to use from any thread, and to drop before it ends.

    `wait` raises its error and `exception` returns it. The future carries it into C++, where
    DistributedDataParallel waits.
    """

    def __init__(
        self,
        place: str,
        tensors: Sequence[torch.Tensor],
        staging: Staging,
        event: ProfiledEvent | None = None,
    ) -> None:
        with no_events():
            super().__init__()
        self.place = place
        """Rank, collective and group, for error messages."""
        self.tensors = list(tensors)
        """The tensors of the collective."""
        self._staging = staging
        self._event = event
        self._is_done = threading.Event()
        self._lock = threading.Lock()
        self._error: Exception | None = None
        self._source: Future[Any] | None = None
        self._future: Future[Any] | None = None

    def is_completed(self) -> bool:
        """Return whether it has ended, with or without an error."""
        return self._is_done.is_set()

    def is_success(self) -> bool:
        """Return whether it has ended without an error."""
        return self._is_done.is_set() and self._error is None

    def exception(self) -> Exception | None:
        """Return the error that it ended with, if any."""
        return self._error

    def wait(self, timeout: timedelta = NO_TIMEOUT) -> bool:
        """Wait until the tensors hold the result; raise the error that it ended with.

        Raises CollectiveTimeoutError if `timeout` passes first; the collective itself goes on.
        """
        limit_s = timeout.total_seconds() if timeout > NO_TIMEOUT else None
        if not self._is_done.wait(limit_s):
            raise CollectiveTimeoutError(
                f"{self.place}: not done after {limit_s} s; it is still pending: wait again, or"
                " destroy the process group"
            )
        if self._error is not None:
            raise self._error
        self.make_visible()
        return True

    def wait_for_end(self) -> None:
        """Wait until it has ended, with or without an error."""
        self._is_done.wait()

    def make_visible(self) -> None:
        """Let the caller's next work on a device see what the ended work has written there."""
        self._staging.make_visible()

    def synchronize(self) -> None:
        """Wait as `wait` does."""
        self.wait()

    def result(self) -> list[torch.Tensor]:
        """Return the tensors, once the work is done."""
        return self.tensors

    def get_future(self) -> Future[Any]:
        """Return a future of the list of tensors; it fails with the error's text."""
        with self._lock:
            if self._future is None:
                devices = {tensor.device for tensor in self.tensors if tensor.device.type != "cpu"}
                self._source = Future(devices=list(devices))
                # C++ takes an error set from Python for a value, but not one a callback raises.
                self._future = self._source.then(self._outcome)
            if not self._is_done.is_set():
                return self._future
        self.resolve()
        return self._future

    def finish(self, error: Exception | None = None) -> None:
        """End the work, with or without an error; the process group calls it once."""
        if self.end(error):
            self.resolve()

    def end(self, error: Exception | None) -> bool:
        """End the work once; return whether there is a future, which `resolve` ends."""
        self._error = error
        if self._event is not None:
            self._event.end()  # first, because a waiting caller may then end the profile
        with self._lock:
            self._is_done.set()
            return self._source is not None

    def resolve(self) -> None:
        """End the future, if there is one: its callbacks run here and may block."""
        with self._lock:
            source, self._source = self._source, None
        if source is not None:
            with self._staging.after_scatter():
                source.set_result(self.tensors)

    def _outcome(self, _: Future[Any]) -> list[torch.Tensor]:
        if self._error is not None:
            raise self._error
        return self.tensors
