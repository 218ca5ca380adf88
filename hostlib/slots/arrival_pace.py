# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How fast datagrams come, and how long a worker lets them gather before it takes them.

A tick of the I/O thread costs about the same for one datagram as for a hundred. So if cores are
busy, the number of ticks decides the cost of a sum. In a tick the thread lets a share of the
chunks under way come in. The rest keeps the links busy until the next tick, here and at the other
workers, whose pauses fall at other times.
"""

from __future__ import annotations

from typing import Final

GATHERED_SHARE: Final = 3
"""A tick lets the chunks under way divided by this come in. With a half of them, the pauses of two
workers would fill the time, and links would be idle in between."""
DECAY: Final = 7 / 8
"""Weight of earlier ticks in the sums, after each tick."""
SHORTEST_S: Final = 0.0001
"""A shorter pause costs more than it saves."""


class ArrivalPace:
    """The pace of one session's datagrams; used by its I/O thread alone.

    It is the mean over a few ticks, silences included, as datagrams come in bursts if workers take
    turns on few cores. The time before the first datagram of a tensor does not count: other workers
    may be late.
    """

    def __init__(self, longest_s: float) -> None:
        """Never ask for a pause over `longest_s`; 0: ask for none."""
        self._longest_s = longest_s
        self._datagrams = 0.0
        self._time_s = 0.0
        self._is_flowing = False
        self._taken_s: float | None = None

    def pause_s(self, under_way: int, limit_s: float) -> float:
        """Return how long to let datagrams gather, at most `limit_s`; 0: not at all.

        `under_way` is the number of datagrams to come. After a silence there is no pause: the
        worker waits for the first datagram.
        """
        if not self._is_flowing or not self._datagrams:
            return 0.0
        gathered_s = under_way / GATHERED_SHARE * self._time_s / self._datagrams
        pause_s = min(gathered_s, self._longest_s, limit_s)
        return pause_s if pause_s > SHORTEST_S else 0.0

    def note(self, count: int, now_s: float) -> None:
        """Learn that a tick has taken `count` datagrams."""
        self._is_flowing = count > 0
        if self._taken_s is not None:
            self._datagrams = DECAY * self._datagrams + count
            self._time_s = DECAY * self._time_s + (now_s - self._taken_s)
        elif not count:
            return
        self._taken_s = now_s

    def rest(self) -> None:
        """Learn that nothing is under way."""
        self._taken_s = None
