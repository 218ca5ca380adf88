# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The results of allreduces and allgathers that are under way."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, ClassVar, Generic, Self, TypeVar, final

from numpy.typing import NDArray

from .errors import AllgatherTimeoutError, AllreduceTimeoutError
from .loss_tolerance import Delivery
from .tracing.transfer_times import TransferTimes

_logger = logging.getLogger(__name__)

Result = TypeVar("Result")


class TransferFuture(Generic[Result]):
    """Handle of one transfer of a job's sequence; safe to use from any thread."""

    _kind: ClassVar[str]
    _timeout_error: ClassVar[type[AllreduceTimeoutError | AllgatherTimeoutError]]

    def __init__(self, tensor_id: int, num_bytes: int = 0) -> None:
        self.tensor_id = tensor_id
        """Position in the sequence of the job's allreduces and allgathers, from 1."""
        self.times = TransferTimes(num_bytes=num_bytes, submitted_s=time.monotonic())
        """When it was submitted, began to leave, had its last result and was done."""
        self._finished = threading.Event()
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[Self], None]] = []
        self._result: Result | None = None
        self._error: Exception | None = None
        self._members: tuple[int, ...] = ()

    def done(self) -> bool:
        """Return whether a result or an error is there."""
        return self._finished.is_set()

    def result(self, timeout_s: float | None = None) -> Result:
        """Wait for the result and return it: of an allreduce an array like the input.

        Of an allgather a list of arrays like the input, in the order of `members`. Raises the error
        that ended the transfer, or the timeout error of its kind when `timeout_s` passes first; the
        transfer itself goes on then until its own timeout.
        """
        error = self.exception(timeout_s)
        if error is not None:
            raise error
        assert self._result is not None
        return self._result

    def exception(self, timeout_s: float | None = None) -> Exception | None:
        """Wait for the end and return the error, or None after success; waits like `result`."""
        if not self._finished.wait(timeout_s):
            raise self._timeout_error(
                f"tensor {self.tensor_id}: no result after waiting {timeout_s} s; it is still"
                " under way, wait again or close the session"
            )
        return self._error

    @property
    def members(self) -> tuple[int, ...]:
        """Worker ids of the view that the result is from; empty until done."""
        return self._members

    def add_done_callback(self, callback: Callable[[Self], None]) -> None:
        """Call `callback(future)` when done: in the session's I/O thread, or now if done already.

        Callbacks must be short. An exception from one is logged and goes no further.
        """
        with self._lock:
            if not self._finished.is_set():
                self._callbacks.append(callback)
                return
        self._run(callback)

    def set_exception(self, error: Exception) -> None:
        """End the transfer with an error; for the engine only."""
        self._error = error
        self._finish()

    def _finish(self) -> None:
        self.times.done_s = time.monotonic()
        with self._lock:
            self._finished.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            self._run(callback)

    def _run(self, callback: Callable[[Self], None]) -> None:
        try:
            callback(self)
        except BaseException:  # SystemExit, too, would end the thread that all transfers need
            _logger.exception("callback of %s %d failed", self._kind, self.tensor_id)


@final
class AllreduceFuture(TransferFuture[NDArray[Any]]):
    """Handle of one allreduce; safe to use from any thread."""

    _kind = "allreduce"
    _timeout_error = AllreduceTimeoutError

    def __init__(self, tensor_id: int, num_bytes: int = 0) -> None:
        super().__init__(tensor_id, num_bytes)
        self._num_contributors = 0
        self._delivery: Delivery | None = None

    @property
    def delivery(self) -> Delivery | None:
        """Which contributions are in the result.

        None until done, and of exact sums of floats, where `num_contributors` says how many.
        """
        return self._delivery

    @property
    def num_contributors(self) -> int:
        """Fewest workers that any chunk of the result holds; 0 until done."""
        return self._num_contributors

    def set_result(
        self,
        array: NDArray[Any],
        num_contributors: int,
        members: tuple[int, ...],
        delivery: Delivery | None = None,
    ) -> None:
        """End the allreduce with a result; for the engine only."""
        self._result = array
        self._members = members
        self._num_contributors = num_contributors
        self._delivery = delivery
        self._finish()


@final
class AllgatherFuture(TransferFuture[list[NDArray[Any]]]):
    """Handle of one allgather; safe to use from any thread."""

    _kind = "allgather"
    _timeout_error = AllgatherTimeoutError

    def set_result(self, arrays: list[NDArray[Any]], members: tuple[int, ...]) -> None:
        """End the allgather with a result; for the engine only."""
        self._result = arrays
        self._members = members
        self._finish()
