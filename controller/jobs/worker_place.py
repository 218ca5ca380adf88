# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Whether a worker or row server can be where it says: against the configured fabric."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import Final

from ...hostlib.slots import wire
from ..api.printable import quoted
from ..config import ControllerConfig
from ..errors import InvalidJobError
from .job import RowServer, Worker

_HOST_NAME: Final = re.compile(r"(?=.{1,253}$)([A-Za-z0-9_-]{1,63}\.)*[A-Za-z_][A-Za-z0-9_-]{0,62}")
_NOBODYS_MAC: Final = "00:00:00:00:00:00"


def check_place(worker: Worker, config: ControllerConfig) -> None:
    """Raise InvalidJobError unless a host can have the worker's addresses and ports."""
    where = f"worker {worker.worker_id}"
    _check_station(where, worker, config)
    _check_peer_address(where, worker, config)


def check_row_server(server: RowServer, config: ControllerConfig) -> None:
    """Raise InvalidJobError unless a host can have the row server's addresses and ports."""
    _check_station(f"row server {server.server_id}", server, config)


def _check_station(where: str, station: Worker | RowServer, config: ControllerConfig) -> None:
    is_listed = any(s.host_at(station.address) is not None for s in config.switches)
    address = ipaddress.ip_address(station.address)
    _check_unicast(f"{where}: address", address, config)
    if address.is_loopback and not is_listed:
        raise InvalidJobError(
            f"{where}: address {address} is loopback, which no switch reaches; give the address of "
            "the interface towards the switch, or list the host in the controller's configuration"
        )
    _check_mac(where, station, config)
    if station.udp_port == wire.UDP_PORT:
        raise InvalidJobError(
            f"{where}: UDP port {wire.UDP_PORT} is the switches' own; take any other"
        )
    _check_attachment(where, station, config)


def check_peers(worker: Worker, others: Iterable[Worker]) -> None:
    """Raise InvalidJobError when only some workers of a job have a peer server on loopback.

    All may: then they share a machine, as in mode udp of the testbed.
    """
    if not worker.peer_port:
        return
    for other in others:
        if other.peer_port and _is_loopback(other) is not _is_loopback(worker):
            raise InvalidJobError(
                f"worker {worker.worker_id}: peer address {quoted(worker.peer_address)} and "
                f"{quoted(other.peer_address)} of worker {other.worker_id} cannot both be right: "
                "loopback reaches its own machine only; set SWITCHFOLD_PEER_ADDRESS"
            )


def _check_unicast(
    what: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address, config: ControllerConfig
) -> None:
    is_none = address.is_unspecified or (
        address.version == 4 and int(address) >> 24 == 0  # "this network", RFC 1122
    )
    is_reserved = address.version == 4 and address.is_reserved  # 240.0.0.0/4 with the broadcast
    if is_none or address.is_multicast or is_reserved:
        raise InvalidJobError(f"{what} {address} is no address of a host; give the worker's own")
    for switch in config.switches:
        if str(address) == switch.service_address:
            raise InvalidJobError(
                f"{what} {address} is the service address of switch {switch.name}; give the "
                "worker's own"
            )


def _check_mac(where: str, station: Worker | RowServer, config: ControllerConfig) -> None:
    is_group = int(station.mac[:2], 16) & 1
    if is_group or station.mac == _NOBODYS_MAC:
        raise InvalidJobError(f"{where}: mac {station.mac} is no address of a host")
    for switch in config.switches:
        if station.mac == switch.service_mac:
            raise InvalidJobError(f"{where}: mac {station.mac} is that of switch {switch.name}")


def _check_attachment(where: str, station: Worker | RowServer, config: ControllerConfig) -> None:
    """Compare with what the configuration knows of the port and of the address."""
    for link in config.links:
        if (station.switch, station.port) in link.ends:
            raise InvalidJobError(
                f"{where}: port {station.port} of {station.switch} is link {link.name}, no host's"
            )
    for switch in config.switches:
        host = switch.host_at(station.address)
        if host is not None and switch.name != station.switch and config.links:
            raise InvalidJobError(
                f"{where}: {station.address} is {host.name} at switch {switch.name}, not at "
                f"{station.switch}"
            )
        if switch.name != station.switch:
            continue
        # Several, where the port leads to a network and not to a single host.
        there = [other for other in switch.hosts if other.port == station.port]
        if there and all(other.mac != station.mac for other in there):
            names = ", ".join(f"{other.name} ({other.address})" for other in there)
            raise InvalidJobError(
                f"{where}: port {station.port} of {switch.name} is that of {names}, not of "
                f"{station.address}"
            )


def _check_peer_address(where: str, worker: Worker, config: ControllerConfig) -> None:
    if not worker.peer_port:
        return
    try:
        address = ipaddress.ip_address(worker.peer_address)
    except ValueError as exc:
        if _HOST_NAME.fullmatch(worker.peer_address):
            return
        raise InvalidJobError(
            f"{where}: peer address {quoted(worker.peer_address)} is neither an IP address nor a "
            "host name"
        ) from exc
    _check_unicast(f"{where}: peer address", address, config)


def _is_loopback(worker: Worker) -> bool:
    try:
        return ipaddress.ip_address(worker.peer_address).is_loopback
    except ValueError:
        return worker.peer_address == "localhost"
