# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Retransmission timeout from round-trip samples, after RFC 6298."""

from __future__ import annotations

import math

PROBE_MARGIN_S = 0.001
"""Least margin of a probe's time over the smoothed round trip; half the round trip if larger."""
SMOOTHING = 1 / 8
"""Weight of a new sample in the smoothed round-trip time (alpha)."""
VARIATION = 1 / 4
"""Weight of a new sample in the round-trip time variation (beta)."""


class RoundTripTimer:
    """Smoothed round-trip time and the timeout that follows from it, with exponential backoff.

    It takes only samples of packets that were sent once (Karn's rule). Times are seconds.
    `minimum_s` is the least margin over the smoothed round trip. It takes the place of the RFC's
    clock granularity, as a busy machine may keep a thread waiting for so long.
    """

    def __init__(self, *, initial_s: float, minimum_s: float, maximum_s: float) -> None:
        self._minimum_s = minimum_s
        self._maximum_s = maximum_s
        self._base_s = max(initial_s, minimum_s)
        self._smoothed_s: float | None = None
        self._variation_s = 0.0
        self._least_s = 0.0
        self._backoff = 0

    @property
    def smoothed_s(self) -> float | None:
        """Smoothed round-trip time, or None before the first sample."""
        return self._smoothed_s

    @property
    def queueing_s(self) -> float:
        """How much longer than the shortest round trip the smoothed one is, 0 without samples."""
        return (self._smoothed_s or 0.0) - self._least_s

    @property
    def least_s(self) -> float:
        """Shortest round trip, 0 without samples."""
        return self._least_s

    @property
    def probe_s(self) -> float:
        """How long no result at all may come before a probe asks for one; at most `timeout_s`.

        The time runs from the last result, which let further chunks leave; their results take a
        round trip. An unneeded probe costs a few packets. Infinite before the first sample.
        """
        if self._smoothed_s is None:
            return math.inf
        margin_s = max(PROBE_MARGIN_S, self._smoothed_s / 2)
        return min(self.timeout_s, self._smoothed_s + margin_s)

    @property
    def steady_s(self) -> float:
        """Retransmission timeout without backoff."""
        return min(self._maximum_s, self._base_s)

    @property
    def timeout_s(self) -> float:
        """Present retransmission timeout, backoff included."""
        return min(self._maximum_s, self._base_s * (1 << self._backoff))

    def add_sample(self, sample_s: float) -> None:
        """Take one measured round-trip time into account and end any backoff."""
        if self._smoothed_s is None:
            self._smoothed_s = self._least_s = sample_s
            self._variation_s = sample_s / 2
        else:
            self._least_s = min(self._least_s, sample_s)
            deviation = abs(self._smoothed_s - sample_s)
            self._variation_s += VARIATION * (deviation - self._variation_s)
            self._smoothed_s += SMOOTHING * (sample_s - self._smoothed_s)
        self._base_s = self._smoothed_s + max(self._minimum_s, 4 * self._variation_s)
        self._backoff = 0

    def back_off(self) -> None:
        """Double the timeout, until the next sample: an expiry passed without one."""
        if self.timeout_s < self._maximum_s:
            self._backoff += 1
