# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Aggregation groups: which updates of a batch go to the server, and which are added first.

MLfabric cuts the ordered list into consecutive groups. The first group goes to the server directly;
each later one is gathered at a host meanwhile, so that its gathering costs no time. How the first
group's length and the aggregators are chosen is ours, and so are groups at switches.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from .checks import check_whole
from .errors import InvalidTransferError
from .network import ResidualNetwork, TransferNetwork
from .planning.alike_hosts import AlikeHosts
from .planning.batch_draft import BatchDraft, DraftSetting
from .planning.batch_links import shared_links
from .planning.gathering import Gatherings
from .planning.path_limits import PathLimits, path_limits
from .planning.switch_adding import SwitchAdding
from .transfers import PlannedTransfer, TransferGroup, TransferRequest

MOST_MEMBERS: Final = 32
"""Children that a switch can have in one tree."""


@dataclass(frozen=True, kw_only=True)
class AggregationPlaces:
    """Where updates of a job may be added up now."""

    hosts: Sequence[str] = ()
    """Idle ones; each gathers at most one group of a batch. Hosts with updates are left out."""
    switches: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """Leaves with slots of the job, and the hosts below them."""
    most_members: int = MOST_MEMBERS

    def __post_init__(self) -> None:
        check_whole("most_members", self.most_members, 2)


class PlanAim(enum.Enum):
    """What a plan makes least."""

    SUM_OF_COMMITS = enum.auto()
    LAST_COMMIT = enum.auto()


@dataclass(frozen=True, kw_only=True)
class PlanGoal:
    """What a plan is for."""

    aim: PlanAim = PlanAim.SUM_OF_COMMITS
    earliest_commit_s: float = 0.0
    """When the server applies the last update before the batch."""
    join_ratio: float = 1.0
    """For groups at switches; see SchedulerOptions."""


@dataclass(frozen=True, kw_only=True)
class BatchPlan:
    """A batch with its groups, and the network with its reservations."""

    direct: tuple[PlannedTransfer, ...]
    groups: tuple[TransferGroup, ...]
    commits_s: Mapping[int, float]
    """By transfer id, when the server can apply it."""
    residual: ResidualNetwork
    cost: tuple[float, float, int]
    """What is least in the best plan: the aim and the other one in seconds, then messages."""


def plan_groups(
    residual: ResidualNetwork,
    ordered: Sequence[TransferRequest],
    now_s: float,
    places: AggregationPlaces,
    *,
    goal: PlanGoal = PlanGoal(),
    num_direct: int | None = None,
) -> BatchPlan:
    """Return the best plan of an ordered batch by its aim; `residual` itself does not change.

    `num_direct` forces the length of the first group; by default, the best is searched.

    Cost: one plan for each length k of the first group until the direct transfers alone cost more
    than the best plan, at most n + 1. Each is O(groups x aggregators x members) plans of legs.
    """
    if not ordered:
        nothing = residual.fork()
        return BatchPlan(direct=(), groups=(), commits_s={}, residual=nothing, cost=(0.0, 0.0, 0))
    setting = _setting(residual, ordered, now_s, places, goal)
    prefix = BatchDraft(residual.fork(), setting, goal.earliest_commit_s)
    found = _Search(prefix, setting).best(num_direct)
    if found is None:
        raise InvalidTransferError(
            f"num_direct is {num_direct}; the batch has {len(ordered)} updates"
        )
    reserved = residual.fork()
    messages = found.messages(reserved)
    return BatchPlan(
        direct=messages.direct,
        groups=messages.groups,
        commits_s=messages.commits_s,
        residual=reserved,
        cost=_cost(setting, found),
    )


class _Search:
    """Tries lengths of the first group; the direct transfers are planned once for all of them."""

    def __init__(self, prefix: BatchDraft, setting: DraftSetting) -> None:
        self._prefix = prefix
        self._setting = setting
        self._forks = [prefix.fork()]
        """By length of the first group."""
        self._tried: set[int] = set()
        self._best: tuple[tuple[float, float, int], int, BatchDraft] | None = None
        """Its cost, the length of its first group, and the plan itself."""

    def best(self, num_direct: int | None) -> BatchDraft | None:
        """Return the best plan; None if the forced length is none of the batch."""
        num_updates = len(self._setting.ordered)
        if num_direct is not None:
            if 0 <= num_direct <= num_updates:
                self._take(num_direct, self._fork(num_direct))
        else:
            for count in self._likely_lengths():
                self._try(count)
            for count in range(num_updates + 1):
                # The direct transfers' part of the cost only grows with the count.
                if not self._try(count):
                    break
        return self._best[2] if self._best else None

    def _likely_lengths(self) -> list[int]:
        """Return lengths to try first: a good plan rules out others before they are complete.

        One is the best for equal updates on equal links, where each host gathers one more than the
        one before it. With unequal ones, a quarter or a third is often good.
        """
        ordered, num_hosts = self._setting.ordered, len(self._setting.hosts)
        if len({request.bits for request in ordered}) > 1:
            return [len(ordered) // 4, len(ordered) // 3]
        return [max(0, (len(ordered) - num_hosts * (num_hosts - 1) // 2) // (num_hosts + 1))]

    def _try(self, count: int) -> bool:
        """Complete the plan for a length; return False if it alone costs more than the best."""
        if count in self._tried:
            return True
        self._tried.add(count)
        draft = self._fork(count)
        if self._best and draft.least_cost_s() > self._best[0][0]:
            return False
        # Without a group that begins here, the plan is that of the next length.
        if count == len(self._setting.ordered) or draft.send_group():
            self._take(count, draft)
        return True

    def _fork(self, count: int) -> BatchDraft:
        while len(self._forks) <= count:
            self._prefix.send_directly()
            self._forks.append(self._prefix.fork())
        return self._forks[count]

    def _take(self, count: int, draft: BatchDraft) -> None:
        """Complete a plan, and keep it if it is the best so far."""
        if draft.complete(self._best[0][0] if self._best else math.inf):
            cost = _cost(self._setting, draft)
            if self._best is None or (cost, count) < self._best[:2]:
                self._best = cost, count, draft


def usable_places(
    network: TransferNetwork, ordered: Sequence[TransferRequest], places: AggregationPlaces
) -> AggregationPlaces:
    """Return the idle hosts and the switches that routes join to the workers and the server."""
    workers = {request.worker for request in ordered}
    server = ordered[0].server
    hosts = {
        host
        for host in places.hosts
        if host not in workers
        and host != server
        and network.has_routes(workers, host)
        and network.has_routes([host], server)
    }
    switches = {
        switch: frozenset(host for host in below & workers if network.has_routes([host], switch))
        for switch, below in places.switches.items()
        if network.has_routes([switch], server)
    }
    return replace(places, hosts=tuple(sorted(hosts)), switches=switches)


def _setting(
    residual: ResidualNetwork,
    ordered: Sequence[TransferRequest],
    now_s: float,
    places: AggregationPlaces,
    goal: PlanGoal,
) -> DraftSetting:
    network = residual.network
    usable = usable_places(network, ordered, places)
    workers = sorted({request.worker for request in ordered})
    leaves = list(usable.switches)
    alike = AlikeHosts(network, workers, ordered[0].server, usable.hosts, leaves)
    shared = shared_links(network, ordered, alike, leaves)

    def path(sender: str) -> PathLimits:
        return path_limits(residual, network.route(sender, ordered[0].server), now_s, shared)

    return DraftSetting(
        ordered=ordered,
        now_s=now_s,
        hosts=usable.hosts,
        paths=[path(request.worker) for request in ordered],
        sum_paths={host: path(host) for host in usable.hosts},
        mixed_hosts=_mixed_hosts(alike, shared),
        summable=_summable(ordered, usable.most_members),
        gatherings=Gatherings(residual, ordered, now_s, alike, shared),
        switches=SwitchAdding(ordered, now_s, usable.switches, goal.join_ratio),
        shared=shared,
        is_makespan=goal.aim is PlanAim.LAST_COMMIT,
    )


def _mixed_hosts(alike: AlikeHosts, shared: frozenset[str]) -> frozenset[str]:
    """Return the hosts whose legs use links of other messages, or of their own sums."""
    return frozenset(
        host
        for host, (to_server, *legs) in alike.routes.items()
        if not shared.union(to_server).isdisjoint([link for leg in legs for link in leg])
    )


def _summable(ordered: Sequence[TransferRequest], most_members: int) -> list[int]:
    """Return by update how many from it on may be added up."""
    counts = [0] * (len(ordered) + 1)
    for place in reversed(range(len(ordered))):
        key = ordered[place].sum_key
        is_same = place + 1 < len(ordered) and ordered[place + 1].sum_key == key
        counts[place] = (counts[place + 1] if is_same else 0) + 1 if key else 0
    return [min(count, most_members) for count in counts[:-1]]


def _cost(setting: DraftSetting, draft: BatchDraft) -> tuple[float, float, int]:
    """Return a plan's cost in whole nanoseconds, so that rounding does not break ties."""
    total_s, last_s = round(draft.total_s, 9), round(draft.last_commit_s, 9)
    first, second = (last_s, total_s) if setting.is_makespan else (total_s, last_s)
    return first, second, draft.num_messages
