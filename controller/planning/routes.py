# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Ordinary IPv4 routes over the fabric: the next hop from every switch to every host.

Routes are shortest by links. Where several are equally short, hosts are spread over them: the
host's number, counted over the fabric, chooses. Links that are down are passed by.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from controller.config import HostConfig
from controller.planning.fabric import Attachment, Direction, Fabric, Hop


class Route(NamedTuple):
    """Where a switch sends packets for a host."""

    address: str
    port: int
    mac: str
    """Of the host, or the service MAC of the next switch."""


def routes_at(fabric: Fabric, switch: str) -> list[Route]:
    """Return a switch's routes to all hosts that it can reach, its own hosts first."""
    here = fabric.switches[switch]
    routes = [Route(host.address, host.port, host.mac) for host in here.hosts]
    numbers = _host_numbers(fabric)
    for target in sorted(fabric.switches):
        hosts = fabric.switches[target].hosts
        if target == switch or not hosts:
            continue
        hops = next_hops(fabric, target).get(switch, ())
        if not hops:
            continue
        for host in hosts:
            hop = hops[numbers[target, host.name] % len(hops)]
            routes.append(Route(host.address, hop.port, fabric.switches[hop.switch].service_mac))
    return routes


def next_hops(fabric: Fabric, target: str) -> Mapping[str, Sequence[Hop]]:
    """Return by switch its hops on shortest ways to `target`, by port."""
    if target not in fabric.hops:
        return {}
    distance = {target: 0}
    reached = [target]
    found: dict[str, list[Hop]] = defaultdict(list)
    for switch in reached:
        for hop in fabric.hops[switch]:
            if hop.switch not in distance:
                distance[hop.switch] = distance[switch] + 1
                reached.append(hop.switch)
            if distance[hop.switch] == distance[switch] + 1:
                found[hop.switch].append(Hop(hop.peer_port, switch, hop.port))
    return {switch: sorted(hops) for switch, hops in found.items()}


def path(
    fabric: Fabric,
    sender: Attachment,
    receiver: Attachment,
    hops_to: Mapping[str, Mapping[str, Sequence[Hop]]],
    numbers: Mapping[tuple[str, int], int],
) -> list[Direction] | None:
    """Return the directions that a packet between two hosts takes, None when there is no way.

    `hops_to` has next_hops by receiving switch, `numbers` host_numbers_by_port.
    """
    way = [Direction(sender.switch, sender.port, is_inward=True)]
    switch = sender.switch
    while switch != receiver.switch:
        hops = hops_to[receiver.switch].get(switch, ())
        if not hops:
            return None
        hop = hops[numbers.get((receiver.switch, receiver.port), receiver.port) % len(hops)]
        way.append(Direction(switch, hop.port))
        switch = hop.switch
    return [*way, Direction(receiver.switch, receiver.port)]


def host_numbers_by_port(fabric: Fabric) -> Mapping[tuple[str, int], int]:
    """Return the number of the host at each (switch, port)."""
    numbers = _host_numbers(fabric)
    return {
        (switch.name, host.port): numbers[switch.name, host.name]
        for switch in fabric.switches.values()
        for host in switch.hosts
    }


def _host_numbers(fabric: Fabric) -> Mapping[tuple[str, str], int]:
    """Return every host's number, counted over switches by name, then by port."""
    hosts: list[tuple[str, HostConfig]] = [
        (name, host)
        for name in sorted(fabric.switches)
        for host in sorted(fabric.switches[name].hosts, key=lambda host: host.port)
    ]
    return {(name, host.name): number for number, (name, host) in enumerate(hosts)}
