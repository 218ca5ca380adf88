# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The network of a job's transfers: links with capacities, routes, and what reservations leave."""

from __future__ import annotations

import functools
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Self

from .checks import check_whole
from .errors import NoRouteError, UnknownStationError
from .residual_rate import RateSpan, ResidualRate, append_span

Links = tuple[str, ...]
"""Names of directed links, in the order of a route."""
_NO_LINK: Final = ResidualRate.of(0)
"""A link that an earlier network had, without what was reserved on it."""
NO_LIMIT: Final = 1 << 62
"""More bits/s than any link carries."""


@dataclass(frozen=True, kw_only=True)
class TransferNetwork:
    """Directed links with capacities, and the routes between stations (hosts and switches)."""

    capacities_bits_per_s: Mapping[str, int]
    """By directed link, in whole bits/s."""
    hosts: frozenset[str]
    switches: frozenset[str] = frozenset()
    find_route: Callable[[str, str], Links | None]
    """Returns the links from one station to another, None if there is no route. Its answers are
    kept: a network whose routes change is another network."""
    _found: dict[tuple[str, str], Links | None] = field(
        default_factory=dict[tuple[str, str], Links | None], init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        for link, capacity in self.capacities_bits_per_s.items():
            check_whole(f"capacity_bits_per_s of link {link}", capacity, 1)

    @classmethod
    def star(
        cls, rates_bits_per_s: Mapping[str, int | tuple[int, int]], switch: str = "s1"
    ) -> Self:
        """Return hosts around one switch: by host, its rate, or its rates (up, down)."""
        capacities: dict[str, int] = {}
        for host, rate in rates_bits_per_s.items():
            up, down = rate if isinstance(rate, tuple) else (rate, rate)
            capacities |= {f"{host}>{switch}": up, f"{switch}>{host}": down}

        ups = {host: (f"{host}>{switch}",) for host in rates_bits_per_s}
        downs = {host: (f"{switch}>{host}",) for host in rates_bits_per_s}

        def find_route(sender: str, receiver: str) -> Links:
            return ups.get(sender, ()) + downs.get(receiver, ())

        return cls(
            capacities_bits_per_s=capacities,
            hosts=frozenset(rates_bits_per_s),
            switches=frozenset({switch}),
            find_route=find_route,
        )

    def check_host(self, host: str, role: str) -> None:
        """Raise UnknownStationError unless the network has this host."""
        if host not in self.hosts:
            known = ", ".join(sorted(self.hosts)[:8]) or "none"
            raise UnknownStationError(
                f"{role} {host!r} is no host of the network, which has {len(self.hosts)} "
                f"({known}{', ...' if len(self.hosts) > 8 else ''}): name one of these"
            )

    def route(self, sender: str, receiver: str) -> Links:
        """Return the links between two stations; none within one host. NoRouteError."""
        links = self._found.get((sender, receiver))
        if links is not None:
            return links
        links = () if sender == receiver else self._find(sender, receiver)
        if links is None:
            raise NoRouteError(
                f"no route from {sender} to {receiver}: check which links between them are up"
            )
        return links

    def has_routes(self, senders: Iterable[str], receiver: str) -> bool:
        """Return whether every sender has a route to a station."""
        found = self._found
        for sender in senders:
            pair = sender, receiver
            if found.get(pair) is None and sender != receiver and self._find(*pair) is None:
                return False
        return True

    def joins(self, sender: str, receiver: str) -> bool:
        """Return whether the network has both hosts and a route between them."""
        return {sender, receiver} <= self.hosts and self.has_routes([sender], receiver)

    @functools.cached_property
    def idle(self) -> Mapping[str, ResidualRate]:
        """What is free of each link without reservations."""
        capacities = self.capacities_bits_per_s
        return {link: ResidualRate.of(capacity) for link, capacity in capacities.items()}

    def _find(self, sender: str, receiver: str) -> Links | None:
        pair = sender, receiver
        if pair not in self._found:
            self._found[pair] = self.find_route(sender, receiver)
        return self._found[pair]


class ResidualNetwork:
    """Reservations on all links, and when further transfers could end beside them."""

    def __init__(self, network: TransferNetwork) -> None:
        self.network = network
        self._rates: dict[str, ResidualRate] = {}
        """Of links with reservations, without the new ones."""
        self._new: dict[str, tuple[RateSpan, ...]] = {}
        """Spans to subtract once somebody looks at the link: trials end with many that nobody
        has looked at."""

    def fork(self) -> ResidualNetwork:
        """Return a copy for trials. Cost: O(links with reservations)."""
        copy = ResidualNetwork(self.network)
        copy.adopt(self)
        return copy

    def adopt(self, trial: ResidualNetwork) -> None:
        """Take over the reservations of a fork."""
        self._rates = dict(trial._rates)
        self._new = dict(trial._new)

    def replace_network(self, network: TransferNetwork) -> None:
        """Go on with other capacities and routes; all reservations stay as they are."""
        old, new = self.network.capacities_bits_per_s, network.capacities_bits_per_s
        self._subtract_all()
        self._rates = {
            link: rate.shifted(new.get(link, 0) - old.get(link, 0))
            for link, rate in self._rates.items()
        }
        self.network = network

    def at_least_0(self) -> ResidualNetwork:
        """Return a copy in which no rate is below 0."""
        copy = ResidualNetwork(self.network)
        self._subtract_all()
        copy._rates = {link: rate.at_least_0() for link, rate in self._rates.items()}
        return copy

    def rate(self, link: str) -> ResidualRate:
        """Return what is free of a link."""
        rate = self._rates.get(link) or self.network.idle.get(link) or _NO_LINK
        if self._new and link in self._new:
            rate = self._rates[link] = rate.less(self._new.pop(link))
        return rate

    def state(self, link: str) -> object:
        """Return an object that is the same one while the reservations of a link are."""
        return self._new.get(link) or self._rates.get(link)

    def _subtract_all(self) -> None:
        for link in list(self._new):
            self.rate(link)

    def plan(self, links: Sequence[str], bits: int, start_s: float) -> tuple[RateSpan, ...]:
        """Return the spans in which a transfer of some bits over links would end earliest.

        At each time it moves at the least free rate of its links. Without links there are no spans:
        nothing crosses the network. Cost: O(steps of all links) from the start to the end.
        """
        if not links:
            return ()
        return spans_over([self.rate(link) for link in links], bits, start_s)

    def reserve(
        self, links: Iterable[str], spans: Sequence[RateSpan], *, may_exceed: bool = False
    ) -> None:
        """Subtract spans from what is free of links; `may_exceed` lets them take more than that."""
        if not spans:
            return
        for link in links:
            if may_exceed:
                self._rates[link] = self.rate(link).less(spans, may_exceed=True)
            else:
                self._new[link] = (*self._new.get(link, ()), *spans)

    def release(self, links: Iterable[str], spans: Iterable[RateSpan], from_s: float) -> None:
        """Give back what spans reserved from a time on."""
        later = [
            span._replace(start_s=max(span.start_s, from_s))
            for span in spans
            if span.end_s > from_s
        ]
        if later:
            for link in links:
                self._rates[link] = self.rate(link).more(later)

    def forget(self, before_s: float) -> None:
        """Drop what was reserved before a time; it bounds memory and cost."""
        self._subtract_all()
        rates = {link: rate.since(before_s) for link, rate in self._rates.items()}
        capacities = self.network.capacities_bits_per_s
        self._rates = {
            link: rate
            for link, rate in rates.items()
            if len(rate.rates) > 1 or rate.rates[0] != capacities.get(link, 0)
        }


def spans_over(
    rates: Sequence[ResidualRate], bits: int, start_s: float, most_bits_per_s: int = NO_LIMIT
) -> tuple[RateSpan, ...]:
    """Return the spans in which a transfer over links with these free rates would end earliest.

    It is no faster than `most_bits_per_s`. There is at least one link, or that limit.
    Cost: O(steps of all links) from the start to the end.
    """
    changing: list[ResidualRate] = []
    for each in rates:
        if each.times[-1] > start_s:
            changing.append(each)
        elif each.rates[-1] < most_bits_per_s:
            most_bits_per_s = each.rates[-1]
    if not changing:
        assert most_bits_per_s > 0, "capacities are positive"
        end_s = start_s + bits / most_bits_per_s
        return (RateSpan(start_s, end_s, most_bits_per_s),) if end_s > start_s else ()
    if len(changing) == 1:
        return changing[0].spans(start_s, bits, most_bits_per_s)
    return _spans_over_changing([*changing, ResidualRate.of(most_bits_per_s)], bits, start_s)


def _spans_over_changing(
    rates: Sequence[ResidualRate], bits: int, start_s: float
) -> tuple[RateSpan, ...]:
    """Return the spans over several links on which what is free changes later."""
    steps = [bisect_right(each.times, start_s) - 1 for each in rates]
    spans: list[RateSpan] = []
    now_s, left = start_s, float(bits)
    while True:
        rate = min([each.rates[step] for each, step in zip(rates, steps, strict=True)])
        next_s = math.inf
        for each, step in zip(rates, steps, strict=True):
            if step + 1 < len(each.times) and each.times[step + 1] < next_s:
                next_s = each.times[step + 1]
        if rate > 0:
            end_s = now_s + left / rate
            if end_s <= next_s:
                if not spans and end_s > now_s:
                    return (RateSpan(now_s, end_s, rate),)
                append_span(spans, RateSpan(now_s, end_s, rate))
                return tuple(spans)
            append_span(spans, RateSpan(now_s, next_s, rate))
            left -= rate * (next_s - now_s)
            if left <= 0:  # by rounding
                return tuple(spans)
        assert next_s < math.inf, "reservations end, and capacities are positive"
        for number, each in enumerate(rates):
            step = steps[number] + 1
            if step < len(each.times) and each.times[step] == next_s:
                steps[number] = step
        now_s = next_s
