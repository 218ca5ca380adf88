# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Switches that a job has left because its data did not get through, and when it may come back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

FIRST_S: Final = 20.0
"""A job returns to a switch this long after it has left it, unless it learns more."""
LONGEST_S: Final = 320.0
"""Each retreat doubles the time, up to this."""
CALM_S: Final = 600.0
"""After this long without a retreat, the next one takes the first time again."""


class Retreat:
    """The retreats of one job."""

    def __init__(self) -> None:
        self._switches: set[str] = set()
        """Switches that do not work, as far as the job knows."""
        self._until_s = float("-inf")
        self._pause_s = FIRST_S

    def begin(self, switches: Iterable[str], now_s: float) -> float:
        """Leave switches; return for how long."""
        if now_s - self._until_s > CALM_S:
            self._pause_s = FIRST_S
        pause_s = self._pause_s
        if not self.is_on(now_s):
            self._pause_s = min(2 * pause_s, LONGEST_S)
        self._switches.update(switches)
        self._until_s = max(self._until_s, now_s + pause_s)
        return pause_s

    def switches(self, now_s: float) -> frozenset[str]:
        """Return the switches that the job stays away from."""
        if now_s >= self._until_s:
            self._switches.clear()
        return frozenset(self._switches)

    def is_on(self, now_s: float) -> bool:
        """Return whether the job stays away from any switch."""
        return bool(self.switches(now_s))

    def end(self, switch: str) -> bool:
        """Note that a switch has become ready again; return whether the job had left it."""
        had_left = switch in self._switches
        self._switches.discard(switch)
        return had_left
