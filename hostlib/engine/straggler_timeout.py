# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""When a worker stops waiting for late ones and closes the rounds of its slots."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LATER_SHARE = 4
"""If a tensor's deadline has passed, its later chunks wait for this part of the deadline."""
MAX_LEVEL = 0xFFFF
"""Levels have 16 bits in a header; no tree is as deep."""


class StragglerTimeout:
    """Times at which FLUSH is due for each slot of a stream.

    The clock runs per tensor, from its first chunk: once a tensor has waited `deadline_s`, its
    later chunks wait only for a share of it, and at least a round trip. Otherwise a lost worker
    would cost the deadline once per window.
    """

    def __init__(self, slot_count: int, deadline_s: float, maximum_s: float) -> None:
        """Repeat flushes with a pause that doubles up to `maximum_s`."""
        self.next_s = np.inf
        """When `due` is to be asked next."""
        self._deadline_s = deadline_s
        self._maximum_s = maximum_s
        self._since_s = np.zeros(slot_count)
        self._due_s = np.full(slot_count, np.inf)
        self._pause_s = np.zeros(slot_count)
        self._levels = np.zeros(slot_count, np.uint32)

    def prepare(self, rows: slice, since_s: float) -> None:
        """Learn when the first chunk of the tensor of these rows was sent."""
        self._since_s[rows] = since_s

    def start(self, rows: slice, now_s: float, margin_s: float) -> None:
        """Start to wait for the results of rows that were contributed now."""
        margin_s = max(margin_s, self._deadline_s / LATER_SHARE)
        due_s = np.maximum(self._since_s[rows] + self._deadline_s, now_s + margin_s)
        self._due_s[rows] = due_s
        self._pause_s[rows] = margin_s
        self._levels[rows] = 0
        self.next_s = min(self.next_s, float(due_s.min()))

    def stop(self, rows: NDArray[np.int64] | slice) -> None:
        """Wait no more: the results of these rows are there."""
        self._due_s[rows] = np.inf

    def due(self, now_s: float) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """Return the rows to flush now, and up to which level of switches their rounds are to end.

        They are due again after a longer pause, for one level more: the switches below a switch
        must answer it before its own round ends.
        """
        rows = np.flatnonzero(self._due_s <= now_s)
        self._due_s[rows] = now_s + self._pause_s[rows]
        self._pause_s[rows] = np.minimum(2 * self._pause_s[rows], self._maximum_s)
        self.next_s = float(self._due_s.min())
        levels = self._levels[rows]
        self._levels[rows] = np.minimum(levels + 1, MAX_LEVEL)
        return rows, levels
