# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Brings the timelines of several ranks to one clock that starts with the first event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from ....hostlib.tracing.timeline import Span, Timeline, Transfer
from ....hostlib.tracing.trace_files import read_trace
from ...errors import ConfigError


class Alignment(StrEnum):
    """What the ranks' clocks were aligned by."""

    ONE_RANK = "one rank"
    SHARED_CLOCK = "the clock of the machine that all ranks ran on"
    BARRIER = "a barrier that all ranks passed"
    FIRST_EVENT = "the first event of each rank: moments of different ranks cannot be compared"


@dataclass(frozen=True, kw_only=True)
class RankEvents:
    """What one rank did, in seconds since the first event of all ranks."""

    rank: int
    host: str
    job: str
    num_dropped: int
    spans: tuple[Span, ...]
    """In the order in which they began."""
    transfers: tuple[Transfer, ...]
    """In the order in which they became ready."""

    @property
    def end_s(self) -> float:
        """When the last event ended."""
        ends = [span.end_s for span in self.spans]
        return max(ends + [each.done_s for each in self.transfers])


@dataclass(frozen=True, kw_only=True)
class Trace:
    """All ranks on one clock."""

    ranks: tuple[RankEvents, ...]
    alignment: Alignment


def load_traces(paths: Sequence[Path]) -> Trace:
    """Read files of different ranks; raises ConfigError, or TraceError for a file."""
    timelines = [read_trace(path) for path in paths]
    for timeline, path in zip(timelines, paths, strict=True):
        if not timeline.spans and not timeline.transfers:
            raise ConfigError(f"{path}: rank {timeline.rank} has recorded nothing; leave it out")
    timelines.sort(key=lambda timeline: timeline.rank)
    ranks = [timeline.rank for timeline in timelines]
    if len(set(ranks)) < len(ranks):
        raise ConfigError(f"the files are of ranks {ranks}; give one file per rank of one run")
    return align(timelines)


def align(timelines: Sequence[Timeline]) -> Trace:
    """Put timelines, each with at least one event, on one clock."""
    alignment, origins_s = _origins(timelines)
    pairs = list(zip(timelines, origins_s, strict=True))
    first_s = min(_begin_s(timeline) - origin_s for timeline, origin_s in pairs)
    return Trace(
        ranks=tuple(_events(timeline, origin_s + first_s) for timeline, origin_s in pairs),
        alignment=alignment,
    )


def _origins(timelines: Sequence[Timeline]) -> tuple[Alignment, list[float]]:
    """Return how ranks are aligned, and each rank's time of one common moment."""
    clocks = [timeline.clock for timeline in timelines]
    if len(timelines) == 1:
        return Alignment.ONE_RANK, [0.0]
    if clocks[0].boot_id and len({clock.boot_id for clock in clocks}) == 1:
        return Alignment.SHARED_CLOCK, [0.0] * len(clocks)
    if all(clock.barrier_s for clock in clocks):
        return Alignment.BARRIER, [clock.barrier_s for clock in clocks]
    return Alignment.FIRST_EVENT, [_begin_s(timeline) for timeline in timelines]


def _begin_s(timeline: Timeline) -> float:
    """Return when the first event began, by the rank's own clock."""
    begins = [span.begin_s for span in timeline.spans]
    return min(begins + [transfer.ready_s for transfer in timeline.transfers])


def _events(timeline: Timeline, origin_s: float) -> RankEvents:
    """Count all times from `origin_s`; the time of what never happened is NaN."""

    def moment(at_s: float) -> float:
        return at_s - origin_s if at_s else float("nan")

    spans = [
        replace(span, begin_s=span.begin_s - origin_s, end_s=span.end_s - origin_s)
        for span in timeline.spans
    ]
    transfers = [
        replace(
            each,
            ready_s=each.ready_s - origin_s,
            first_packet_s=moment(each.first_packet_s),
            last_result_s=moment(each.last_result_s),
            done_s=each.done_s - origin_s,
        )
        for each in timeline.transfers
    ]
    return RankEvents(
        rank=timeline.rank,
        host=timeline.host,
        job=timeline.job,
        num_dropped=timeline.num_dropped,
        spans=tuple(sorted(spans, key=lambda span: (span.begin_s, -span.end_s))),
        transfers=tuple(sorted(transfers, key=lambda each: each.ready_s)),
    )
