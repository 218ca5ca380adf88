# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One bit per syncer; an iteration ends when all are set."""

from __future__ import annotations

import threading
import time
from typing import final


@final
class CompletionVector:
    """Bits of one iteration, all set before the first one; safe from any thread."""

    def __init__(self, num_bits: int) -> None:
        self._bits = [True] * num_bits
        self._error: Exception | None = None
        self._changed = threading.Condition()

    @property
    def bits(self) -> tuple[bool, ...]:
        """The present bits, by syncer."""
        with self._changed:
            return tuple(self._bits)

    def clear(self) -> None:
        """Begin an iteration: no bit is set."""
        with self._changed:
            self._bits = [False] * len(self._bits)

    def set(self, index: int) -> None:
        """Set the bit of a syncer that has finished."""
        with self._changed:
            self._bits[index] = True
            self._changed.notify_all()

    def fail(self, error: Exception) -> None:
        """End the waiting with an error; the first one stays."""
        with self._changed:
            if self._error is None:
                self._error = error
            self._changed.notify_all()

    @property
    def error(self) -> Exception | None:
        """The error that ended an iteration, if any."""
        with self._changed:
            return self._error

    def wait(self, timeout_s: float) -> list[int]:
        """Wait for all bits; return the indices that are not set after `timeout_s`.

        Raises the error that `fail` was given.
        """
        deadline_s = time.monotonic() + timeout_s
        with self._changed:
            while self._error is None and not all(self._bits):
                remaining_s = deadline_s - time.monotonic()
                if remaining_s <= 0:
                    break
                self._changed.wait(remaining_s)
            if self._error is not None:
                raise self._error
            return [index for index, bit in enumerate(self._bits) if not bit]
