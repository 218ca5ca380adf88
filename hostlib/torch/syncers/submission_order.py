# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Puts the submissions of several threads into one agreed order; no thread waits."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import final

from ...errors import AllreduceTimeoutError
from .scheme_channels import Reception

Start = Callable[[], Reception]


@final
class Submission:
    """One message of a channel, sent now or later, and its reception."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._is_started = threading.Event()
        self._reception: Reception | None = None
        self._error: Exception | None = None

    def fail(self, error: Exception) -> None:
        """Give up sending; `reception` raises the error."""
        self._error = error
        self._is_started.set()

    def run(self) -> Exception | None:
        """Send; return the error, if any, which `reception` raises, too."""
        try:
            self._reception = self._start()
        except Exception as error:
            self._error = error
        self._is_started.set()
        return self._error

    def reception(self, timeout_s: float) -> Reception:
        """Wait until it was sent; raise the error of sending, or AllreduceTimeoutError."""
        if not self._is_started.wait(timeout_s):
            raise AllreduceTimeoutError(
                f"not sent within {timeout_s:.1f} s: layers with an earlier turn were not sent"
            )
        if self._error is not None:
            raise self._error
        assert self._reception is not None
        return self._reception


@final
class SubmissionOrder:
    """Runs submissions in the order of their tickets 0, 1, 2, ...

    All workers must submit the same sequence of tensors to a session, but threads have no order. A
    submission whose turn has not come is kept; the thread that fills the gap runs it. After a
    submission that failed nothing is sent, because the session would take the next one for it. The
    rest waits for `fail`.
    """

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._next = 0
        self._waiting: dict[int, Submission] = {}
        self._is_running = False
        self._failure: Exception | None = None

    def put(self, ticket: int, submission: Submission) -> None:
        """Run the submission, now or when its turn comes; never waits for others."""
        with self._lock:
            if self._failure is not None:
                submission.fail(self._failure)
                return
            self._waiting[ticket] = submission
            if self._is_running:
                return  # the thread that runs submissions will find this one
            self._is_running = True
        while True:
            with self._lock:
                due = self._waiting.pop(self._next, None)
                if due is None:
                    self._is_running = False
                    self._lock.notify_all()
                    return
                self._next += 1
            if due.run() is not None:
                return  # `_is_running` stays set: the rest waits for `fail`

    def fail(self, error: Exception) -> None:
        """Send nothing more; pending and later submissions fail."""
        with self._lock:
            self._failure = self._failure or error
            waiting = list(self._waiting.values())
            self._waiting.clear()
            self._lock.notify_all()
        for submission in waiting:
            submission.fail(error)

    def wait(self, num_tickets: int, timeout_s: float) -> bool:
        """Wait until the first `num_tickets` submissions have run; return False after `timeout_s`.

        Returns True at once after `fail`: nothing more will be sent.
        """
        with self._lock:
            return self._lock.wait_for(
                lambda: (
                    self._failure is not None
                    or (self._next >= num_tickets and not self._is_running)
                ),
                timeout_s,
            )

    def restart(self) -> None:
        """Begin at ticket 0 again; no submission may be pending."""
        with self._lock:
            assert not self._waiting
            self._next = 0
