# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""When idle hosts would have gathered consecutive updates of a batch; shared by all plans of it.

Plans of a batch differ in what goes to the server first. The links between later members and an
idle host are free in all of them, so what one plan found for these holds in the others.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ..network import Links, ResidualNetwork
from ..residual_rate import ResidualRate
from ..transfers import TransferRequest
from .alike_hosts import AlikeHosts
from .group_draft import DraftLeg
from .path_limits import PathLimits, path_limits
from .sum_size import SumSize

_EPSILON_S: Final = 1e-9


class Gathered(NamedTuple):
    """Consecutive updates that a host has by some time."""

    legs: Sequence[DraftLeg]
    gathered_s: float
    """When the last of them is there."""
    sum_bits: int
    """Size of the message with the sum: see SumSize."""


class _KindOfHost(NamedTuple):
    """One host, which stands for all that are alike."""

    name: str
    own: Mapping[str, ResidualRate]
    """What is free of the links that only legs to this host use."""
    taken: frozenset[str]
    """Links on which legs, or other messages, reserve."""
    most_bits_per_s: float
    """What the link carries that all legs to the host use."""


class _LegLimits(NamedTuple):
    """What limits one update on its path to hosts of a kind."""

    request: TransferRequest
    path: PathLimits
    least_end_s: float
    """No leg of this update ends before."""


class _Chain:
    """Legs of consecutive updates to one host, as many as somebody has asked for."""

    def __init__(self, host: _KindOfHost, now_s: float) -> None:
        self._most_bits_per_s = host.most_bits_per_s
        self._now_s = now_s
        self._last_taken: Links = ()
        self._rates = dict(host.own)
        """What the legs leave of the links that they reserve on."""
        self._states: dict[str, object] = {}
        """Of the links that other messages use, too, before the first leg."""
        self._bits = 0
        """Of all legs."""
        self.legs: list[DraftLeg] = []
        self.ends_s: list[float] = []
        """By number of legs: when all up to this one are there."""
        self.sum_bits: list[int] = []
        """Likewise: of the message with the sum."""
        self._sum_size = SumSize()

    def holds_in(self, residual: ResidualNetwork) -> bool:
        """Return whether the links in use have the reservations that they had at first."""
        return not self._states or all(
            residual.state(link) is state for link, state in self._states.items()
        )

    def is_late(self, leg: _LegLimits, limit_s: float) -> bool:
        """Return whether one of the legs surely ends after a time if the next one is added."""
        limit_s += _EPSILON_S
        least_s = self._now_s + (self._bits + leg.request.bits) / self._most_bits_per_s
        return least_s > limit_s or leg.least_end_s > limit_s

    def plan(self, leg: _LegLimits, residual: ResidualNetwork) -> None:
        """Add the next leg; the chain holds in `residual`."""
        rates, (request, path, _), now_s = self._rates, leg, self._now_s
        for link in self._last_taken:  # as the leg before this one is in use
            rates[link] = rates[link].less(self.legs[-1].spans)
        for link in path.taken:
            if link not in rates:
                self._states[link] = residual.state(link)
                rates[link] = residual.fork().rate(link)
        self._last_taken = path.taken
        spans = path.spans(rates.__getitem__, request.bits, now_s)
        end_s = spans[-1].end_s if spans else now_s
        self._bits += request.bits
        self.legs.append(DraftLeg(spans, end_s))
        self.ends_s.append(max(end_s, self.ends_s[-1]) if self.ends_s else end_s)
        self.sum_bits.append(self._sum_size.add(request))


class Gatherings:
    """Looks up who could be gathered at a host, from each update of a batch on.

    Reservations of the batch's plans are looked at on `shared` links alone; on all others, they are
    those that `residual` has at first. Cost: O(legs) plans for all plans of a batch together, as
    long as no other transfer uses the shared links, and O(log members) for each look-up.
    """

    def __init__(
        self,
        residual: ResidualNetwork,
        ordered: Sequence[TransferRequest],
        now_s: float,
        alike: AlikeHosts,
        shared: frozenset[str],
    ) -> None:
        self._residual = residual
        self._ordered = ordered
        self._now_s = now_s
        self._shared = shared
        self._kinds: list[_KindOfHost] = []
        self._kind_of: dict[str, int] = {}
        """By host."""
        known: dict[object, int] = {}
        for host in alike.hosts:
            kind = self._kind_of[host] = known.setdefault(alike.kind(host, residual), len(known))
            if kind == len(self._kinds):
                self._kinds.append(self._describe(host, alike))
        self._leg_limits: dict[tuple[int, int], _LegLimits] = {}
        """By update and kind of host."""
        self._chains: dict[tuple[int, int], _Chain] = {}
        """By first update and kind of host."""

    def one_of_each(self, hosts: Sequence[str]) -> list[str]:
        """Return the first of all hosts that are alike."""
        if len(self._kinds) == 1:
            return [*hosts[:1]]
        kinds = self._kind_of
        return list({kinds[host]: host for host in reversed(hosts)}.values())

    def gathered(
        self, first: int, most: int, host: str, residual: ResidualNetwork, until_s: float
    ) -> Gathered | None:
        """Return who of the `most` updates from `first` on would be there in time, if anybody."""
        kind = self._kind_of[host]
        chain = self._chains.get((first, kind))
        if chain is None or not chain.holds_in(residual):
            chain = self._chains[first, kind] = _Chain(self._kinds[kind], self._now_s)
        limit_s = until_s + _EPSILON_S
        most = min(most, len(self._ordered) - first)
        self._extend(chain, first, most, kind, residual, limit_s)
        count = min(most, bisect_right(chain.ends_s, limit_s))
        if not count:
            return None
        return Gathered(chain.legs[:count], chain.ends_s[count - 1], chain.sum_bits[count - 1])

    def _extend(  # noqa: PLR0917 - what a chain depends on
        self,
        chain: _Chain,
        first: int,
        most: int,
        kind: int,
        residual: ResidualNetwork,
        limit_s: float,
    ) -> None:
        """Plan the legs of a chain that end in time and are not there yet."""
        ends_s = chain.ends_s
        for place in range(first + len(ends_s), first + most):
            if ends_s and ends_s[-1] > limit_s:
                return
            leg = self._leg_limits.get((place, kind)) or self._look_up(place, kind)
            if chain.is_late(leg, limit_s):
                return
            chain.plan(leg, residual)

    def _describe(self, host: str, alike: AlikeHosts) -> _KindOfHost:
        residual = self._residual
        legs = alike.routes[host][1:]
        ends = {leg[-1] if leg else "" for leg in legs}
        end = ends.pop()
        links = [link for link in alike.own_links(host) if link not in self._shared]
        own = {link: residual.rate(link) for link in links}
        return _KindOfHost(
            name=host,
            own=own,
            taken=self._shared.union(own),
            most_bits_per_s=math.inf if ends or not end else max(residual.rate(end).rates),
        )

    def _look_up(self, place: int, kind: int) -> _LegLimits:
        request, host, now_s = self._ordered[place], self._kinds[kind], self._now_s
        links = self._residual.network.route(request.worker, host.name)
        path = path_limits(self._residual, links, now_s, host.taken)
        least_end_s = now_s + (request.bits / path.steady_bits_per_s if links else 0.0)
        found = self._leg_limits[place, kind] = _LegLimits(request, path, least_end_s)
        return found
