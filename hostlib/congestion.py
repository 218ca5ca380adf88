# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How many chunks of a stream may be under way at a time.

Slow start up to the first sign of congestion, then additive increase and multiplicative decrease,
at most once per round trip, like TCP with ECN (RFC 3168). A round trip is a window of results, not
a time. A sign is a result with ECN_ECHO or a loss; that a result is late is none, since it may wait
for another worker.
"""

from __future__ import annotations

from typing import Final

INITIAL_CHUNKS: Final = 16
"""Window of a new stream."""
MINIMUM_CHUNKS: Final = 2
"""Least window: the next chunk is on its way while the switch adds this one up."""
DECREASE: Final = 0.7
"""What congestion leaves of a window: as TCP's CUBIC (RFC 9438), with which it shares links."""
INCREASE: Final = 0.16
"""Chunks by which the window grows in a window of results: measured so that a job and a TCP flow
take about equal shares. TCP's own 0.53 would be too much: its bursts find longer queues."""


class CongestionWindow:
    """The window of one stream; told of everything that it could react to.

    All workers of a job see the marks of contributions alike, and results only come when everybody
    has contributed: so the worker with the smallest window sets the pace of the job.
    """

    def __init__(
        self, maximum: int, *, initial: int = INITIAL_CHUNKS, minimum: int = MINIMUM_CHUNKS
    ) -> None:
        """Allow `minimum` to `maximum` chunks without result, and `initial` in the beginning."""
        self._maximum = maximum
        self._minimum = min(minimum, maximum)
        self._chunks = float(max(self._minimum, min(initial, maximum)))
        self._is_slow_start = True
        self._deaf_for = 0  # results still to come of chunks sent before the last decrease

    @property
    def limit(self) -> int:
        """Most chunks that may be without result now; at least 1."""
        return int(self._chunks)

    def on_results(self, count: int, marked: int, under_way: int) -> None:
        """Learn that `count` results came, `marked` of them with ECN_ECHO.

        `under_way` chunks were without result before.
        """
        if marked and self._decrease(under_way - count):
            return
        self._deaf_for = max(0, self._deaf_for - count)
        if under_way < self.limit:
            return  # tensor or slots were the limit: nothing is known about a larger window
        if self._is_slow_start:
            self._chunks += count
        else:
            self._chunks += INCREASE * count / self._chunks
        self._chunks = min(self._chunks, float(self._maximum))

    def on_loss(self, under_way: int) -> None:
        """Learn that a packet was lost, with `under_way` chunks without result then."""
        self._decrease(under_way)

    def _decrease(self, under_way: int) -> bool:
        if self._deaf_for:
            return False
        self._is_slow_start = False
        self._chunks = max(float(self._minimum), self._chunks * DECREASE)
        self._deaf_for = under_way
        return True
