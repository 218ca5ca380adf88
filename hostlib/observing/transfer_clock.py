# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Counts the transfers of a session, and the time that it exchanges values."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ..future import TransferFuture


@dataclass(frozen=True, kw_only=True)
class TransferTotals:
    """Sums over the transfers of a session until now."""

    completed: int
    failed: int
    num_bytes: int
    """Of those that have ended, in their own dtypes."""
    exchange_s: float
    """Time with at least one transfer under way."""
    first_packet_wait_s: float
    """From submission to the first packet, over all transfers that have sent one."""


class TransferClock:
    """Hears of each transfer twice: when it is submitted, and when it has ended. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives seconds."""
        self._clock = clock
        self._lock = threading.Lock()
        self._num_open = 0
        self._opened_s = 0.0
        self._exchange_s = 0.0
        self._first_packet_wait_s = 0.0
        self._counts: Counter[str] = Counter()

    def watch(self, futures: Iterable[TransferFuture[Any]]) -> None:
        """Count transfers that were just submitted."""
        for future in futures:
            with self._lock:
                if not self._num_open:
                    self._opened_s = self._clock()
                self._num_open += 1
            future.add_done_callback(self._end)

    def _end(self, future: TransferFuture[Any]) -> None:
        times = future.times
        with self._lock:
            self._num_open -= 1
            if not self._num_open:
                self._exchange_s += self._clock() - self._opened_s
            if times.first_packet_s:
                self._first_packet_wait_s += times.first_packet_s - times.submitted_s
            outcome = "completed" if future.exception() is None else "failed"
            self._counts[outcome] += 1
            self._counts["bytes"] += times.num_bytes

    def totals(self) -> TransferTotals:
        """Return the sums; time of transfers under way is counted up to now."""
        with self._lock:
            running_s = self._clock() - self._opened_s if self._num_open else 0.0
            return TransferTotals(
                completed=self._counts["completed"],
                failed=self._counts["failed"],
                num_bytes=self._counts["bytes"],
                exchange_s=self._exchange_s + running_s,
                first_packet_wait_s=self._first_packet_wait_s,
            )
