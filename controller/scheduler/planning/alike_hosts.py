# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Which idle hosts are equally good as aggregators, so that one of them stands for the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ..network import Links, ResidualNetwork, TransferNetwork


class AlikeHosts:
    """Compares hosts by their routes from all workers and to the server.

    Two hosts are alike if their routes differ only in links that no other host's routes and no
    other route to the server use, and if as much is free of these links at all times.
    Cost: O(hosts x workers) routes to make, O(own links x steps) for each host in a comparison.
    """

    def __init__(
        self,
        network: TransferNetwork,
        workers: Sequence[str],
        server: str,
        hosts: Sequence[str],
        switches: Iterable[str] = (),
    ) -> None:
        """`switches` may send to the server, too."""
        self.hosts: Final = tuple(hosts)
        self.workers: Final = tuple(workers)
        self.routes: Final[Mapping[str, Sequence[Links]]] = {
            host: [network.route(host, server), *[network.route(each, host) for each in workers]]
            for host in hosts
        }
        """By host: to the server, then those from all workers."""
        used: Counter[str] = Counter()
        for found in self.routes.values():
            used.update({link for route in found for link in route})
        for sender in (*workers, *switches):
            used.update(network.route(sender, server))
        self._own: dict[str, tuple[str, ...]] = {}
        """By host, the links that only its routes use."""
        self._patterns: dict[str, int] = {}
        """Equal for hosts whose routes differ in own links alone."""
        known: dict[object, int] = {}
        for host, found in self.routes.items():
            links = [link for route in found for link in route]
            own = dict.fromkeys([link for link in links if used[link] == 1])
            places: dict[str, str | int] = {link: place for place, link in enumerate(own)}
            lengths = tuple([len(route) for route in found])
            pattern = lengths, tuple([places.get(link, link) for link in links])
            self._own[host] = tuple(own)
            self._patterns[host] = known.setdefault(pattern, len(known))

    def own_links(self, host: str) -> tuple[str, ...]:
        """Return the links that only a host's routes use."""
        return self._own[host]

    def kind(self, host: str, residual: ResidualNetwork) -> object:
        """Return what is equal for hosts that are alike now."""
        rates = (residual.rate(link) for link in self._own[host])
        return self._patterns[host], tuple([each.steps for each in rates])

    def one_of_each(self, hosts: Sequence[str], residual: ResidualNetwork) -> list[str]:
        """Return the first of all hosts that are alike now."""
        first: dict[object, str] = {}
        for host in hosts:
            first.setdefault(self.kind(host, residual), host)
        return list(first.values())
