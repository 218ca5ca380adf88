# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Threads whose owners learn of a defect that ends them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import final

from .errors import ThreadFailedError

_logger = logging.getLogger(__name__)


def thread_failure(cause: BaseException) -> ThreadFailedError:
    """Log what the present thread has raised, with its traceback; return the error to pass on."""
    name = threading.current_thread().name
    _logger.error("the thread %s failed", name, exc_info=cause)
    failure = ThreadFailedError(
        f"the thread {name} failed: {cause!r}. This is a defect, and the log has its traceback;"
        " close what the thread served, or start the process again"
    )
    failure.__cause__ = cause
    return failure


@final
class GuardedThread(threading.Thread):
    """A daemon thread; whatever its work raises is logged, and told to its owner."""

    def __init__(
        self, work: Callable[[], None], *, name: str, on_failed: Callable[[ThreadFailedError], None]
    ) -> None:
        """`on_failed(error)` is called in the thread, at its end, if `work` raises anything."""
        super().__init__(name=name, daemon=True)
        self._work = work
        self._on_failed = on_failed

    def run(self) -> None:
        """Work."""
        try:
            self._work()
        except BaseException as cause:  # threads end without a word by SystemExit
            self._on_failed(thread_failure(cause))
