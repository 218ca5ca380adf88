# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The log of a parameter server whose requests all fail."""

from __future__ import annotations

import logging
import sys

from switchfold.hostlib.parameter_server.repeated_messages import INTERVAL_S, RepeatFilter


def record(text: str, *arguments: object, level: int = logging.WARNING) -> logging.LogRecord:
    return logging.LogRecord("server", level, __file__, 1, text, arguments, None)


class Log:
    """What passes a filter whose clock stands still."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self._filter = RepeatFilter(lambda: self.now_s)

    def show(self, one: logging.LogRecord) -> str | None:
        return one.getMessage() if self._filter.filter(one) else None


def test_same_message_is_shown_once_in_a_time_and_the_others_are_counted() -> None:
    log = Log()
    assert log.show(record("request %d has no effect", 1)) == "request 1 has no effect"
    assert [log.show(record("request %d has no effect", n)) for n in (2, 3)] == [None, None]
    assert log.show(record("the disk of %s is full", "log0")) == "the disk of log0 is full"
    log.now_s += INTERVAL_S
    assert log.show(record("request %d has no effect", 4)) == (
        "request 4 has no effect (2 more like this were left out)"
    )
    log.now_s += INTERVAL_S
    assert log.show(record("request %d has no effect", 5)) == "request 5 has no effect"


def test_another_level_is_another_message() -> None:
    log = Log()
    assert log.show(record("late"))
    assert log.show(record("late", level=logging.ERROR))


def test_tracebacks_always_pass() -> None:
    log = Log()
    for _ in range(2):
        try:
            raise ValueError("a defect")
        except ValueError:
            one = record("applying a change failed")
            one.exc_info = sys.exc_info()
            assert log.show(one)
