# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Whether a worker pushes and pulls hot keys through switches, or all keys by TCP.

Which is faster depends on what the bottleneck is, so the worker measures both. It compares them in
trials, of windows with the one scheme and the other in turn, and rests with the better one.
"""

from __future__ import annotations

import math
from typing import Final, final

from ..options import HotRowUse

WINDOW_S: Final = 0.25
"""Least time of a window..."""
WINDOW_CALLS: Final = 32
"""...and fewest pushes and pulls to a server."""
SETTLING_CALLS: Final = 8
"""The first ones of a window do not count: what the other scheme has begun goes on meanwhile."""
LONGEST_GAP_S: Final = 1.0
"""A window with a longer time between two calls does not count: the worker did something else."""
MOST_PAIRS: Final = 3
"""Windows of each scheme in a trial, unless the difference is clear before."""
CLEAR: Final = 1.3
"""Ratio of throughputs that needs no further windows."""
MARGIN: Final = 1.05
"""The other scheme must be better by this factor to be taken."""
COST: Final = 0.02
"""Most that trials cost, as a share of the throughput; the first trial aside."""
LEAST_RESTS: Final = 8
"""A rest takes at least so many times as long as the trial before it."""
MOST_GROWTH: Final = 16
"""Rests grow up to this factor, by 2 at each trial that changes nothing."""


@final
class _Throughput:
    """Keys and seconds of windows."""

    def __init__(self) -> None:
        self.keys = 0
        self.seconds = 0.0

    @property
    def rate(self) -> float:
        """Keys per second."""
        return self.keys / self.seconds if self.seconds else math.inf


@final
class HotRowChoice:
    """The choice of a client, for all its servers and tables with hot rows.

    They share one choice, since the worker waits for all of them: a server that is slow with one
    scheme makes its pushes and pulls of the others rare as well. Time comes from the caller, in
    seconds of any clock that does not jump.
    """

    def __init__(self, use: HotRowUse) -> None:
        self.uses_hot = use is not HotRowUse.NEVER
        """Whether pushes and pulls go through the switch now."""
        self.num_trials = 0
        """Trials that have ended."""
        self._is_fixed = use is not HotRowUse.AUTO
        self._best = self.uses_hot
        self._rest_s: float | None = None  # until then; None: in a trial
        self._growth = 1
        self._last_s = -math.inf
        self._begin_trial()

    def note(self, num_keys: int, now_s: float) -> bool:
        """Learn of a push or pull of hot and cold keys; return whether it uses the switch."""
        if self._is_fixed:
            return self.uses_hot
        gap_s, self._last_s = now_s - self._last_s, now_s
        if self._rest_s is not None:
            if now_s < self._rest_s:
                return self.uses_hot
            self._rest_s = None
            self._begin_trial()
        if gap_s > LONGEST_GAP_S:
            self._begin_window(now_s)
        self._num_calls += 1
        if self._num_calls <= SETTLING_CALLS:
            self._since_s = now_s
        elif now_s - self._since_s >= WINDOW_S and self._num_calls > WINDOW_CALLS:
            self._end_window(now_s)
        if self._num_calls >= SETTLING_CALLS:
            self._keys += num_keys
        return self.uses_hot

    def _begin_trial(self) -> None:
        self._seen = {True: _Throughput(), False: _Throughput()}
        self._num_windows = 0
        self._began_s = math.inf
        self._begin_window(math.inf)

    def _begin_window(self, now_s: float) -> None:
        self._began_s = min(self._began_s, now_s)
        self._num_calls = self._keys = 0
        self._since_s = now_s

    def _end_window(self, now_s: float) -> None:
        seen = self._seen[self.uses_hot]
        seen.keys += self._keys
        seen.seconds += now_s - self._since_s
        self._num_windows += 1
        self._begin_window(now_s)
        if self._num_windows % 2 == 0:
            ratio = self._seen[True].rate / self._seen[False].rate
            is_clear = max(ratio, 1 / ratio) >= CLEAR
            if is_clear or self._num_windows == 2 * MOST_PAIRS:
                self._end_trial(ratio, now_s)
                return
        self.uses_hot = not self.uses_hot

    def _end_trial(self, ratio: float, now_s: float) -> None:
        """Rest with the better scheme; `ratio`: throughput with the switch to that without."""
        self.num_trials += 1
        is_other_better = (1 / ratio if self._best else ratio) > MARGIN
        self._best ^= is_other_better
        self._growth = 1 if is_other_better else min(2 * self._growth, MOST_GROWTH)
        worse = min(self._seen.values(), key=lambda seen: seen.rate)
        lost_s = worse.seconds * (1 - min(ratio, 1 / ratio))
        shortest_s = LEAST_RESTS * (now_s - self._began_s)
        self._rest_s = now_s + self._growth * max(lost_s / COST, shortest_s)
        self.uses_hot = self._best
