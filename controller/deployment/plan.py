# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A deployment: what its operator asks for, what is found, and the files that follow."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ..config import ControllerConfig, SwitchConfig
from ..errors import ConfigError
from ..switches.program import load_program
from .arp_sweep import Sighting
from .card_ports import Card, OwnAddress, sweep_cards
from .controller_file import ETHERNET_OVERHEAD_BYTES
from .folders import CONTROLLER_NAME, OPERATOR_NAME, SERVER_NAME
from .hosts import HostFinding, NamedHost, place_host, service_candidates
from .switch_ports import sweep_switch

CONTROLLER_PORT: Final = 50551
SOFTSWITCH_GRPC: Final = "127.0.0.1:9559"
SERVER_PORT: Final = 9600


@dataclass(frozen=True, kw_only=True)
class DeploymentRequest:
    """What an operator asks for."""

    hosts: tuple[NamedHost, ...]
    directory: Path
    """Absolute."""
    cards: Mapping[int, Card]
    """Of softswitch on this machine, by port; empty: the switch is another one."""
    switch: SwitchConfig
    """Without hosts."""
    switch_ports: range = range(1, 65)
    """Of another switch, where hosts are looked for."""
    service_address: str = ""
    """"": one is chosen."""
    listen: str = ""
    """Of the controller; "": the address of this machine that faces the hosts."""
    variant: str = "wide"
    has_server: bool = False
    is_insecure: bool = False

    def __post_init__(self) -> None:
        """Raise ConfigError for hosts that cannot be told apart."""
        if not self.hosts:
            raise ConfigError("no host: name the hosts that workers run on by their addresses")
        for what in ("name", "address"):
            values = [getattr(host, what) for host in self.hosts]
            if len(set(values)) != len(values):
                raise ConfigError(f"two hosts have the same {what}")
        reserved = (CONTROLLER_NAME, OPERATOR_NAME, SERVER_NAME, self.switch.name)
        for host in self.hosts:
            if host.name in reserved:
                raise ConfigError(f"host {host.name}: the name is that of another process")
        if any(character.isspace() or character == "%" for character in str(self.directory)):
            raise ConfigError(
                f"directory {self.directory}: systemd cannot name a path with spaces or '%'; choose"
                " another --directory"
            )

    def at_switch(self, credentials: Path) -> DeploymentRequest:
        """Return the request with the folder of certificates for calls of the switch."""
        return replace(self, switch=replace(self.switch, credentials=credentials))


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What was found of the hosts and of the service address."""

    hosts: tuple[HostFinding, ...]
    service_address: str
    """"": none."""
    service_problem: str = ""
    service_remedy: str = ""


def find(request: DeploymentRequest, own: list[OwnAddress]) -> Findings:
    """Look for the hosts, and for a service address that nobody has.

    Raises SwitchError, DeploymentError, ConfigError.
    """
    wanted = [host.address for host in request.hosts if not host.is_complete]
    candidates = _candidates(request, own)
    seen: dict[str, set[Sighting]] = {}
    if wanted or not request.service_address:
        seen = _sweep(request, [*wanted, *candidates])
    where = (
        f"behind {', '.join(card.name for card in request.cards.values())}"
        if request.cards
        else f"behind ports {request.switch_ports[0]} to {request.switch_ports[-1]} of switch "
        f"{request.switch.name}"
    )
    rates = {port: card.rate_bits_per_s for port, card in request.cards.items()}
    known = {port: rate for port, rate in rates.items() if rate is not None}
    hosts = tuple(
        place_host(named, seen.get(named.address, set()), where=where, rates=known)
        for named in request.hosts
    )
    own_addresses = {each.address for each in own}
    free = [each for each in candidates if not seen.get(each) and each not in own_addresses]
    if free:
        return Findings(hosts=hosts, service_address=free[0])
    return Findings(
        hosts=hosts,
        service_address="",
        service_problem=_service_problem(request, candidates, seen),
        service_remedy="give --service-address ADDRESS: a free address of the hosts' network",
    )


def controller_config(request: DeploymentRequest, findings: Findings) -> ControllerConfig:
    """Return the controller's configuration when all hosts have places; raises ConfigError."""
    places = tuple(found.host for found in findings.hosts if found.host is not None)
    assert len(places) == len(request.hosts)
    switch = replace(request.switch, service_address=findings.service_address, hosts=places)
    return ControllerConfig(
        switches=(switch,),
        listen=request.listen,
        variant=request.variant,
        frame_overhead_bytes=ETHERNET_OVERHEAD_BYTES,
        insecure=request.is_insecure,
    )


def _sweep(request: DeploymentRequest, addresses: list[str]) -> dict[str, set[Sighting]]:
    if request.cards:
        return sweep_cards(request.cards, addresses)
    program = load_program(request.variant)
    sweep = sweep_switch(request.switch, program, addresses, request.switch_ports)
    return asyncio.run(sweep)


def _candidates(request: DeploymentRequest, own: list[OwnAddress]) -> list[str]:
    if request.service_address:
        return [request.service_address]
    names = {card.name for card in request.cards.values()}
    networks = (
        ipaddress.IPv4Network(f"{each.address}/{each.prefix_bits}", strict=False)
        for each in own
        if each.interface in names
    )
    first = ipaddress.IPv4Address(request.hosts[0].address)
    network = next((each for each in networks if first in each), None)
    return service_candidates(request.hosts, network)


def _service_problem(
    request: DeploymentRequest, candidates: list[str], seen: Mapping[str, set[Sighting]]
) -> str:
    if not candidates:
        return "the hosts are not in one network"
    taken = next((each for each in candidates if seen.get(each)), candidates[0])
    owners = ", ".join(mac for _, mac in sorted(seen.get(taken, ()))) or "this machine"
    if request.service_address:
        return f"{taken} is taken by {owners}"
    return f"{', '.join(candidates)} are all taken"
