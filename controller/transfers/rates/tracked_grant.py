# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A granted update as it was planned, and as it went by its worker's report.

A report has only begin and end. An update that was late is taken to have kept to its plan, but at
most at one rate, and to have gone on at the last one until its end. That rate is what the network
gave it. One that took less time than planned is taken to have been faster all the time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ...scheduler.planning.bandwidth_estimate import TransferDirection
from ...scheduler.residual_rate import RateSpan

_STEPS: Final = 40
"""Of the search for a rate, each of which halves the error."""


class HostLink(NamedTuple):
    """One direction of a host's link."""

    host: str
    direction: TransferDirection


@dataclass(kw_only=True, eq=False)
class TrackedGrant:
    """Times are those of the schedule's clock, in seconds; rates are bits/s of payload."""

    links: Sequence[HostLink]
    """Of its path, as far as they are estimated."""
    spans: Sequence[RateSpan]
    """As planned; at least one."""
    bits: int
    headroom: float = 1.0
    """How many times as fast as planned it may be."""
    began_s: float = 0.0
    ended_s: float = 0.0
    """0: its worker has not reported it."""
    rate: float = math.inf
    """What the network gave it; infinity: all that it was to have."""

    @property
    def planned_s(self) -> float:
        """How long it was to take."""
        return self.spans[-1].end_s - self.spans[0].start_s

    def report(self, began_s: float, ended_s: float) -> None:
        """Learn when it was sent."""
        self.began_s, self.ended_s = began_s, ended_s
        most = max(span.rate_bits_per_s for span in self.spans)
        if self.late_s <= 0:
            return
        low, high = 0.0, float(most)
        for _ in range(_STEPS):
            self.rate = (low + high) / 2
            if self.sent_bits(began_s, ended_s) < self.bits:
                low = self.rate
            else:
                high = self.rate
        self.rate = high

    @property
    def late_s(self) -> float:
        """By how much it has taken longer than planned."""
        return self.ended_s - self.began_s - self.planned_s

    @property
    def lost_bits(self) -> float:
        """What it had to send after its planned time."""
        return self._last_rate * max(0.0, self.late_s)

    @property
    def limited(self) -> list[tuple[float, float]]:
        """When it was to be faster than it was; of one in time, when it was sent."""
        spans = self._sent_spans()
        kept_back = [
            (start_s, end_s)
            for start_s, end_s, planned in spans
            if math.isinf(self.rate) or planned > self.rate
        ]
        if self.late_s > 0:
            kept_back.append((spans[-1][1], self.ended_s))
        return kept_back

    def planned_bits(self, start_s: float, end_s: float) -> float:
        """Return what it was to send in a time."""
        return sum(
            rate * overlap_s(span_start_s, span_end_s, start_s, end_s)
            for span_start_s, span_end_s, rate in self.spans
        )

    def sent_bits(self, start_s: float, end_s: float) -> float:
        """Return what it has sent in a time, once it is reported."""
        spans = self._sent_spans()
        sent = sum(
            min(planned, self.rate) * overlap_s(span_start_s, span_end_s, start_s, end_s)
            for span_start_s, span_end_s, planned in spans
        )
        return sent + self._last_rate * overlap_s(spans[-1][1], self.ended_s, start_s, end_s)

    @property
    def _last_rate(self) -> float:
        return min(self.spans[-1].rate_bits_per_s, self.rate)

    def _sent_spans(self) -> list[tuple[float, float, float]]:
        """Return its spans with their rates, moved to when it began; shorter if it was faster."""
        first_s, began_s = self.spans[0].start_s, self.began_s
        scale = min(1.0, (self.ended_s - began_s) / self.planned_s)
        return [
            (began_s + scale * (a - first_s), began_s + scale * (b - first_s), rate / scale)
            for a, b, rate in self.spans
        ]


def overlap_s(start_s: float, end_s: float, from_s: float, until_s: float) -> float:
    """Return how long two times overlap."""
    return max(0.0, min(end_s, until_s) - max(start_s, from_s))
