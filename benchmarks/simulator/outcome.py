# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Figures of one run, from its timeline alone: so they are the same for simulated and live runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.simulator.timeline import TimelineEvent, TimelineKind


@dataclass(frozen=True, kw_only=True)
class RunFigures:
    """What one contender has done. Updates count whole: a shard of n counts 1/n."""

    updates: float
    """Applied."""
    drops: float
    updates_per_s: float
    mean_delay: float
    """Mean number of shards' updates between a version and the update computed on it."""
    p99_delay: float
    max_delay: int
    mean_push_s: float
    """From the request to send until the update is at its server."""
    reached_s: float | None
    """When the asked number of updates had been applied, None if never."""


def delays_of(events: Iterable[TimelineEvent], *, is_synchronous: bool = False) -> list[int]:
    """Return the delay of each commit: commits of its server since its worker got the model.

    The updates of a synchronous step are applied at once: their delay is 0.
    """
    commits: dict[str, int] = {}
    held: dict[tuple[str, str], int] = {}
    delays: list[int] = []
    for event in events:
        key = event.worker, event.server
        if event.event is TimelineKind.GET:
            held[key] = commits.get(event.server, 0)
        elif event.event is TimelineKind.COMMIT:
            number = commits.get(event.server, 0)
            delays.append(0 if is_synchronous else number - held[key])
            commits[event.server] = number + 1
    return delays


def push_times(events: Iterable[TimelineEvent]) -> list[float]:
    """Return the seconds from each request until the update was at its server."""
    return _times_between(events, {TimelineKind.PUSH}, TimelineKind.SENT)


def commit_times(events: Iterable[TimelineEvent]) -> list[float]:
    """Return the seconds from each request until the update was applied."""
    return _times_between(events, {TimelineKind.PUSH}, TimelineKind.COMMIT)


def get_times(events: Iterable[TimelineEvent]) -> list[float]:
    """Return the seconds from the end of each iteration until its worker had the next model."""
    return _times_between(events, {TimelineKind.COMMIT, TimelineKind.DROP}, TimelineKind.GOT)


def _times_between(
    events: Iterable[TimelineEvent], first: Collection[TimelineKind], last: TimelineKind
) -> list[float]:
    """Return the seconds from each event of kinds `first` to the next one of kind `last`."""
    began_s: dict[tuple[str, str], float] = {}
    times: list[float] = []
    for event in events:
        key = event.worker, event.server
        if event.event in first:
            began_s[key] = event.time_s
        elif event.event is last and key in began_s:
            times.append(event.time_s - began_s.pop(key))
    return times


def figures_of(
    events: Sequence[TimelineEvent],
    *,
    duration_s: float,
    num_servers: int,
    wanted_updates: int,
    is_synchronous: bool = False,
) -> RunFigures:
    """Return the figures of a run that lasted so long."""
    commits_s = [event.time_s for event in events if event.event is TimelineKind.COMMIT]
    drops = sum(event.event is TimelineKind.DROP for event in events)
    delays = delays_of(events, is_synchronous=is_synchronous)
    pushes = push_times(events)
    last = wanted_updates * num_servers
    return RunFigures(
        updates=len(commits_s) / num_servers,
        drops=drops / num_servers,
        updates_per_s=len(commits_s) / num_servers / duration_s,
        mean_delay=float(np.mean(delays)) if delays else 0.0,
        p99_delay=float(np.percentile(delays, 99)) if delays else 0.0,
        max_delay=max(delays, default=0),
        mean_push_s=float(np.mean(pushes)) if pushes else 0.0,
        reached_s=commits_s[last - 1] if 0 < last <= len(commits_s) else None,
    )
