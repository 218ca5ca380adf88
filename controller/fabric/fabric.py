# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The fabric: switches, hosts, the links between them, and the free rate of each link.

A **direction** is one half of a link, named by a switch port and whether frames leave the switch
there. Both halves of a link between switches are outward directions, one at each end; only a host
sends inward.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, Protocol

from ..config import (
    DEFAULT_RATE_BITS_PER_S,
    ControllerConfig,
    LinkConfig,
    SwitchConfig,
)
from ..errors import UnknownNameError

LEAST_SHARE: Final = 0.1
"""Least share of a link's rate that counts as free: the traffic of others is elastic."""


class Direction(NamedTuple):
    """One half of a link."""

    switch: str
    port: int
    is_inward: bool = False
    """Frames come from a host into the switch."""


class Hop(NamedTuple):
    """A link from a switch to a neighbour, as the switch sees it."""

    port: int
    switch: str
    """The neighbour."""
    peer_port: int
    """Its port at the other end."""


class Attachment(Protocol):
    """The port of a worker; `controller.jobs.job.Worker` is one."""

    @property
    def worker_id(self) -> int:
        """Id in the job."""
        ...

    @property
    def switch(self) -> str:
        """Name of its switch."""
        ...

    @property
    def port(self) -> int:
        """Port of the switch."""
        ...


@dataclass(frozen=True, kw_only=True)
class Fabric:
    """Switches and links, which of them are down, and the measured use. Immutable."""

    switches: Mapping[str, SwitchConfig]
    links: tuple[LinkConfig, ...] = ()
    down_switches: frozenset[str] = frozenset()
    down_links: frozenset[str] = frozenset()
    """Keys of links."""
    used_bits_per_s: Mapping[Direction, float] = field(default_factory=dict[Direction, float])
    """Measured traffic of others."""

    @classmethod
    def of(cls, config: ControllerConfig) -> Fabric:
        """Return the configured fabric with everything up and idle."""
        return cls(switches={s.name: s for s in config.switches}, links=config.links)

    def without(self, *, switches: Iterable[str] = (), links: Iterable[str] = ()) -> Fabric:
        """Return the fabric with more switches and links (by key) down."""
        return replace(
            self,
            down_switches=self.down_switches | set(switches),
            down_links=self.down_links | set(links),
        )

    def with_use(self, used_bits_per_s: Mapping[Direction, float]) -> Fabric:
        """Return the fabric with this measured use."""
        return replace(self, used_bits_per_s=dict(used_bits_per_s))

    @functools.cached_property
    def hops(self) -> Mapping[str, tuple[Hop, ...]]:
        """By switch, its hops over links that are up to switches that are up, by port."""
        hops: dict[str, list[Hop]] = {
            name: [] for name in self.switches if name not in self.down_switches
        }
        for link in self.links:
            if link.key not in self.down_links and link.a in hops and link.b in hops:
                hops[link.a].append(Hop(link.a_port, link.b, link.b_port))
                hops[link.b].append(Hop(link.b_port, link.a, link.a_port))
        return {name: tuple(sorted(found)) for name, found in hops.items()}

    @functools.cached_property
    def _rates(self) -> Mapping[tuple[str, int], int]:
        rates = {
            (switch.name, host.port): host.rate_bits_per_s or DEFAULT_RATE_BITS_PER_S
            for switch in self.switches.values()
            for host in switch.hosts
        }
        for link in self.links:
            for end in link.ends:
                rates[end] = link.rate_bits_per_s
        return rates

    @functools.cached_property
    def _link_at(self) -> Mapping[tuple[str, int], LinkConfig]:
        return {end: link for link in self.links for end in link.ends}

    def link_at(self, switch: str, port: int) -> LinkConfig | None:
        """Return the link between switches that ends at a port."""
        return self._link_at.get((switch, port))

    def next_hops(self, target: str) -> Mapping[str, Sequence[Hop]]:
        """Return by switch its hops on shortest paths to `target`, by port."""
        if target not in self._next_hops:
            self._next_hops[target] = self._find_next_hops(target)
        return self._next_hops[target]

    @functools.cached_property
    def _next_hops(self) -> dict[str, Mapping[str, Sequence[Hop]]]:
        return {}

    def _find_next_hops(self, target: str) -> Mapping[str, Sequence[Hop]]:
        if target not in self.hops:
            return {}
        distance = {target: 0}
        reached = [target]
        found: dict[str, list[Hop]] = defaultdict(list)
        for switch in reached:
            for hop in self.hops[switch]:
                if hop.switch not in distance:
                    distance[hop.switch] = distance[switch] + 1
                    reached.append(hop.switch)
                if distance[hop.switch] == distance[switch] + 1:
                    found[hop.switch].append(Hop(hop.peer_port, switch, hop.port))
        return {switch: sorted(hops) for switch, hops in found.items()}

    @functools.cached_property
    def host_numbers(self) -> Mapping[tuple[str, int], int]:
        """Every host's number by (switch, port), counted over switches by name, then by port."""
        places = [
            (name, host.port)
            for name in sorted(self.switches)
            for host in sorted(self.switches[name].hosts, key=lambda host: host.port)
        ]
        return {place: number for number, place in enumerate(places)}

    def link_ports(self, switch: str) -> list[int]:
        """Return the ports of a switch that lead to other switches, up or down."""
        return sorted(port for name, port in self._link_at if name == switch)

    def rate(self, direction: Direction) -> int:
        """Return a direction's rate, bits/s; the default for a port that is not configured."""
        return self._rates.get((direction.switch, direction.port), DEFAULT_RATE_BITS_PER_S)

    def residual(self, direction: Direction) -> float:
        """Return the rate of a direction that others leave free, bits/s."""
        rate = self.rate(direction)
        return max(rate - self.used_bits_per_s.get(direction, 0.0), LEAST_SHARE * rate)

    def capacity(self, switch: str, port: int) -> float:
        """Return the lesser residual of a link's two directions, bits/s.

        A tree sends the same bytes up and down every link that it uses.
        """
        return min(self.residual(direction) for direction in self.directions_at(switch, port))

    def directions_at(self, switch: str, port: int) -> tuple[Direction, Direction]:
        """Return both directions of the link at a port: out of the switch, into it."""
        link = self.link_at(switch, port)
        if link is None:
            return Direction(switch, port), Direction(switch, port, is_inward=True)
        far = link.ends[1] if link.ends[0] == (switch, port) else link.ends[0]
        return Direction(switch, port), Direction(*far)

    def ends(self, direction: Direction) -> tuple[str, str]:
        """Return the names of a direction's sender and receiver."""
        near, far = direction.switch, self._station_at(direction.switch, direction.port)
        return (far, near) if direction.is_inward else (near, far)

    def _station_at(self, switch: str, port: int) -> str:
        link = self.link_at(switch, port)
        if link is not None:
            return link.b if link.ends[0] == (switch, port) else link.a
        return self._host_at.get((switch, port), f"port {port} of {switch}")

    @functools.cached_property
    def _host_at(self) -> Mapping[tuple[str, int], str]:
        # Several hosts may share a port: the first one stands for them.
        return {
            (switch.name, host.port): host.name
            for switch in self.switches.values()
            for host in reversed(switch.hosts)
        }

    def find_link(self, text: str) -> LinkConfig:
        """Return the link of a name such as s1-s3 or a key such as s1:3-s3:1.

        Raises UnknownNameError if no link, or more than one, has this name.
        """
        found = [link for link in self.links if text in _spellings(link)]
        if len(found) == 1:
            return found[0]
        if found:
            keys = ", ".join(link.key for link in found)
            raise UnknownNameError(f"link {text!r} may be any of {keys}; name one of these")
        known = ", ".join(link.name for link in self.links) or "none"
        raise UnknownNameError(f"no link {text!r}; known: {known}")


def _spellings(link: LinkConfig) -> tuple[str, ...]:
    turned = replace(link, a=link.b, a_port=link.b_port, b=link.a, b_port=link.a_port)
    return link.name, link.key, turned.name, turned.key
