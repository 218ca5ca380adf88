# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Orders of a batch in which updates below one leaf follow each other, so that it can add them.

Groups are consecutive. Shortest transfer first mixes the workers of all leaves, and then a leaf
has little to add, although all of its workers' updates cost the server's link only one. Ours.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import Final, NamedTuple, final

from ..network import ResidualNetwork
from ..transfers import TransferRequest
from .switch_adding import SwitchAdding

_DIGITS: Final = 9
_Kin = tuple[str, int, int]
"""Leaf, key of sums, and clock: what updates of one group have in common."""


class _Unit(NamedTuple):
    """Updates that are to follow each other: a group's, or one alone."""

    members: Sequence[TransferRequest]
    end_s: float
    """When they would be at the server if nothing else were under way."""


@final
class LeafOrders:
    """Finds who would be in groups at leaves, as for a batch of them alone.

    Cost: O(updates) plans, and for each group O(members^2) plans of links; with a bound O(updates)
    more for each group.
    """

    def __init__(
        self,
        residual: ResidualNetwork,
        now_s: float,
        switches: Mapping[str, frozenset[str]],
        *,
        most_members: int,
        last_positions: Mapping[int, int] | None = None,
        join_ratio: float = 1.0,
    ) -> None:
        """`switches`: by leaf, the hosts below it.

        `last_positions`: by transfer id, the last place in the batch (from 1) that each may have; a
        group that would push another update beyond its own is left out. `join_ratio`: see
        SchedulerOptions.
        """
        self._residual = residual
        self._now_s = now_s
        self._switches = switches
        self._leaf_of = {host: leaf for leaf, below in switches.items() for host in below}
        self._most_members = most_members
        self._last_positions = last_positions
        self._join_ratio = join_ratio

    def of(self, ordered: Sequence[TransferRequest]) -> list[list[TransferRequest]]:
        """Return other orders of a batch that may be better; none if there are no groups.

        In the first one, the members of each group are behind the first of them. In the second,
        what brings many updates in a short time is first: a large group at a low rate leaves room
        for others beside it. That is left out if it would break the bound.
        """
        units = self._units(ordered)
        if all(len(unit.members) == 1 for unit in units):
            return []
        by_weight = sorted(units, key=self._weight)
        orders = [list(chain.from_iterable(unit.members for unit in units))]
        heavy_first = list(chain.from_iterable(unit.members for unit in by_weight))
        if heavy_first != orders[0] and self._fit(enumerate(heavy_first, 1)):
            orders.append(heavy_first)
        return orders

    def _weight(self, unit: _Unit) -> tuple[int, float]:
        """Slower clocks stay first; of one clock, the least time for each update."""
        seconds = (unit.end_s - self._now_s) / len(unit.members)
        return unit.members[0].clock, round(seconds, _DIGITS)

    def _units(self, ordered: Sequence[TransferRequest]) -> list[_Unit]:
        kin: defaultdict[_Kin, deque[TransferRequest]] = defaultdict(deque)
        for request in ordered:
            if self._may_join(request):
                kin[self._kin_of(request)].append(request)
        left = {request.transfer_id: request for request in ordered}
        units: list[_Unit] = []
        for request in ordered:
            if request.transfer_id not in left:
                continue
            unit = None
            if self._may_join(request):
                mates = kin[self._kin_of(request)]
                unit = self._group(mates, left, len(ordered) - len(left))
                for _ in unit.members if unit else [request]:
                    mates.popleft()
            units.append(unit or self._alone(request))
            for member in units[-1].members:
                del left[member.transfer_id]
        return units

    def _group(
        self,
        mates: Iterable[TransferRequest],
        left: Mapping[int, TransferRequest],
        num_before: int,
    ) -> _Unit | None:
        """Return the first group of updates at one leaf, None if there is none."""
        first = tuple(islice(mates, self._most_members))
        adding = SwitchAdding(first, self._now_s, self._switches, self._join_ratio)
        group = adding.best_at(self._leaf_of[first[0].worker], self._residual)
        if group is None:
            return None
        members = first[: len(group.legs)]
        own = {member.transfer_id for member in members}
        overtaken = [request for number, request in left.items() if number not in own]
        if not self._fit(enumerate(overtaken, num_before + len(members) + 1)):
            return None
        return _Unit(members, group.end_s)

    def _alone(self, request: TransferRequest) -> _Unit:
        links = self._residual.network.route(request.worker, request.server)
        spans = self._residual.plan(links, request.bits, self._now_s)
        return _Unit((request,), spans[-1].end_s if spans else self._now_s)

    def _fit(self, positions: Iterable[tuple[int, TransferRequest]]) -> bool:
        """Return whether nobody comes too late at these places."""
        last = self._last_positions
        return last is None or all(last[each.transfer_id] >= place for place, each in positions)

    def _may_join(self, request: TransferRequest) -> bool:
        is_summable = request.sum_key != 0 and not request.is_sparse
        return request.worker in self._leaf_of and is_summable

    def _kin_of(self, request: TransferRequest) -> _Kin:
        return self._leaf_of[request.worker], request.sum_key, request.clock
