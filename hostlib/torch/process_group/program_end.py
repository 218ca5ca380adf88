# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Groups that a program leaves open: they leave their jobs when the interpreter exits."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import weakref
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any, Protocol


class OpenGroup(Protocol):
    """A process group with a session."""

    def wait_for_others(self) -> None:
        """Wait until the other ranks need nothing more from this one, for a limited time."""
        ...

    def close(self) -> None:
        """Leave the job without waiting for other ranks."""
        ...


open_groups: weakref.WeakSet[Any] = weakref.WeakSet()
"""Groups with a session; a program may end without destroying them."""

# A forked process shares the parent's connections, and must not leave in its place as it ends.
os.register_at_fork(after_in_child=open_groups.clear)


@atexit.register
def leave_all() -> None:
    """Leave the jobs of all open groups.

    After an error or Ctrl-C no rank can still get results from this one, so the groups leave at
    once. A Ctrl-C while they leave ends only the waiting. A later one ends the process, because the
    groups have left by then.
    """
    groups: list[OpenGroup] = list(open_groups)
    # Python 3.11 has only the second.
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    is_failed = error is not None
    with _interrupts_end(_Waiting(is_over=isinstance(error, KeyboardInterrupt))) as waiting:
        for group in groups:
            if not is_failed:
                with suppress(KeyboardInterrupt), waiting:
                    group.wait_for_others()
            group.close()


class _Waiting:
    """Whether Ctrl-C may raise KeyboardInterrupt now."""

    def __init__(self, *, is_over: bool) -> None:
        self.is_now = False
        self.is_over = is_over

    def __enter__(self) -> None:
        if self.is_over:
            raise KeyboardInterrupt
        self.is_now = True

    def __exit__(self, *_: object) -> None:
        self.is_now = False


@contextmanager
def _interrupts_end(waiting: _Waiting) -> Generator[_Waiting]:
    """Let Ctrl-C interrupt only the waiting, both the present and any later one."""
    if threading.current_thread() is not threading.main_thread():
        yield waiting
        return

    def interrupt(_number: int, _frame: object) -> None:
        waiting.is_over = True
        if waiting.is_now:
            waiting.is_now = False
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield waiting
    finally:
        # In the exit functions of other libraries an exception would only print a traceback.
        is_quick = waiting.is_over and before is signal.default_int_handler
        signal.signal(signal.SIGINT, signal.SIG_DFL if is_quick else before)
