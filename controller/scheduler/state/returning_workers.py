# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Workers that have a model, or are getting one, and will come back for the next: for whom a chain
of models is worth waiting. All rules here are ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

_NEW_SHARE: Final = 0.25
"""Of a new time in the average."""
_FIRST_TIMES: Final = 4.0
"""A worker's first iteration is taken to be so many times as long as its model travels."""
_MOST_LATE: Final = 3.0
"""A worker that is away for so many times what is usual is no longer expected."""


@dataclass(kw_only=True)
class _Absence:
    """Of a worker with a model."""

    since_s: float
    """When it was granted."""
    until_s: float
    """How long the worker is expected."""


class ReturningWorkers:
    """Of one server. Times are the scheduler's."""

    def __init__(self) -> None:
        self._away: dict[str, _Absence] = {}
        self._usual_s: dict[str, float] = {}
        """By worker, the mean time from the grant of a model until it asks for the next one."""

    def granted(self, worker: str, now_s: float, model_s: float) -> None:
        """Note that a worker has a grant of a model, which is at its end after `model_s`."""
        usual_s = max(model_s, self._usual_s.get(worker, _FIRST_TIMES * model_s))
        self._away[worker] = _Absence(since_s=now_s, until_s=now_s + _MOST_LATE * usual_s)

    def requested(self, worker: str, now_s: float) -> None:
        """Note that a worker asks for its next model."""
        absence = self._away.pop(worker, None)
        if absence is not None:
            took_s = min(now_s, absence.until_s) - absence.since_s
            usual_s = self._usual_s.get(worker, took_s)
            self._usual_s[worker] = usual_s + _NEW_SHARE * (took_s - usual_s)

    def gone(self, worker: str) -> None:
        """Expect a worker no longer."""
        self._away.pop(worker, None)

    def at_most_s(self, count: int, now_s: float) -> float:
        """Return from when on at most `count` workers are expected, if none comes back before.

        It is minus infinity if no more are expected now. Cost: O(n log n) for n workers.
        """
        ends = sorted(each.until_s for each in self._away.values() if each.until_s > now_s)
        return ends[len(ends) - count - 1] if len(ends) > count else -math.inf
