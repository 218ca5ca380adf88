# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A log that stays readable while every request fails for the same reason."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Final

INTERVAL_S: Final = 1.0


class RepeatFilter(logging.Filter):
    """Lets a message through once a second, and says with the next one how many were left out.

    Messages are the same if their text is before its arguments are put in. Tracebacks always pass.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives seconds."""
        super().__init__()
        self._clock = clock
        self._lock = threading.Lock()
        self._shown_s: dict[tuple[str, int, str], float] = {}
        self._left_out: Counter[tuple[str, int, str]] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to show a record; one that is shown tells of those before it."""
        if record.exc_info:
            return True
        text = str(record.msg)
        message = (record.name, record.levelno, text)
        with self._lock:
            now_s = self._clock()
            if now_s - self._shown_s.get(message, -INTERVAL_S) < INTERVAL_S:
                self._left_out[message] += 1
                return False
            self._shown_s[message] = now_s
            left_out = self._left_out.pop(message, 0)
        if left_out:
            record.msg = f"{text} ({left_out} more like this were left out)"
        return True
