# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Waiting for SIGTERM or SIGINT in a process that has threads."""

from __future__ import annotations

import contextlib
import signal
import socket
from collections.abc import Callable, Generator
from types import FrameType
from typing import Final

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


@contextlib.contextmanager
def stop_signal() -> Generator[Callable[[], object]]:
    """Take the signals from here on, and yield a function that waits for the first one.

    Blocking them for `sigwait` would not suffice: a thread that a library has started before, such
    as numpy's, could receive one, and the process would end without cleaning up.
    """
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.setblocking(False)
        handlers = {number: signal.signal(number, _ignore) for number in SIGNALS}
        before = signal.set_wakeup_fd(theirs.fileno())
        try:
            yield lambda: ours.recv(1)
        finally:
            signal.set_wakeup_fd(before)
            for number, handler in handlers.items():
                signal.signal(number, handler)


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: Python writes a signal that has a handler to the wake-up socket."""
