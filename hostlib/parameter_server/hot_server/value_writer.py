# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Which rows' values have to be written to the switch, and which writes wait for their receipt."""

from __future__ import annotations

from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from .rounds import U32
from .served_rows import Indexes

REPEAT_S: Final = 0.02
"""After so long without a receipt, at least, a row is written again..."""
_DELAYS: Final = 2.0
"""...or after so many times the usual delay of receipts, and then after twice that, ..."""
_MOST_DOUBLINGS: Final = 5
_WEIGHT: Final = 0.125
"""Of a delay in the usual one."""
_AT_ONCE: Final = 1024
"""Most rows that are written together."""


@final
class ValueWriter:
    """By the position of each row: whether it has changed, and its last write."""

    def __init__(self, num_rows: int = 0) -> None:
        self._has_changed = np.ones(num_rows, np.bool_)
        self._waits = np.zeros(num_rows, np.bool_)
        self._versions = np.zeros(num_rows, np.uint32)
        self._sent_s = np.zeros(num_rows, np.float64)
        self._tries = np.zeros(num_rows, np.int64)
        self._delay_s = 0.0  # of receipts, smoothed
        self._next = 0

    @property
    def has_work(self) -> bool:
        """Whether a row has changed, or waits for its receipt."""
        return bool(self._has_changed.any() or self._waits.any())

    def mark(self, rows: Indexes) -> None:
        """Learn that values of rows have changed."""
        self._has_changed[rows] = True

    def mark_some(self, count: int) -> None:
        """Have the next rows be written again, in turn: a switch may have lost them."""
        if self._has_changed.size:
            self._has_changed[(self._next + np.arange(count)) % self._has_changed.size] = True
            self._next = (self._next + count) % self._has_changed.size

    def take_due(self, now_s: float) -> Indexes:
        """Return rows to be written now; those that were last written longest ago go first."""
        repeat_s = max(REPEAT_S, _DELAYS * self._delay_s)
        doublings = np.minimum(self._tries - 1, _MOST_DOUBLINGS)
        is_late = self._waits & (now_s - self._sent_s >= repeat_s * 2.0**doublings)
        due = np.flatnonzero(is_late | (self._has_changed & ~self._waits))
        if due.size > _AT_ONCE:
            due = due[np.argpartition(self._sent_s[due], _AT_ONCE)[:_AT_ONCE]]
        return due

    def note_sent(self, rows: Indexes, version: int, now_s: float) -> None:
        """Learn that rows were written with what they hold at a version."""
        self._has_changed[rows] = False
        self._tries[rows] = np.where(self._waits[rows], self._tries[rows] + 1, 1)
        self._waits[rows] = True
        self._versions[rows] = version
        self._sent_s[rows] = now_s

    def note_receipts(self, rows: Indexes, versions: U32, now_s: float) -> None:
        """Learn which versions the switch has."""
        rows = rows[(self._versions[rows] == versions) & self._waits[rows]]
        self._waits[rows] = False
        first = rows[self._tries[rows] == 1]  # else it may answer any of several writes
        if first.size:
            delay_s = float(np.mean(now_s - self._sent_s[first]))
            self._delay_s += _WEIGHT * (delay_s - self._delay_s)

    def is_older(self, rows: Indexes, versions: U32) -> NDArray[np.bool_]:
        """Return whether the switch has newer versions than were sent; numbers wrap at 2^32."""
        ahead = versions - self._versions[rows]
        return (ahead > 0) & (ahead < 1 << 31)
