# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Groups at switches: which consecutive updates of a batch a leaf should add in passing (ours)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, final

from ..network import ResidualNetwork
from ..transfers import TransferRequest
from .group_draft import DraftLeg, GroupDraft

_EPSILON_S: Final = 1e-9


@final
class SwitchAdding:
    """Plans groups at the leaves of a batch.

    All members of one send at one rate, over their links and the server's at once.
    """

    def __init__(
        self,
        ordered: Sequence[TransferRequest],
        now_s: float,
        switches: Mapping[str, frozenset[str]],
        join_ratio: float = 1.0,
    ) -> None:
        """`switches`: by leaf, the hosts below it. `join_ratio`: see SchedulerOptions."""
        self._ordered = ordered
        self._now_s = now_s
        self._join_ratio = join_ratio
        self._switches = dict(sorted(switches.items()))

    def __bool__(self) -> bool:
        """Return whether there is any switch."""
        return bool(self._switches)

    def groups(self, first: int, most: int, residual: ResidualNetwork) -> list[GroupDraft]:
        """Return the best group of each switch from an update on, of at most `most` members."""
        rest = self._ordered[first : first + most]
        found = [self._best_at(switch, first, rest, residual) for switch in self._switches]
        return [group for group in found if group is not None]

    def best_at(self, switch: str, residual: ResidualNetwork) -> GroupDraft | None:
        """Return the group of one switch that begins with the first of all updates, if any."""
        return self._best_at(switch, 0, self._ordered, residual)

    def _best_at(
        self,
        switch: str,
        first: int,
        rest: Sequence[TransferRequest],
        residual: ResidualNetwork,
    ) -> GroupDraft | None:
        """Return the group of dense updates whose packets a leaf adds, if any.

        Each further member must be worth it: the sum of commit times is at most `join_ratio` times
        what it is if it follows the group by itself.
        """
        below = self._switches[switch]
        best: GroupDraft | None = None
        for count in range(1, len(rest) + 1):
            member = rest[count - 1]
            if member.worker not in below or member.is_sparse:  # slots are by place in the tensor
                break
            group = self._group_of(switch, first, rest[:count], residual)
            if group is None:
                break
            if best:
                alone_s = max(self._alone_s(member, best, residual), best.end_s)
                apart_s = (count - 1) * best.end_s + alone_s - count * self._now_s
                together_s = count * (group.end_s - self._now_s)
                if together_s >= self._join_ratio * apart_s + _EPSILON_S:
                    break
            best = group
        return best if best and len(best.legs) > 1 else None

    def _alone_s(
        self, member: TransferRequest, group: GroupDraft, residual: ResidualNetwork
    ) -> float:
        """Return when an update would be at the server by itself, beside a group."""
        trial = residual.fork()
        trial.reserve(group.links, group.spans)
        links = trial.network.route(member.worker, member.server)
        spans = trial.plan(links, member.bits, self._now_s)
        return spans[-1].end_s if spans else self._now_s

    def _group_of(
        self,
        switch: str,
        first: int,
        requests: Sequence[TransferRequest],
        residual: ResidualNetwork,
    ) -> GroupDraft | None:
        """Return the group of just these, None if two of them would share a link."""
        network = residual.network
        links = [link for each in requests for link in network.route(each.worker, switch)]
        links += network.route(switch, requests[0].server)
        if len(set(links)) < len(links):
            return None
        sum_bits = max([request.bits for request in requests])
        spans = residual.plan(links, sum_bits, self._now_s)
        end_s = spans[-1].end_s if spans else self._now_s
        return GroupDraft(
            aggregator=switch,
            is_switch=True,
            first=first,
            legs=[DraftLeg((), end_s)] * len(requests),
            gathered_s=spans[0].start_s if spans else self._now_s,
            links=tuple(links),
            spans=spans,
            end_s=end_s,
        )
