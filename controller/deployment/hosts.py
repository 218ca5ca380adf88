# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The hosts of a deployment as an operator names them, and what is found of them."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from ..config import HostConfig, check_address, check_mac, check_name, check_port
from ..errors import ConfigError
from .arp_sweep import Sighting

FORM: Final = "[NAME=]ADDRESS[,MAC[,PORT]]"
DEFAULT_PREFIX_BITS: Final = 24
"""Of a network that no interface of this machine is in."""
_CANDIDATES: Final = 4


@dataclass(frozen=True, kw_only=True)
class NamedHost:
    """A host as its operator names it; what is left out is looked for."""

    name: str
    address: str
    mac: str = ""
    port: int | None = None

    @property
    def is_complete(self) -> bool:
        """Whether nothing of it need be looked for."""
        return self.mac != "" and self.port is not None


@dataclass(frozen=True, kw_only=True)
class HostFinding:
    """What was found of a host: its place, or why it has none and what to do."""

    named: NamedHost
    host: HostConfig | None = None
    problem: str = ""
    remedy: str = ""


def parse_named_host(text: str, number: int) -> NamedHost:
    """Return the host of [NAME=]ADDRESS[,MAC[,PORT]]; its name is h`number` unless given.

    Raises ConfigError.
    """
    name, _, rest = text.rpartition("=")
    parts = rest.split(",")
    if len(parts) > 3 or (len(parts) == 3 and not parts[2].isdecimal()):
        raise ConfigError(f"host {text!r} is not {FORM}, such as h1=10.0.0.1")
    address, mac, port = (*parts, "", "")[:3]
    named = NamedHost(
        name=name or f"h{number}",
        address=address,
        mac=mac.lower(),
        port=int(port) if port else None,
    )
    check_name("host name", named.name)
    check_address(f"host {named.name}: address", named.address)
    if named.mac:
        check_mac(f"host {named.name}: mac", named.mac)
    if named.port is not None:
        check_port(f"host {named.name}: port", named.port)
    return named


def place_host(
    named: NamedHost,
    seen: set[Sighting],
    *,
    where: str,
    rates: Mapping[int, int] | None = None,
) -> HostFinding:
    """Return the place of a host by what was seen of its address.

    `where` says in words where it was looked for; `rates` are those of links by port, bits/s.
    """
    fitting = {
        sighting
        for sighting in seen
        if named.mac in ("", sighting.mac) and named.port in (None, sighting.port)
    }
    if named.is_complete:
        assert named.port is not None
        fitting = {Sighting(named.port, named.mac)}
    if len(fitting) == 1:
        ((port, mac),) = fitting
        rate = (rates or {}).get(port)
        place = HostConfig(
            name=named.name, port=port, address=named.address, mac=mac, rate_bits_per_s=rate
        )
        return HostFinding(named=named, host=place)
    if not seen:
        return HostFinding(
            named=named,
            problem=f"{named.address} does not answer ARP {where}",
            remedy="look whether it is up, whether the address is its own, and at its cable; or "
            f"give it as {named.name}={named.address},MAC,PORT",
        )
    places = ", ".join(f"port {port} ({mac})" for port, mac in sorted(seen))
    return HostFinding(
        named=named,
        problem=f"{named.address} answers ARP at {places}",
        remedy="a host answers for its address by all its cards: set sysctl "
        "net.ipv4.conf.all.arp_ignore=1 there; if two hosts have the address, correct one; or "
        f"give the right place as {named.name}={named.address},MAC,PORT",
    )


def same_macs(hosts: Sequence[HostConfig]) -> list[tuple[HostConfig, HostConfig]]:
    """Return pairs of hosts with one MAC address: a router answers for them."""
    first: dict[str, HostConfig] = {}
    return [
        (first[host.mac], host) for host in hosts if first.setdefault(host.mac, host) is not host
    ]


def service_candidates(
    hosts: Sequence[NamedHost], network: ipaddress.IPv4Network | None
) -> list[str]:
    """Return addresses that a switch could have for its service, the best first.

    In a known network, the highest ones, which address pools leave free most often. Otherwise those
    after the hosts' highest address: wherever the hosts' network ends, these are most likely in it.
    Empty if the hosts are in no one network.
    """
    taken = {ipaddress.IPv4Address(host.address) for host in hosts}
    highest = max(taken)
    if network is None:
        network = ipaddress.IPv4Network(f"{highest}/{DEFAULT_PREFIX_BITS}", strict=False)
        addresses = (highest + n for n in range(1, 255))
    else:
        last = network.broadcast_address
        addresses = (last - n for n in range(1, min(network.num_addresses, 255)))
    if any(address not in network for address in taken):
        return []
    usable = (
        str(address)
        for address in addresses
        if address in network
        and address not in taken
        and address not in (network.network_address, network.broadcast_address)
    )
    return list(islice(usable, _CANDIDATES))
