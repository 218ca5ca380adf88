# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a collective on the switch returns: done, failed or waited for."""

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
"""What PyTorch passes where the caller gave no timeout."""


@run_as_is
class SwitchfoldWork(dist.Work):
    """One collective under way; safe to use from any thread, and to drop.

    Errors are raised by `wait`, given by `exception`, and carried by the future into C++, where
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
        """What it is about."""
        self._staging = staging
        self._event = event
        self._is_done = threading.Event()
        self._lock = threading.Lock()
        self._error: Exception | None = None
        self._source: Future[Any] | None = None
        self._future: Future[Any] | None = None

    def is_completed(self) -> bool:
        """Return whether it ended, well or not."""
        return self._is_done.is_set()

    def is_success(self) -> bool:
        """Return whether it ended well."""
        return self._is_done.is_set() and self._error is None

    def exception(self) -> Exception | None:
        """Return the error that it ended with, if it did."""
        return self._error

    def wait(self, timeout: timedelta = NO_TIMEOUT) -> bool:
        """Wait until the tensors hold the result; raise the error that it ended with.

        Raises CollectiveTimeoutError when `timeout` passes first; the collective itself goes on.
        """
        limit_s = timeout.total_seconds() if timeout > NO_TIMEOUT else None
        if not self._is_done.wait(limit_s):
            raise CollectiveTimeoutError(
                f"{self.place}: not done after waiting {limit_s} s; it is still under way: wait"
                " again, or destroy the process group"
            )
        if self._error is not None:
            raise self._error
        self._staging.make_visible()
        return True

    def wait_for_end(self) -> None:
        """Wait until it has ended, well or not."""
        self._is_done.wait()

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
                # An error set from Python stays a value in C++; one raised by a callback does not.
                self._future = self._source.then(self._outcome)
            if not self._is_done.is_set():
                return self._future
        self.resolve()
        return self._future

    def finish(self, error: Exception | None = None) -> None:
        """End the work, with an error or well; for the process group only, once."""
        if self.end(error):
            self.resolve()

    def end(self, error: Exception | None) -> bool:
        """End the work, once; return whether there is a future, which `resolve` ends."""
        self._error = error
        if self._event is not None:
            self._event.end()  # first: who has waited may end the profile
        with self._lock:
            self._is_done.set()
            return self._source is not None

    def resolve(self) -> None:
        """End the future, if there is one: its callbacks run here, and may wait for anything."""
        with self._lock:
            source, self._source = self._source, None
        if source is not None:
            with self._staging.after_scatter():
                source.set_result(self.tensors)

    def _outcome(self, _: Future[Any]) -> list[torch.Tensor]:
        if self._error is not None:
            raise self._error
        return self.tensors
