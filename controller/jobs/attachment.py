# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Where a worker is attached: its JoinRequest checked against the configured switches and hosts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...hostlib.control.session_api import session_pb2 as pb
from ..config import (
    HostConfig,
    SwitchConfig,
    check_address,
    check_mac,
    check_port,
)
from ..errors import ConfigError, InvalidJobError
from .job import Worker

_PORT_NAME = re.compile(r"(?P<switch>.+)-eth(?P<port>[0-9]{1,3})")


def attached_switch(join_request: pb.JoinRequest, switches: Sequence[SwitchConfig]) -> SwitchConfig:
    """Return the worker's switch: the one it names, that has its host, or the only one."""
    name = join_request.switch_name
    port_name = _PORT_NAME.fullmatch(join_request.ingress_port_name)
    if not name and port_name:
        name = port_name["switch"]
    if name:
        for switch in switches:
            if switch.name == name:
                return switch
        known = ", ".join(switch.name for switch in switches)
        raise InvalidJobError(
            f"worker {join_request.worker_id}: no switch {name!r}; there is {known}"
        )
    for switch in switches:
        if switch.host_at(join_request.address) is not None:
            return switch
    if len(switches) == 1:
        return switches[0]
    raise InvalidJobError(
        f"worker {join_request.worker_id} at {join_request.address} is not a configured host; "
        f"name its switch ({', '.join(switch.name for switch in switches)})"
    )


def attached_worker(join_request: pb.JoinRequest, switch: SwitchConfig) -> Worker:
    """Return the worker with its port and addresses; what the configuration knows must agree."""
    where = f"worker {join_request.worker_id}"
    host = switch.host_at(join_request.address)
    port, mac = _port(join_request, where), join_request.mac.lower()
    if host is not None:
        port, mac = _agreed(host, port, mac, where)
    if port is None:
        raise InvalidJobError(
            f"{where} at {join_request.address} is not a configured host of {switch.name}; correct "
            "the address, or give the switch port that it is attached to and its mac"
        )
    try:
        check_address(f"{where}: address", join_request.address)
        check_mac(f"{where}: mac", mac)
        check_port(f"{where}: port", port)
    except ConfigError as exc:
        raise InvalidJobError(str(exc)) from exc
    if not 1 <= join_request.udp_port <= 65535:
        raise InvalidJobError(f"{where}: UDP port {join_request.udp_port} is not in 1..65535")
    return Worker(
        worker_id=join_request.worker_id,
        address=join_request.address,
        mac=mac,
        udp_port=join_request.udp_port,
        port=port,
        switch=switch.name,
        peer_address=join_request.peer_address or join_request.address,
        peer_port=join_request.peer_port,
    )


def _port(join_request: pb.JoinRequest, where: str) -> int | None:
    if join_request.WhichOneof("ingress") == "ingress_port":
        return join_request.ingress_port
    if not join_request.ingress_port_name:
        return None
    match = _PORT_NAME.fullmatch(join_request.ingress_port_name)
    if match is None:
        raise InvalidJobError(
            f"{where}: port name {join_request.ingress_port_name!r} is not SWITCH-ethN, such as "
            "s1-eth1"
        )
    return int(match["port"])


def _agreed(host: HostConfig, port: int | None, mac: str, where: str) -> tuple[int, str]:
    if port is not None and port != host.port:
        raise InvalidJobError(
            f"{where} says port {port}, but {host.name} ({host.address}) is at port {host.port}"
        )
    if mac and mac != host.mac:
        raise InvalidJobError(
            f"{where} says mac {mac}, but {host.name} ({host.address}) has {host.mac}"
        )
    return host.port, host.mac
