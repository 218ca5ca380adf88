# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Whether a worker pushes and pulls hot keys through switches, or all keys by TCP.

Which is faster depends on what the bottleneck is, so the worker measures both. It compares them in
trials, of windows with the one scheme and the other in turn, and rests with the better one.

Workers share servers, switches and perhaps processors, so one worker's scheme makes all of them
slower or faster. Therefore windows and trials begin at multiples of their length by the wall clock:
workers whose clocks agree have the same scheme at the same time, and each sees what it does to all.
"""

from __future__ import annotations

import math
from typing import Final, final

from ..options import HotRowUse

WINDOW_S: Final = 1.0
SETTLING_S: Final = 0.25
"""The beginning of a window does not count: what the other scheme has begun goes on meanwhile."""
LONGEST_GAP_S: Final = 1.0
"""A window with a longer time between two calls does not count: the worker did something else."""
LEAST_CALLS: Final = 16
"""Pushes and pulls to servers with each scheme, without which nothing changes."""
MOST_PAIRS: Final = 3
"""Windows of each scheme in a trial, unless the difference is clear before."""
CLEAR: Final = 1.3
"""The other scheme is clearly better by this factor..."""
MARGIN: Final = 1.05
"""...clearly no better if it is worse by this one, and must be better by it to be taken."""
REST_S: Final = 64.0
"""From one trial to the next at least, by the wall clock."""
MOST_GROWTH: Final = 16
"""Rests grow up to this factor, by 2 at each trial that changes nothing."""


@final
class _Throughput:
    """Keys, calls and seconds of windows."""

    def __init__(self) -> None:
        self.keys = self.calls = 0
        self.seconds = 0.0

    @property
    def rate(self) -> float:
        """Keys per second."""
        return self.keys / self.seconds if self.seconds else 0.0


@final
class HotRowChoice:
    """The choice of a client, for all its servers and tables with hot rows.

    They share one choice, since the worker waits for all of them: a server that is slow with one
    scheme makes its pushes and pulls of the others rare as well. Time comes from the caller, in
    seconds of a clock that does not jump; `wall_s` is the wall clock's time when that one shows 0.
    """

    def __init__(self, use: HotRowUse, wall_s: float = 0.0) -> None:
        self.uses_hot = use is not HotRowUse.NEVER
        """Whether pushes and pulls go through the switch now."""
        self.num_trials = 0
        """Trials that have ended."""
        self._is_fixed = use is not HotRowUse.AUTO
        self._wall_s = wall_s
        self._best = self.uses_hot
        self._growth = 1
        self._next_s = -math.inf  # the next trial
        self._window: int | None = None  # of a trial
        self._last_s = -math.inf
        self._begin_trial()

    def note(self, num_keys: int, now_s: float) -> bool:
        """Learn of a push or pull of hot and cold keys; return whether it uses the switch."""
        if self._is_fixed:
            return self.uses_hot
        now_s += self._wall_s
        if now_s < self._next_s:
            return self.uses_hot
        gap_s, self._last_s = now_s - self._last_s, now_s
        window = math.floor(now_s / WINDOW_S)
        if window != self._window:
            self._change_window(window, now_s, is_whole=gap_s <= LONGEST_GAP_S)
            if now_s < self._next_s:  # the trial is over
                return self.uses_hot
        elif gap_s > LONGEST_GAP_S:
            self._is_whole = False
        if now_s - window * WINDOW_S >= SETTLING_S:
            self._since_s = min(self._since_s, now_s)
            self._num_calls += 1
            self._keys += num_keys
        return self.uses_hot

    def _begin_trial(self) -> None:
        self._seen = {True: _Throughput(), False: _Throughput()}
        self._num_windows = 0
        self._window = None
        self._begin_window()

    def _begin_window(self) -> None:
        self._num_calls = self._keys = 0
        self._since_s = math.inf
        self._is_whole = True

    def _change_window(self, window: int, now_s: float, *, is_whole: bool) -> None:
        if self._window is not None:
            if self._is_whole and is_whole and self._num_calls:
                seen = self._seen[self.uses_hot]
                seen.keys += self._keys
                seen.calls += self._num_calls
                seen.seconds += now_s - self._since_s
            self._num_windows += 1
            if self._num_windows % 2 == 0 and self._is_over():
                self._end_trial(now_s)
                return
        elif window % 2:
            return  # trials begin with the switch, at an even window
        self._window = window
        self.uses_hot = window % 2 == 0
        self._begin_window()

    @property
    def _ratio(self) -> float:
        """Throughput with the switch to that without; 1 if one of them is not known."""
        hot, cold = self._seen[True], self._seen[False]
        is_known = min(hot.calls, cold.calls) >= LEAST_CALLS
        return hot.rate / cold.rate if is_known and hot.rate and cold.rate else 1.0

    @property
    def _gain(self) -> float:
        """How much better the other scheme is than the best one so far, as a factor."""
        return 1 / self._ratio if self._best else self._ratio

    def _is_over(self) -> bool:
        is_clear = self._gain >= CLEAR or self._gain * MARGIN <= 1
        return is_clear or self._num_windows >= 2 * MOST_PAIRS

    def _end_trial(self, now_s: float) -> None:
        """Rest with the better scheme."""
        self.num_trials += 1
        is_other_better = self._gain > MARGIN
        self._best ^= is_other_better
        self._growth = 1 if is_other_better else min(2 * self._growth, MOST_GROWTH)
        rest_s = REST_S * self._growth
        self._next_s = (math.floor(now_s / rest_s) + 1) * rest_s
        self.uses_hot = self._best
        self._begin_trial()
