# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The congestion window: how many chunks of a stream may be without result at a time.

Slow start up to the first sign of congestion, then additive increase and multiplicative decrease,
at most once per round trip, like TCP with ECN (RFC 3168). A round trip is a window of results, not
a time. The sign is a result with ECN_ECHO. A late result is no sign, since it may wait for another
worker. A loss is no sign either, as queues of this network mark packets long before they are full.
A loss only limits the window so that other chunks find free slots while one waits to be sent again.
But if more packets are lost than links lose at random, as when queues without marks overflow, a
loss counts like a mark.
"""

from __future__ import annotations

from typing import Final

INITIAL_CHUNKS: Final = 16
"""Window of a new stream."""
MINIMUM_CHUNKS: Final = 2
"""Least window: the next chunk travels while the switch adds this one."""
DECREASE: Final = 0.7
"""Factor of a window at congestion: that of TCP's CUBIC (RFC 9438), with which it shares links."""
INCREASE: Final = 0.16
"""Chunks by which the window grows in a window of results. Measured: with it, a job and a TCP flow
take about equal shares. TCP's own 0.53 would be too much, as TCP's bursts find longer queues."""

TOLERATED_PER_HOP: Final = 0.1
"""Part of the packets that links may lose at random. A queue that overflows loses as much only if
the windows together are far larger than the queue."""
LEAST_SAMPLE: Final = 128
"""Losses are compared with at least so many results: a small window shows no share."""


def tolerated_loss(num_workers: int) -> float:
    """Return which part of a job's chunks may be lost at random on some hop.

    A chunk arrives if all contributions do, and this worker's copy of the result.
    """
    return 1 - (1 - TOLERATED_PER_HOP) ** (num_workers + 1)


class CongestionWindow:
    """The window of one stream; learns of results and losses.

    All workers of a job see the same marks of contributions, and a result comes only when all have
    contributed. So the worker with the smallest window sets the pace of the job.
    """

    def __init__(
        self,
        maximum: int,
        *,
        initial: int = INITIAL_CHUNKS,
        minimum: int = MINIMUM_CHUNKS,
        tolerated: float = 0.0,
        floor: int = 0,
    ) -> None:
        """Allow `minimum` to `maximum` chunks without result, and `initial` in the beginning.

        A loss leaves at least `floor` chunks. But losses beyond the part `tolerated` of the results
        count like marks.
        """
        self._maximum = maximum
        self._minimum = min(minimum, maximum)
        self._chunks = float(max(self._minimum, min(initial, maximum)))
        self._is_slow_start = True
        self._deaf_for = 0  # results still to come of chunks sent before the last decrease
        self._tolerated = tolerated
        self._floor = float(floor)
        # Over about a window, or over LEAST_SAMPLE results.
        self._recent_results = 0.0
        self._recent_losses = 0.0

    @property
    def limit(self) -> int:
        """Most chunks that may be without result now; at least 1."""
        return int(self._chunks)

    def on_results(self, count: int, marked: int, under_way: int) -> None:
        """Learn that `count` results came, `marked` of them with ECN_ECHO.

        `under_way` chunks were without result before.
        """
        self._recent_results += count
        if self._recent_results > 2 * self._sample:
            self._recent_results /= 2
            self._recent_losses /= 2
        if marked and self._decrease(under_way - count):
            return
        self._deaf_for = max(0, self._deaf_for - count)
        if under_way < self.limit:
            return  # the tensor or its slots were the limit, which says nothing of a larger window
        if self._is_slow_start:
            self._chunks += count
        else:
            self._chunks += INCREASE * count / self._chunks
        self._chunks = min(self._chunks, float(self._maximum))

    def on_loss(self, under_way: int, count: int = 1) -> None:
        """Learn that `count` packets were lost, with `under_way` chunks without result then."""
        self._recent_losses += count
        is_random = self._recent_losses <= self._tolerated * max(self._recent_results, self._sample)
        if not is_random or self._chunks * DECREASE >= self._floor:
            self._decrease(under_way)
        elif self._chunks > self._floor:
            self._is_slow_start = False
            self._chunks = self._floor  # marks still count, unlike after a decrease

    @property
    def _sample(self) -> int:
        return max(self.limit, LEAST_SAMPLE)

    def _decrease(self, under_way: int) -> bool:
        if self._deaf_for:
            return False
        self._is_slow_start = False
        self._chunks = max(float(self._minimum), self._chunks * DECREASE)
        self._deaf_for = under_way
        return True
