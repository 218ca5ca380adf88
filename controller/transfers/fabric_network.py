# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The controller's fabric as the network of a job's transfers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from ..fabric.fabric import Direction, Fabric
from ..fabric.host_attachment import HostAttachment
from ..fabric.routes import path
from ..scheduler.network import Links, TransferNetwork
from ..scheduler.planning.bandwidth_estimate import TransferDirection
from .rates.link_tracking import LinkTracker
from .transfer_config import (
    MAX_SERVERS,
    TransferConfig,
    replica_name,
    server_name,
    switch_of,
)


def host_places(fabric: Fabric) -> dict[str, HostAttachment]:
    """Return the attachments of all hosts by name.

    A name that hosts of several switches share has the switch before it: s1/h1.
    """
    hosts = [(name, host) for name, switch in fabric.switches.items() for host in switch.hosts]
    counts = Counter(host.name for _, host in hosts)
    return {
        host.name if counts[host.name] == 1 else f"{switch}/{host.name}": HostAttachment(
            0, switch, host.port
        )
        for switch, host in hosts
    }


def hosts_without_rate(fabric: Fabric) -> list[str]:
    """Return the names of hosts for whose links the file states no rate."""
    return sorted(
        host.name
        for switch in fabric.switches.values()
        for host in switch.hosts
        if host.rate_bits_per_s is None
    )


def link_tracker(fabric: Fabric, config: TransferConfig) -> LinkTracker:
    """Return what follows the rates of all hosts' links, as the file states them at first."""
    places = host_places(fabric)
    capacities = transfer_network(fabric, {}, config).capacities_bits_per_s
    links: dict[str, tuple[str, TransferDirection]] = {}
    rates: dict[str, tuple[int, int]] = {}
    for host in places:
        up, down = _host_links(places, host)
        links[up], links[down] = (host, TransferDirection.UP), (host, TransferDirection.DOWN)
        rates[host] = capacities[up], capacities[down]
    return LinkTracker(links, rates)


def transfer_network(
    fabric: Fabric,
    servers: Mapping[str, str],
    config: TransferConfig,
    estimates: Mapping[str, tuple[int, int]] | None = None,
) -> TransferNetwork:
    """Return the network of a fabric's hosts, and of all servers that a job may have.

    `estimates` are rates (up, down) of hosts' links, in payload, in place of the file's. `servers`
    are the hosts of servers by name; it may grow: a server's host is looked up when a route to it
    is first wanted. A server on its sender's own host has a route without links. Each server has a
    switch of its own name (`switch_of`), which is the one that its host and the senders are at.
    """
    places = host_places(fabric)
    unstated = {
        (name, host.port)
        for name, switch in fabric.switches.items()
        for host in switch.hosts
        if host.rate_bits_per_s is None
    }

    def capacity(direction: Direction) -> int:
        is_unstated = (direction.switch, direction.port) in unstated
        rate = config.default_rate_bits_per_s if is_unstated else fabric.rate(direction)
        return max(1, round(config.payload_share * rate))

    switches = {
        switch_of(server_name(number)): server_name(number) for number in range(MAX_SERVERS)
    }

    def leaf_route(sender: str, receiver: str) -> Links | None:
        """Between a server's switch and a host or server at it."""
        server = switches[sender if sender in switches else receiver]
        place = places.get(servers.get(server, ""))
        if sender in switches:
            host = servers.get(receiver, receiver)
            is_there = receiver == server and place is not None
            return _host_links(places, host)[1:] if is_there else None
        other = places.get(sender)
        if place is None or other is None or other == place or other.switch != place.switch:
            return None
        return _host_links(places, sender)[:1]

    def find_route(sender: str, receiver: str) -> Links | None:
        if sender in switches or receiver in switches:
            return leaf_route(sender, receiver)
        ends = [places.get(servers.get(name, name)) for name in (sender, receiver)]
        start, end = ends
        if start is None or end is None:
            return None
        if start == end:
            return ()
        directions = path(fabric, start, end)
        return None if directions is None else tuple(map(_link_name, directions))

    capacities = {_link_name(each): capacity(each) for each in _directions(fabric)}
    for host, rates in (estimates or {}).items():
        if host in places:
            capacities |= zip(_host_links(places, host), rates, strict=True)
    return TransferNetwork(
        capacities_bits_per_s=capacities,
        hosts=frozenset(places)
        | {name(number) for number in range(MAX_SERVERS) for name in (server_name, replica_name)},
        switches=frozenset(switches),
        find_route=find_route,
    )


def _host_links(places: Mapping[str, HostAttachment], host: str) -> tuple[str, str]:
    """Return the names of a host's link: up and down."""
    switch, port = places[host].switch, places[host].port
    return (
        _link_name(Direction(switch, port, is_inward=True)),
        _link_name(Direction(switch, port)),
    )


def _directions(fabric: Fabric) -> Iterator[Direction]:
    for name, switch in fabric.switches.items():
        for host in switch.hosts:
            yield Direction(name, host.port)
            yield Direction(name, host.port, is_inward=True)
    for link in fabric.links:
        for end in link.ends:
            yield Direction(*end)


def _link_name(direction: Direction) -> str:
    arrow = "<" if direction.is_inward else ">"
    return f"{direction.switch}:{direction.port}{arrow}"
