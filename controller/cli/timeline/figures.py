# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Numbers of a recorded job: tallies of each worker, planned and real ends, queues over time."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .records import (
    RecordedTransfer,
    ReplicaBacklog,
    TransferEnd,
    TransferPath,
    TransferTimeline,
)


@dataclass(frozen=True, kw_only=True)
class EndFigures:
    """How much later than planned transfers arrived, in seconds; negative: earlier."""

    number: int
    """Transfers with a plan that arrived. The other figures are 0 without any."""
    num_late: int
    mean_s: float
    median_s: float
    high_s: float
    """95th percentile."""
    most_s: float


@dataclass(frozen=True, kw_only=True)
class UpdateFigures:
    """What became of updates."""

    pushes: int
    """Updates that were asked for."""
    grants: int
    commits: int
    drops: int
    withdrawn: int
    ungranted: int
    refused: int
    endless: int
    """No end is recorded."""
    mean_delay: float | None
    """Of grants, by plan, in versions of the model; None without grants."""
    mean_wait_s: float | None
    """From request to grant; None without grants."""
    ends: EndFigures

    @property
    def drop_ratio(self) -> float:
        """Share of the decided updates that were dropped; 0 before the first decision."""
        decided = self.grants + self.drops
        return self.drops / decided if decided else 0.0


@dataclass(frozen=True, kw_only=True)
class ModelFigures:
    """What became of models."""

    requested: int
    granted: int
    delivered: int
    relayed: int
    """Granted ones that workers sent on."""
    withdrawn: int
    ungranted: int
    ends: EndFigures


class Steps(NamedTuple):
    """A number over time that changes at moments; it is 0 before the first one."""

    times_s: list[float]
    """Rising."""
    values: list[int]
    """From each time on."""

    @property
    def most(self) -> int:
        """The highest value; 0 without any."""
        return max(self.values, default=0)


def end_figures(transfers: Iterable[RecordedTransfer]) -> EndFigures:
    """Return how planned and real ends of transfers differ."""
    arrived = [each for each in transfers if each.behind_s is not None]
    behind = [each.behind_s or 0.0 for each in arrived] or [0.0]
    median_s, high_s = np.percentile(behind, (50, 95)).tolist()
    return EndFigures(
        number=len(arrived),
        num_late=sum(each.is_late for each in arrived),
        mean_s=sum(behind) / len(behind),
        median_s=median_s,
        high_s=high_s,
        most_s=max(behind),
    )


def update_counts(updates: Sequence[RecordedTransfer]) -> UpdateFigures:
    """Return what became of updates."""
    ends = Counter(each.end for each in updates)
    granted = [each for each in updates if each.granted_s is not None]
    delays = [each.delay for each in granted if each.delay is not None]
    waits = [
        (each.granted_s or 0.0) - each.requested_s
        for each in granted
        if each.requested_s is not None
    ]
    return UpdateFigures(
        pushes=sum(each.requested_s is not None for each in updates),
        grants=len(granted),
        commits=ends[TransferEnd.DONE],
        drops=ends[TransferEnd.DROPPED],
        withdrawn=sum(each.is_withdrawn for each in updates),
        ungranted=ends[TransferEnd.UNGRANTED],
        refused=ends[TransferEnd.REFUSED],
        endless=ends[TransferEnd.OPEN] + ends[TransferEnd.ASKED_AGAIN],
        mean_delay=sum(delays) / len(delays) if delays else None,
        mean_wait_s=sum(waits) / len(waits) if waits else None,
        ends=end_figures(updates),
    )


def model_counts(models: Sequence[RecordedTransfer]) -> ModelFigures:
    """Return what became of models."""
    ends = Counter(each.end for each in models)
    return ModelFigures(
        requested=sum(each.requested_s is not None for each in models),
        granted=sum(each.granted_s is not None for each in models),
        delivered=ends[TransferEnd.DONE],
        relayed=sum(each.path is TransferPath.RELAY for each in models),
        withdrawn=ends[TransferEnd.WITHDRAWN],
        ungranted=ends[TransferEnd.UNGRANTED],
        ends=end_figures(models),
    )


def counts_by_worker(timeline: TransferTimeline) -> dict[int, tuple[UpdateFigures, ModelFigures]]:
    """Return what became of each worker's updates and models."""
    updates: dict[int, list[RecordedTransfer]] = {number: [] for number in timeline.workers}
    models: dict[int, list[RecordedTransfer]] = {number: [] for number in updates}
    for each in timeline.updates:
        updates[each.worker].append(each)
    for each in timeline.models:
        models[each.worker].append(each)
    return {
        number: (update_counts(updates[number]), model_counts(models[number])) for number in updates
    }


def group_counts(updates: Iterable[RecordedTransfer]) -> dict[TransferPath, tuple[int, int]]:
    """Return by kind of groups how many there were, and how many updates had a place in one."""
    members: dict[TransferPath, list[tuple[int, int]]] = {}
    for each in updates:
        if each.group is not None:
            members.setdefault(each.path, []).append((each.server, each.group))
    return {path: (len(set(found)), len(found)) for path, found in members.items()}


def waits_for_grants(transfers: Iterable[RecordedTransfer]) -> Steps:
    """Return how many transfers wait for a grant, over time."""
    return _steps(
        (each.requested_s, _first(each.granted_s, each.over_s, each.delivered_s))
        for each in transfers
    )


def waits_for_links(transfers: Iterable[RecordedTransfer]) -> Steps:
    """Return how many transfers are granted and wait for their first span, over time."""
    return _steps(
        (each.granted_s, _first(each.begins_s, each.over_s, each.delivered_s))
        for each in transfers
        if each.begins_s is not None
    )


def waits_for_places(updates: Iterable[RecordedTransfer]) -> Steps:
    """Return how many updates are at their servers and wait for their places, over time."""
    return _steps(
        (each.delivered_s, _first(each.committed_s, each.over_s))
        for each in updates
        if not each.is_model
    )


def replica_backlog(states: Iterable[ReplicaBacklog], server: int) -> Steps:
    """Return how many updates a server's replica has not applied that the server has."""
    own = [each for each in states if each.server == server]
    return Steps([each.time_s for each in own], [each.missing for each in own])


def _first(*times_s: float | None) -> float | None:
    return min((each for each in times_s if each is not None), default=None)


def _steps(spans: Iterable[tuple[float | None, float | None]]) -> Steps:
    """Return how many spans are open at a time; one without an end stays open."""
    changes: Counter[float] = Counter()
    for begin_s, end_s in spans:
        if begin_s is None:
            continue
        changes[begin_s] += 1
        if end_s is not None:
            changes[max(begin_s, end_s)] -= 1
    times_s = sorted(time_s for time_s, change in changes.items() if change)
    return Steps(times_s, list(itertools.accumulate(changes[time_s] for time_s in times_s)))
