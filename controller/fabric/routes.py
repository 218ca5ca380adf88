# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Ordinary IPv4 routes over the fabric: the next hop from every switch to every host.

A switch whose hosts are all behind a single port has no routes: they reach each other without it.
What it sent back there would only confuse the network about where they are.

Routes are shortest by links. Where several are equally short, hosts are spread over them: the
host's number, counted over the fabric, chooses. Routes avoid links that are down.
"""

from __future__ import annotations

from typing import NamedTuple

from .fabric import Attachment, Direction, Fabric


class Route(NamedTuple):
    """The next hop of a switch to a host."""

    address: str
    port: int
    mac: str
    """Of the host, or the service MAC of the next switch."""


def routes_at(fabric: Fabric, switch: str) -> list[Route]:
    """Return a switch's routes to all hosts that it can reach, its own hosts first."""
    here = fabric.switches[switch]
    ports = {host.port for host in here.hosts} | set(fabric.link_ports(switch))
    if len(ports) == 1 < len(here.hosts):
        return []
    routes = [Route(host.address, host.port, host.mac) for host in here.hosts]
    for target in sorted(fabric.switches):
        hosts = fabric.switches[target].hosts
        if target == switch or not hosts:
            continue
        hops = fabric.next_hops(target).get(switch, ())
        if not hops:
            continue
        for host in hosts:
            hop = hops[fabric.host_numbers[target, host.port] % len(hops)]
            routes.append(Route(host.address, hop.port, fabric.switches[hop.switch].service_mac))
    return routes


def path(fabric: Fabric, sender: Attachment, receiver: Attachment) -> list[Direction] | None:
    """Return the directions that a packet between two hosts takes, None if there is no path."""
    hops_to = fabric.next_hops(receiver.switch)
    number = fabric.host_numbers.get((receiver.switch, receiver.port), receiver.port)
    directions = [Direction(sender.switch, sender.port, is_inward=True)]
    switch = sender.switch
    while switch != receiver.switch:
        hops = hops_to.get(switch, ())
        if not hops:
            return None
        hop = hops[number % len(hops)]
        directions.append(Direction(switch, hop.port))
        switch = hop.switch
    return [*directions, Direction(receiver.switch, receiver.port)]
