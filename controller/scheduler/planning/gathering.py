# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""When idle hosts would have gathered consecutive updates of a batch; shared by all plans of it.

Plans of a batch differ in what goes to the server first. The links between later members and an
idle host are free in all of them, so what one plan found for these holds in the others.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

from ..network import Links, ResidualNetwork, spans_over
from ..residual_rate import ResidualRate
from ..transfers import TransferRequest
from .alike_hosts import AlikeHosts
from .group_draft import DraftLeg

_EPSILON_S: Final = 1e-9


class Gathered(NamedTuple):
    """Consecutive updates that a host has by some time."""

    legs: Sequence[DraftLeg]
    gathered_s: float
    """When the last of them is there."""
    sum_bits: int
    """Size of the message with the sum: that of the largest member (ours)."""


class _Chain:
    """Legs of consecutive updates to one host, as many as somebody has asked for."""

    def __init__(self, residual: ResidualNetwork, host: str, own: frozenset[str]) -> None:
        """`own`: links that only legs to this host use."""
        self._trial = residual.fork()
        self._host = host
        self._own = own
        self._last_links: Links = ()
        self._rates: dict[str, ResidualRate] = {}
        """What the legs leave of links that more than one of them may use."""
        self._states: dict[str, object] = {}
        """Of the links that other messages use, too, before the first leg."""
        self.legs: list[DraftLeg] = []
        self.ends_s: list[float] = []
        """By number of legs: when all up to this one are there."""
        self.sum_bits: list[int] = []
        """Likewise: bits of the largest one."""

    def holds_in(self, residual: ResidualNetwork) -> bool:
        """Return whether the links in use have the reservations that they had at first."""
        return all(residual.state(link) is state for link, state in self._states.items())

    def plan(self, request: TransferRequest, shared: frozenset[str], now_s: float) -> None:
        """Add the next leg."""
        trial, known = self._trial, self._rates
        links = trial.network.route(request.worker, self._host)
        for link in links:
            if link in shared and link not in self._states:
                self._states[link] = trial.state(link)
        for link in self._last_links:  # as the leg before this one is in use
            if link in self._own or link in shared:
                known[link] = (known.get(link) or trial.rate(link)).less(self.legs[-1].spans)
        rates = [known.get(link) or trial.rate(link) for link in links]
        spans = spans_over(rates, request.bits, now_s) if links else ()
        self._last_links = links
        end_s = spans[-1].end_s if spans else now_s
        self.legs.append(DraftLeg(spans, end_s))
        self.ends_s.append(max([end_s, *self.ends_s[-1:]]))
        self.sum_bits.append(max([request.bits, *self.sum_bits[-1:]]))


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
        self._ordered = ordered
        self._now_s = now_s
        self._shared = shared
        self._own = {host: frozenset(alike.own_links(host)) for host in alike.hosts}
        known: dict[object, int] = {}
        kinds = {host: alike.kind(host, residual) for host in alike.hosts}
        self._kinds = {host: known.setdefault(kind, len(known)) for host, kind in kinds.items()}
        self._chains: dict[tuple[int, int], _Chain] = {}
        """By first update and kind of host."""

    def one_of_each(self, hosts: Sequence[str]) -> list[str]:
        """Return the first of all hosts that are alike."""
        kinds = self._kinds
        return list({kinds[host]: host for host in reversed(hosts)}.values())

    def gathered(
        self, first: int, most: int, host: str, residual: ResidualNetwork, until_s: float
    ) -> Gathered | None:
        """Return who of the `most` updates from `first` on would be there in time, if anybody."""
        key = first, self._kinds[host]
        chain = self._chains.get(key)
        count = self._count(chain, first, most, until_s) if chain else 0
        if chain is None or not chain.holds_in(residual):
            chain = self._chains[key] = _Chain(residual, host, self._own[host])
            count = self._count(chain, first, most, until_s)
        if not count:
            return None
        return Gathered(chain.legs[:count], chain.ends_s[count - 1], chain.sum_bits[count - 1])

    def _count(self, chain: _Chain, first: int, most: int, until_s: float) -> int:
        """Return how many legs of a chain end in time; plan those that are not there yet."""
        limit_s = until_s + _EPSILON_S
        most = min(most, len(self._ordered) - first)
        while len(chain.legs) < most and not (chain.ends_s and chain.ends_s[-1] > limit_s):
            chain.plan(self._ordered[first + len(chain.legs)], self._shared, self._now_s)
        return min(most, bisect_right(chain.ends_s, limit_s))
