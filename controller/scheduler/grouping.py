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
from itertools import takewhile
from typing import Final, NamedTuple

from .alike_hosts import AlikeHosts
from .checks import check_whole
from .errors import InvalidTransferError
from .network import ResidualNetwork, TransferNetwork
from .planning.gathering import Gatherings
from .transfers import PlannedTransfer, TransferGroup, TransferRequest

_EPSILON_S: Final = 1e-9
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


@dataclass(frozen=True, kw_only=True)
class BatchPlan:
    """A batch with its groups, and the network with its reservations."""

    direct: tuple[PlannedTransfer, ...]
    groups: tuple[TransferGroup, ...]
    commits_s: Mapping[int, float]
    """By transfer id, when the server can apply it."""
    residual: ResidualNetwork

    def cost(self, aim: PlanAim) -> tuple[float, float, int]:
        """Return what is least in the best plan: the aim, the other one, messages. In this order.

        Times count in whole nanoseconds, so that rounding does not break ties.
        """
        total_s = round(sum(self.commits_s.values()), 9)
        last_s = round(max(self.commits_s.values(), default=0.0), 9)
        messages = len(self.direct) + len(self.groups)
        if aim is PlanAim.LAST_COMMIT:
            return last_s, total_s, messages
        return total_s, last_s, messages


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
        return BatchPlan(direct=(), groups=(), commits_s={}, residual=residual.fork())
    usable = _usable_places(residual.network, ordered, places)
    workers = sorted({request.worker for request in ordered})
    alike = AlikeHosts(residual.network, workers, ordered[0].server, usable.hosts)
    gatherings = Gatherings(ordered, now_s, alike, usable.most_members)
    setting = _Setting(ordered, now_s, usable, alike, gatherings, goal.aim)
    prefix = _Batch(residual.fork(), setting, goal.earliest_commit_s)
    forks: list[_Batch] = []
    """By length of the first group."""
    best: tuple[tuple[float, float, int], int, BatchPlan] | None = None
    for count in _lengths(len(ordered), len(usable.hosts), num_direct):
        while len(forks) <= count:
            if forks:
                prefix.send_directly()
            forks.append(prefix.fork())
        batch = forks[count]
        # The direct transfers' part of the cost only grows with the count.
        if best and batch.least_cost_s() > best[0][0]:
            break
        if batch.complete(best[0][0] if best else math.inf):
            plan = batch.plan()
            cost = plan.cost(goal.aim)
            if best is None or (cost, count) < best[:2]:
                best = cost, count, plan
    if best is None:
        raise InvalidTransferError(
            f"num_direct is {num_direct}; the batch has {len(ordered)} updates"
        )
    return best[2]


def _lengths(num_updates: int, num_hosts: int, num_direct: int | None) -> list[int]:
    """Return lengths of the first group to try: a likely one first, which rules out others.

    It is the best one for equal updates on equal links: each host gathers one more than the one
    before it.
    """
    if num_direct is not None:
        return [num_direct] if 0 <= num_direct <= num_updates else []
    likely = (num_updates - num_hosts * (num_hosts - 1) // 2) // (num_hosts + 1)
    likely = max(0, likely)
    return [likely, *range(likely), *range(likely + 1, num_updates + 1)]


def _usable_places(
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


class _Setting(NamedTuple):
    """What all plans of a batch have in common."""

    ordered: Sequence[TransferRequest]
    now_s: float
    places: AggregationPlaces
    alike: AlikeHosts
    gatherings: Gatherings
    aim: PlanAim


class _Batch:
    """A plan in the making."""

    def __init__(self, residual: ResidualNetwork, setting: _Setting, last_commit_s: float) -> None:
        self._residual = residual
        self._setting = setting
        self._free = list(setting.places.hosts)
        self._num_sent = 0
        """Updates that are planned, from the first on."""
        self._busy_s = setting.now_s
        """When the server's link has done all that is planned so far."""
        self._last_commit_s = max(setting.now_s, last_commit_s)
        self._total_s: float = 0
        """Sum of the commit times so far."""
        self._direct: list[PlannedTransfer] = []
        self._groups: list[TransferGroup] = []
        self._commits_s: dict[int, float] = {}

    def fork(self) -> _Batch:
        """Return a copy that can go on by itself."""
        copy = _Batch(self._residual.fork(), self._setting, self._last_commit_s)
        copy._free = list(self._free)
        copy._num_sent = self._num_sent
        copy._busy_s = self._busy_s
        copy._total_s = self._total_s
        copy._direct = list(self._direct)
        copy._groups = list(self._groups)
        copy._commits_s = dict(self._commits_s)
        return copy

    def plan(self) -> BatchPlan:
        return BatchPlan(
            direct=tuple(self._direct),
            groups=tuple(self._groups),
            commits_s=self._commits_s,
            residual=self._residual,
        )

    def least_cost_s(self) -> float:
        """Return the least that the plan can cost: no later commit is before the last one."""
        if self._setting.aim is PlanAim.LAST_COMMIT:
            return round(self._last_commit_s, 9)
        num_left = len(self._setting.ordered) - self._num_sent
        return round(self._total_s + num_left * self._last_commit_s, 9)

    def _least_direct_cost_s(self) -> float:
        """Return the least that the plan can cost if no group follows.

        When an update is committed, all bits up to its own have passed the server's last link.
        """
        setting = self._setting
        rest = setting.ordered[self._num_sent :]
        routes = (self._residual.network.route(each.worker, each.server) for each in rest)
        last_links = {route[-1] for route in routes if route}
        if len(last_links) != 1:
            return self.least_cost_s()
        rate = self._residual.rate(last_links.pop())
        total_s, bits, commit_s = self._total_s, 0, self._last_commit_s
        for request in rest:
            if request.worker != request.server:
                bits += request.bits
            commit_s = max(self._last_commit_s, rate.earliest_end_s(setting.now_s, bits))
            total_s += commit_s
        cost_s = commit_s if setting.aim is PlanAim.LAST_COMMIT else total_s
        return round(cost_s, 9) - _EPSILON_S

    def complete(self, most_s: float) -> bool:
        """Plan what follows the first group; return False if its cost would exceed `most_s`."""
        has_groups = True
        while self._num_sent < len(self._setting.ordered):
            if self.least_cost_s() > most_s:
                return False
            if has_groups and not self._free and not self._setting.places.switches:
                has_groups = False
                if self._least_direct_cost_s() > most_s:
                    return False
            group = self._best_group()
            if group is None:
                self.send_directly()
            else:
                self._send_group(group)
        return True

    def send_directly(self) -> None:
        """Plan the next update as a message of its own."""
        request = self._setting.ordered[self._num_sent]
        planned = _leg(self._residual, request, request.server, self._setting.now_s)
        self._residual.reserve(planned.links, planned.spans)
        self._direct.append(planned)
        self._commit([planned], planned.end_s)

    def _send_group(self, group: TransferGroup) -> None:
        for member in group.members:
            self._residual.reserve(member.links, member.spans)
        self._residual.reserve(group.links, group.spans)
        self._groups.append(group)
        if not group.is_switch:
            self._free.remove(group.aggregator)
        self._commit(group.members, group.end_s)

    def _commit(self, members: Sequence[PlannedTransfer], end_s: float) -> None:
        self._busy_s = max(self._busy_s, end_s)
        self._last_commit_s = max(self._last_commit_s, end_s)
        self._num_sent += len(members)
        for member in members:
            self._commits_s[member.request.transfer_id] = self._last_commit_s
            self._total_s += self._last_commit_s

    def _best_group(self) -> TransferGroup | None:
        """Return the group with most members, of these the one whose sum arrives first."""
        places, alike = self._setting.places, self._setting.alike
        if not self._free and not places.switches:
            return None
        rest = self._summable() if places.switches else ()
        found = [self._at_switch(name, rest) for name in sorted(places.switches)]
        found += [self._at_host(host) for host in alike.one_of_each(self._free, self._residual)]
        groups = [group for group in found if group is not None]
        return min(
            groups,
            key=lambda group: (-len(group.members), round(group.end_s, 9), group.aggregator),
            default=None,
        )

    def _summable(self) -> Sequence[TransferRequest]:
        """Return the next updates, as many as may be added to the first of them."""
        most = self._num_sent + self._setting.places.most_members
        rest = self._setting.ordered[self._num_sent : most]
        key = rest[0].sum_key
        alike = takewhile(lambda request: request.sum_key == key, rest)
        return list(alike) if key else []

    def _at_host(self, host: str) -> TransferGroup | None:
        """Return the group that a host gathers while the server's link is busy, if any."""
        first, residual = self._num_sent, self._residual
        legs = self._setting.gatherings.legs(first, host, residual, self._busy_s)
        legs = legs[: len(self._summable())]
        if len(legs) < 2:
            return None
        requests = self._setting.ordered[first : first + len(legs)]
        gathered_s = max([leg.end_s for leg in legs])
        route = residual.network.route(host, requests[0].server)
        used = {link for leg in legs for link in leg.links}
        if not used.isdisjoint(route):
            residual = residual.fork()
            for leg in legs:
                residual.reserve(leg.links, leg.spans)
        spans = residual.plan(route, _sum_bits(requests), gathered_s)
        return TransferGroup(
            group_id=len(self._groups),
            aggregator=host,
            is_switch=False,
            members=tuple(
                PlannedTransfer(request=request, links=leg.links, spans=leg.spans, end_s=leg.end_s)
                for request, leg in zip(requests, legs, strict=True)
            ),
            gathered_s=gathered_s,
            links=route,
            spans=spans,
            end_s=spans[-1].end_s if spans else gathered_s,
        )

    def _at_switch(self, switch: str, rest: Sequence[TransferRequest]) -> TransferGroup | None:
        """Return the group whose packets a leaf adds in passing, if any.

        All members move at one rate, so each further one must be worth it: the sum of commit times
        is less than if it followed the group by itself.
        """
        below = self._setting.places.switches[switch]
        best: TransferGroup | None = None
        for count in range(1, len(rest) + 1):
            member = rest[count - 1]
            if member.worker not in below:
                break
            group = self._switch_group(switch, rest[:count])
            if group is None:
                break
            if best:
                trial = self._residual.fork()
                trial.reserve(best.links, best.spans)
                alone_s = max(
                    _leg(trial, member, member.server, self._setting.now_s).end_s, best.end_s
                )
                apart_s = (count - 1) * best.end_s + alone_s
                if count * group.end_s >= apart_s + _EPSILON_S:
                    break
            best = group
        return best if best and len(best.members) > 1 else None

    def _switch_group(
        self, switch: str, requests: Sequence[TransferRequest]
    ) -> TransferGroup | None:
        """Return the group of just these, None if two of them would share a link."""
        network = self._residual.network
        routes = [network.route(request.worker, switch) for request in requests]
        links = [link for route in routes for link in route]
        links += network.route(switch, requests[0].server)
        if len(set(links)) < len(links):
            return None
        spans = self._residual.plan(links, _sum_bits(requests), self._setting.now_s)
        end_s = spans[-1].end_s if spans else self._setting.now_s
        return TransferGroup(
            group_id=len(self._groups),
            aggregator=switch,
            is_switch=True,
            members=tuple(
                PlannedTransfer(request=request, links=route, spans=(), end_s=end_s)
                for request, route in zip(requests, routes, strict=True)
            ),
            gathered_s=spans[0].start_s if spans else self._setting.now_s,
            links=tuple(links),
            spans=spans,
            end_s=end_s,
        )


def _sum_bits(members: Sequence[TransferRequest]) -> int:
    """Return the size of the message with the sum: that of the largest member (ours)."""
    return max([member.bits for member in members])


def _leg(
    residual: ResidualNetwork, request: TransferRequest, receiver: str, start_s: float
) -> PlannedTransfer:
    """Return when a request's bytes would be at a station."""
    links = residual.network.route(request.worker, receiver)
    spans = residual.plan(links, request.bits, start_s)
    end_s = spans[-1].end_s if spans else start_s
    return PlannedTransfer(request=request, links=links, spans=spans, end_s=end_s)
