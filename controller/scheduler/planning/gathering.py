# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""When idle hosts would have gathered consecutive updates of a batch; shared by all plans of it.

Plans of a batch differ in what goes to the server first. The links between later members and an
idle host are free in all of them, so what one plan found for these holds in the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ..alike_hosts import AlikeHosts
from ..network import Links, ResidualNetwork
from ..residual_rate import RateSpan
from ..transfers import TransferRequest

_EPSILON_S: Final = 1e-9


class GatherLeg(NamedTuple):
    """When one member's bytes move to the host."""

    links: Links
    spans: tuple[RateSpan, ...]
    end_s: float


class _Chain:
    """Legs of consecutive updates to one host, as many as somebody has asked for."""

    def __init__(self, residual: ResidualNetwork, own_links: Links) -> None:
        self._trial = residual.fork()
        self._own_links = own_links
        self._states: dict[str, object] = {}
        """Of the links that others use, too, before the first leg."""
        self.legs: list[GatherLeg] = []

    def holds_in(self, residual: ResidualNetwork) -> bool:
        """Return whether the links in use have the reservations that they had at first."""
        return all(residual.state(link) is state for link, state in self._states.items())

    def plan(self, request: TransferRequest, host: str, now_s: float) -> None:
        """Add the next leg. The one before it is in use, so it is reserved now."""
        trial = self._trial
        if self.legs:
            trial.reserve(self.legs[-1].links, self.legs[-1].spans)
        links = trial.network.route(request.worker, host)
        reserved = {link for leg in self.legs for link in leg.links}
        for link in links:
            if link not in reserved and link not in self._own_links:
                self._states[link] = trial.state(link)
        spans = trial.plan(links, request.bits, now_s)
        self.legs.append(GatherLeg(links, spans, spans[-1].end_s if spans else now_s))


class Gatherings:
    """Looks up who could be gathered at a host, from each update of a batch on.

    Cost: O(legs) plans for all plans of a batch together, as long as no other transfer uses the
    links, and O(members) for each look-up.
    """

    def __init__(
        self,
        ordered: Sequence[TransferRequest],
        now_s: float,
        alike: AlikeHosts,
        most_members: int,
    ) -> None:
        self._ordered = ordered
        self._now_s = now_s
        self._alike = alike
        self._most_members = most_members
        self._chains: dict[object, tuple[str, _Chain]] = {}
        """By first update and kind of host: the host that the chain is for, and the chain."""

    def legs(
        self, first: int, host: str, residual: ResidualNetwork, until_s: float
    ) -> list[GatherLeg]:
        """Return the legs of all members that would be there in time, from update `first` on."""
        key = first, self._alike.kind(host, residual)
        model, chain = self._chains.get(key) or (host, None)
        count = self._count(chain, first, model, until_s) if chain else 0
        if chain is None or not chain.holds_in(residual):
            model, chain = host, _Chain(residual, self._alike.own_links(host))
            self._chains[key] = model, chain
            count = self._count(chain, first, model, until_s)
        if model == host:
            return chain.legs[:count]
        network = residual.network
        return [
            leg._replace(links=network.route(request.worker, host))
            for request, leg in zip(self._ordered[first:], chain.legs[:count], strict=False)
        ]

    def _count(self, chain: _Chain, first: int, host: str, until_s: float) -> int:
        """Return how many legs of a chain end in time; plan those that are not there yet."""
        for count, request in enumerate(self._ordered[first : first + self._most_members]):
            if count == len(chain.legs):
                chain.plan(request, host, self._now_s)
            if chain.legs[count].end_s > until_s + _EPSILON_S:
                return count
        return min(len(self._ordered) - first, self._most_members)
