# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One of the plans between which a search for the best groups chooses.

MLfabric gathers each group while the messages before it travel, so that gathering costs no time.
Which host gathers, and which updates a switch adds, is ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ..network import Links, ResidualNetwork
from ..transfers import PlannedTransfer, TransferGroup, TransferRequest
from .gathering import Gatherings
from .group_draft import GroupDraft
from .path_limits import PathLimits
from .switch_adding import SwitchAdding

_EPSILON_S: Final = 1e-9


class DraftSetting(NamedTuple):
    """What all plans of a batch have in common."""

    ordered: Sequence[TransferRequest]
    now_s: float
    hosts: Sequence[str]
    """Idle ones; each gathers at most one group."""
    paths: Sequence[PathLimits]
    """By update: to the server."""
    sum_paths: Mapping[str, PathLimits]
    """By idle host: to the server."""
    mixed_hosts: frozenset[str]
    """Hosts whose legs share links with each other's messages, or with their own sums."""
    summable: Sequence[int]
    """By update: how many from it on may be added up, 0 if it travels alone."""
    gatherings: Gatherings
    switches: SwitchAdding
    shared: frozenset[str]
    """Links that several messages may use: a draft reserves nothing on others."""
    is_makespan: bool
    """The last commit counts, not the sum of all."""


class PlannedMessages(NamedTuple):
    """The messages of a whole plan, and when their updates are committed."""

    direct: tuple[PlannedTransfer, ...]
    groups: tuple[TransferGroup, ...]
    commits_s: Mapping[int, float]
    """By transfer id."""


class BatchDraft:
    """A plan in the making."""

    def __init__(
        self, residual: ResidualNetwork, setting: DraftSetting, last_commit_s: float
    ) -> None:
        """`last_commit_s`: of the last update before the batch. Reserves in `residual`."""
        self.total_s: float = 0
        """Sum of the commit times so far."""
        self.last_commit_s = max(setting.now_s, last_commit_s)
        self.num_sent = 0
        """Updates that are planned, from the first on."""
        self._residual = residual
        self._setting = setting
        self._free = list(setting.hosts)
        self._busy_s = setting.now_s
        """When the server's link has done all that is planned so far."""
        self._messages: list[PlannedTransfer | GroupDraft] = []
        self._commits_s: list[float] = []

    @property
    def num_messages(self) -> int:
        """Messages to the server so far."""
        return len(self._messages)

    def fork(self) -> BatchDraft:
        """Return a copy that can go on by itself."""
        copy = BatchDraft(self._residual.fork(), self._setting, self.last_commit_s)
        copy.total_s, copy.num_sent = self.total_s, self.num_sent
        copy._free = list(self._free)
        copy._busy_s = self._busy_s
        copy._messages = list(self._messages)
        copy._commits_s = list(self._commits_s)
        return copy

    def messages(self, residual: ResidualNetwork) -> PlannedMessages:
        """Return what is planned, reserved in `residual` with all its links."""
        direct: list[PlannedTransfer] = []
        groups: list[TransferGroup] = []
        for message in self._messages:
            if isinstance(message, PlannedTransfer):
                residual.reserve(message.links, message.spans)
                direct.append(message)
                continue
            group = message.group(len(groups), self._setting.ordered, residual.network)
            for member in group.members:
                residual.reserve(member.links, member.spans)
            residual.reserve(group.links, group.spans)
            groups.append(group)
        sent = self._setting.ordered[: self.num_sent]
        commits_s = {
            request.transfer_id: commit_s
            for request, commit_s in zip(sent, self._commits_s, strict=True)
        }
        return PlannedMessages(tuple(direct), tuple(groups), commits_s)

    def least_cost_s(self) -> float:
        """Return the least that the plan can cost: no later commit is before the last one."""
        if self._setting.is_makespan:
            return round(self.last_commit_s, 9)
        num_left = len(self._setting.ordered) - self.num_sent
        return round(self.total_s + num_left * self.last_commit_s, 9)

    def complete(self, most_s: float) -> bool:
        """Plan all that is left; return False if the cost would exceed `most_s`."""
        has_groups = True
        while self.num_sent < len(self._setting.ordered):
            if self.least_cost_s() > most_s:
                return False
            if has_groups and not self._free and not self._setting.switches:
                has_groups = False
                if self._least_direct_cost_s() > most_s:
                    return False
            if not self.send_group():
                self.send_directly()
        return True

    def send_directly(self) -> None:
        """Plan the next update as a message of its own."""
        setting, residual = self._setting, self._residual
        request = setting.ordered[self.num_sent]
        path = setting.paths[self.num_sent]
        spans = path.spans(residual.rate, request.bits, setting.now_s)
        end_s = spans[-1].end_s if spans else setting.now_s
        residual.reserve(path.taken, spans)
        planned = PlannedTransfer(request=request, links=path.links, spans=spans, end_s=end_s)
        self._commit(planned, 1, end_s)

    def send_group(self) -> bool:
        """Plan the best group that begins with the next update; return False if there is none."""
        group = self._best_group()
        if group is None:
            return False
        setting, residual = self._setting, self._residual
        if not group.is_switch:
            self._free.remove(group.aggregator)
            if group.aggregator in setting.mixed_hosts:
                routes = self._legs_links(group.aggregator, group.first, len(group.legs))
                for links, leg in zip(routes, group.legs, strict=True):
                    residual.reserve(self._shared(links), leg.spans)
            residual.reserve(setting.sum_paths[group.aggregator].taken, group.spans)
        else:
            residual.reserve(self._shared(group.links), group.spans)
        self._commit(group, len(group.legs), group.end_s)
        return True

    # The methods below are this class's own.

    def _shared(self, links: Links) -> list[str]:
        shared = self._setting.shared
        return [link for link in links if link in shared]

    def _commit(self, message: PlannedTransfer | GroupDraft, count: int, end_s: float) -> None:
        self._busy_s = max(self._busy_s, end_s)
        self.last_commit_s = last_s = max(self.last_commit_s, end_s)
        self.num_sent += count
        self._messages.append(message)
        self._commits_s += [last_s] * count
        total_s = self.total_s
        for _ in range(count):
            total_s += last_s
        self.total_s = total_s

    def _least_direct_cost_s(self) -> float:
        """Return the least that the plan can cost if no group follows.

        When an update is committed, all bits up to its own have passed the server's last link.
        """
        setting = self._setting
        last_links = {path.links[-1] for path in setting.paths[self.num_sent :] if path.links}
        if len(last_links) != 1:
            return self.least_cost_s()
        rate = self._residual.rate(last_links.pop())
        total_s, bits, commit_s = self.total_s, 0, self.last_commit_s
        end_s = setting.now_s
        for request in setting.ordered[self.num_sent :]:
            if request.worker != request.server:
                bits += request.bits
                if end_s < rate.times[-1]:
                    end_s = rate.earliest_end_s(setting.now_s, bits)
                else:
                    end_s += request.bits / rate.rates[-1]
                commit_s = max(commit_s, end_s)
            total_s += commit_s
        cost_s = commit_s if setting.is_makespan else total_s
        return round(cost_s, 9) - _EPSILON_S

    def _best_group(self) -> GroupDraft | None:
        """Return the group with most members, of these the one whose sum arrives first."""
        setting, first = self._setting, self.num_sent
        most = setting.summable[first]
        if most < 2 or not (self._free or setting.switches):
            return None
        found = setting.switches.groups(first, most, self._residual) if setting.switches else []
        for host in setting.gatherings.one_of_each(self._free):
            group = self._at_host(host, most)
            if group is not None:
                found.append(group)
        if len(found) < 2:
            return found[0] if found else None
        return min(
            found, key=lambda group: (-len(group.legs), round(group.end_s, 9), group.aggregator)
        )

    def _at_host(self, host: str, most: int) -> GroupDraft | None:
        """Return the group that a host gathers while the server's link is busy, if any."""
        setting, residual, first = self._setting, self._residual, self.num_sent
        found = setting.gatherings.gathered(first, most, host, residual, self._busy_s)
        if found is None or len(found.legs) < 2:
            return None
        path = setting.sum_paths[host]
        if host in setting.mixed_hosts:
            residual = residual.fork()
            routes = self._legs_links(host, first, len(found.legs))
            for links, leg in zip(routes, found.legs, strict=True):
                residual.reserve(links, leg.spans)
        spans = path.spans(residual.rate, found.sum_bits, found.gathered_s)
        return GroupDraft(
            aggregator=host,
            is_switch=False,
            first=first,
            legs=found.legs,
            gathered_s=found.gathered_s,
            links=path.links,
            spans=spans,
            end_s=spans[-1].end_s if spans else found.gathered_s,
        )

    def _legs_links(self, host: str, first: int, count: int) -> list[Links]:
        """Return the links of members' legs to a host."""
        members = self._setting.ordered[first : first + count]
        network = self._residual.network
        return [network.route(member.worker, host) for member in members]
