# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Where a worker is attached: its Hello checked against the configured switches and hosts."""

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


def attached_switch(hello: pb.Hello, switches: Sequence[SwitchConfig]) -> SwitchConfig:
    """Return the worker's switch: the one it names, that has its host, or the only one."""
    name = hello.switch_name
    port_name = _PORT_NAME.fullmatch(hello.ingress_port_name)
    if not name and port_name:
        name = port_name["switch"]
    if name:
        for switch in switches:
            if switch.name == name:
                return switch
        known = ", ".join(switch.name for switch in switches)
        raise InvalidJobError(f"worker {hello.worker_id}: no switch {name!r}; there is {known}")
    for switch in switches:
        if switch.host_at(hello.address) is not None:
            return switch
    if len(switches) == 1:
        return switches[0]
    raise InvalidJobError(
        f"worker {hello.worker_id} at {hello.address} is not a configured host; name its switch "
        f"({', '.join(switch.name for switch in switches)})"
    )


def attached_worker(hello: pb.Hello, switch: SwitchConfig) -> Worker:
    """Return the worker with its port and addresses; what the configuration knows must agree."""
    where = f"worker {hello.worker_id}"
    host = switch.host_at(hello.address)
    port, mac = _port(hello, where), hello.mac.lower()
    if host is not None:
        port, mac = _agreed(host, port, mac, where)
    if port is None:
        raise InvalidJobError(
            f"{where} at {hello.address} is not a configured host of {switch.name}; correct the "
            "address, or give the switch port that it is attached to and its mac"
        )
    try:
        check_address(f"{where}: address", hello.address)
        check_mac(f"{where}: mac", mac)
        check_port(f"{where}: port", port)
    except ConfigError as exc:
        raise InvalidJobError(str(exc)) from exc
    if not 1 <= hello.udp_port <= 65535:
        raise InvalidJobError(f"{where}: UDP port {hello.udp_port} is not in 1..65535")
    return Worker(
        worker_id=hello.worker_id,
        address=hello.address,
        mac=mac,
        udp_port=hello.udp_port,
        port=port,
        switch=switch.name,
        peer_address=hello.peer_address or hello.address,
        peer_port=hello.peer_port,
    )


def _port(hello: pb.Hello, where: str) -> int | None:
    if hello.WhichOneof("ingress") == "ingress_port":
        return hello.ingress_port
    if not hello.ingress_port_name:
        return None
    match = _PORT_NAME.fullmatch(hello.ingress_port_name)
    if match is None:
        raise InvalidJobError(
            f"{where}: port name {hello.ingress_port_name!r} is not SWITCH-ethN, such as s1-eth1"
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
