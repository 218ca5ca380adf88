# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How much of a rank's communication was hidden behind its computing."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ....hostlib.tracing.timeline import WAIT
from ....hostlib.tracing.trace_files import Interval, union
from .alignment import RankEvents


@dataclass(frozen=True, kw_only=True)
class RankSummary:
    """Sums over one rank's trace; times in seconds."""

    rank: int
    duration_s: float
    compute_s: float
    """Time in which anything was computed."""
    categories_s: dict[str, float]
    """The same by category."""
    num_transfers: int
    num_failed: int
    num_bytes: int
    transfer_s: float
    """Time in which any tensor was between its first packet and its last result."""
    overlapped_s: float
    """Of that, time in which this rank computed too."""
    median_wait_s: float
    """From ready to first packet; over all transfers that were sent."""
    num_dropped: int
    """Events that the recorder had no room for."""

    @property
    def exposed_s(self) -> float:
        """Communication that no computing hid."""
        return self.transfer_s - self.overlapped_s

    @property
    def overlap_share(self) -> float:
        """Part of the communication that was hidden, 0 without any."""
        return self.overlapped_s / self.transfer_s if self.transfer_s else 0.0


def summarize(events: RankEvents) -> RankSummary:
    """Sum up one rank."""
    by_category: dict[str, list[Interval]] = defaultdict(list)
    for span in events.spans:
        by_category[span.category].append((span.begin_s, span.end_s))
    compute = union(
        interval
        for category, intervals in by_category.items()
        if category != WAIT
        for interval in intervals
    )
    sent = [each for each in events.transfers if not math.isnan(each.first_packet_s)]
    ended = [each for each in sent if not math.isnan(each.last_result_s)]
    on_network = union((each.first_packet_s, each.last_result_s) for each in ended)
    begins = [span.begin_s for span in events.spans] + [each.ready_s for each in events.transfers]
    waits = [each.first_packet_s - each.ready_s for each in sent]
    return RankSummary(
        rank=events.rank,
        duration_s=events.end_s - min(begins),
        compute_s=length_s(compute),
        categories_s={
            category: length_s(union(intervals)) for category, intervals in by_category.items()
        },
        num_transfers=len(events.transfers),
        num_failed=sum(bool(each.error) for each in events.transfers),
        num_bytes=sum(each.num_bytes for each in events.transfers),
        transfer_s=length_s(on_network),
        overlapped_s=length_s(intersection(compute, on_network)),
        median_wait_s=statistics.median(waits) if waits else 0.0,
        num_dropped=events.num_dropped,
    )


def length_s(apart: Sequence[Interval]) -> float:
    """Return the total length of disjoint intervals."""
    return sum(end_s - begin_s for begin_s, end_s in apart)


def intersection(one: Sequence[Interval], other: Sequence[Interval]) -> list[Interval]:
    """Return the intersection of two unions, as `hostlib.tracing.trace_files.union` makes them."""
    both: list[Interval] = []
    left, right = 0, 0
    while left < len(one) and right < len(other):
        begin_s = max(one[left][0], other[right][0])
        end_s = min(one[left][1], other[right][1])
        if begin_s < end_s:
            both.append((begin_s, end_s))
        if one[left][1] < other[right][1]:
            left += 1
        else:
            right += 1
    return both
