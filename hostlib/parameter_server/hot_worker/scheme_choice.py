# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Whether a worker pushes and pulls hot keys through switches, or all keys by TCP.

Which is faster depends on what the bottleneck is, so the worker measures both. It compares them in
trials, of windows with the one scheme and the other in turn, and rests with the better one.

Workers share servers, switches and perhaps processors, so one worker's scheme makes all of them
slower or faster, and a single worker with hot rows would find sums with nobody else's pushes. So
time alone says when trials and their windows begin and end: at multiples of their length by the
wall clock. Workers whose clocks agree have the same scheme at the same time in all trials, and each
sees what it does to all.
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
NUM_WINDOWS: Final = 4
"""Of a trial: with the switch, without, and both again."""
MARGIN: Final = 1.05
"""The other scheme must be better by this factor to be taken."""
FIRST_S: Final = 8.0
"""The first trial begins at a multiple of this time..."""
REST_S: Final = 128.0
"""...and later ones at multiples of this one."""


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
        self._pause_s = FIRST_S
        self._window: tuple[int, int] | None = None  # number of the trial, and in it
        self._last_s = self._rest_until_s = -math.inf  # the second without `wall_s`
        self._begin_window()
        self._begin_trial(is_late=False)

    def note(self, num_keys: int, now_s: float) -> bool:
        """Learn of a push or pull of hot and cold keys; return whether it uses the switch."""
        if self._is_fixed or now_s < self._rest_until_s:
            return self.uses_hot
        now_s += self._wall_s
        trial, since_s = divmod(now_s, self._pause_s)
        window = int(since_s / WINDOW_S)
        gap_s, self._last_s = now_s - self._last_s, now_s
        if window >= NUM_WINDOWS:
            if self._window is not None:
                self._end_window(now_s, is_whole=gap_s <= LONGEST_GAP_S)
                self._end_trial()
            next_s = (now_s // self._pause_s + 1) * self._pause_s
            self._rest_until_s = next_s - self._wall_s
            return self.uses_hot
        if (int(trial), window) != self._window:
            if self._window is not None:
                self._end_window(now_s, is_whole=gap_s <= LONGEST_GAP_S)
            if self._window is None or int(trial) != self._window[0]:
                self._begin_trial(is_late=window > 0)
            self._window = int(trial), window
            self._begin_window()
            self.uses_hot = window % 2 == 0
        elif gap_s > LONGEST_GAP_S:
            self._is_whole = False
        if since_s - window * WINDOW_S >= SETTLING_S:
            self._since_s = min(self._since_s, now_s)
            self._num_calls += 1
            self._keys += num_keys
        return self.uses_hot

    def _begin_trial(self, *, is_late: bool) -> None:
        """`is_late`: the worker has missed windows, so this trial changes nothing."""
        self._is_late = is_late
        self._seen = {True: _Throughput(), False: _Throughput()}

    def _begin_window(self) -> None:
        self._num_calls = self._keys = 0
        self._since_s = math.inf
        self._is_whole = True

    def _end_window(self, now_s: float, *, is_whole: bool) -> None:
        if self._is_whole and is_whole and self._num_calls:
            seen = self._seen[self.uses_hot]
            seen.keys += self._keys
            seen.calls += self._num_calls
            seen.seconds += now_s - self._since_s

    @property
    def _ratio(self) -> float:
        """Throughput with the switch to that without; 1 if one of them is not known."""
        hot, cold = self._seen[True], self._seen[False]
        is_known = min(hot.calls, cold.calls) >= LEAST_CALLS
        return hot.rate / cold.rate if is_known and hot.rate and cold.rate else 1.0

    def _end_trial(self) -> None:
        """Rest with the better scheme."""
        self._window = None
        if not self._is_late:
            self.num_trials += 1
            self._best ^= (1 / self._ratio if self._best else self._ratio) > MARGIN
            self._pause_s = REST_S
        self.uses_hot = self._best
