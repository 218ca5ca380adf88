# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How many bytes of a granted update may leave by when: a token bucket over its spans."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, final

from ...control.stations.station import GrantedSpan

DEPTH_S: Final = 0.1
"""What a span allows and was not used is kept for so long. It bounds what leaves late, too."""


@final
class GrantedRate:
    """Bytes at the rate of each span within it, none between, and the last rate after the last.

    Times are those of one clock, in seconds; it must not go back. `start_s`: when the grant came.
    """

    def __init__(self, spans: Sequence[GrantedSpan], start_s: float) -> None:
        self._spans = [
            (start_s + span.start_s, start_s + span.end_s, span.rate_bits_per_s / 8)
            for span in spans
        ]
        first, last = self._spans[0], self._spans[-1]
        self._spans.append((last[1], math.inf, last[2]))
        self._now_s = first[0]
        self._allowed = 0.0

    @property
    def bytes_per_s(self) -> float:
        """The present span's rate, or the next one's."""
        return self._spans[0][2]

    @property
    def depth_bytes(self) -> float:
        """Most bytes that may leave at once."""
        return self.bytes_per_s * DEPTH_S

    def allowed(self, now_s: float) -> int:
        """Return how many bytes may leave now."""
        while now_s >= self._spans[0][1]:
            end_s = self._spans[0][1]
            self._allowed, self._now_s = self._at(end_s), max(end_s, self._spans[1][0])
            del self._spans[0]
            if self._now_s > end_s:
                self._allowed = 0.0  # what a span leaves unused is lost
        if now_s < self._spans[0][0]:
            return 0
        self._allowed, self._now_s = self._at(now_s), max(now_s, self._now_s)
        return int(self._allowed)

    def spend(self, num_bytes: int) -> None:
        """Note that so many of the allowed bytes leave."""
        self._allowed -= num_bytes

    def wait_s(self, now_s: float) -> float:
        """Return how long nothing may leave from now on: until a span begins."""
        return max(0.0, self._spans[0][0] - now_s)

    def _at(self, now_s: float) -> float:
        grown = self._allowed + max(0.0, now_s - self._now_s) * self.bytes_per_s
        return min(grown, max(self.depth_bytes, 1.0))
