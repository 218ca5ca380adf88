# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Where workers and row servers are attached: what they say against the configuration."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ...hostlib.control.session_api import session_pb2 as pb
from ..config import (
    HostConfig,
    SwitchConfig,
    check_address,
    check_mac,
    check_port,
)
from ..errors import ConfigError, InvalidJobError
from .job import RowServer, Worker

_PORT_NAME = re.compile(r"(?P<switch>.+)-eth(?P<port>[0-9]{1,3})")

_LIST_IT = (
    "list it as a [[switch.host]] in the controller's file, which `switchfold deploy init` writes"
)

Applicant = pb.JoinRequest | pb.AttachRowServer
"""Who asks to be let in; both say alike where they are attached."""


def applicant_name(request: Applicant) -> str:
    """Return what errors call the sender of a request."""
    if isinstance(request, pb.JoinRequest):
        return f"worker {request.worker_id}"
    return f"row server {request.server_id}"


def worker_switch(
    join_request: pb.JoinRequest, switches: Sequence[SwitchConfig], is_ready: Callable[[str], bool]
) -> SwitchConfig:
    """Return a worker's switch, as `attached_switch`.

    A worker of a transposed job is at all switches that list it, and needs one of them; so it joins
    by one that is there.
    """
    if join_request.path == pb.TRANSPOSED:
        switches = [switch for switch in switches if is_ready(switch.name)] or switches
    return attached_switch(join_request, switches)


def attached_switch(request: Applicant, switches: Sequence[SwitchConfig]) -> SwitchConfig:
    """Return the applicant's switch: the one it names, that has its host, or the only one."""
    where = applicant_name(request)
    name = request.switch_name
    port_name = _PORT_NAME.fullmatch(request.ingress_port_name)
    if not name and port_name:
        name = port_name["switch"]
    if name:
        for switch in switches:
            if switch.name == name:
                return switch
        known = ", ".join(switch.name for switch in switches)
        raise InvalidJobError(f"{where}: no switch {name!r}; there is {known}")
    for switch in switches:
        if switch.host_at(request.address) is not None:
            return switch
    if len(switches) == 1:
        return switches[0]
    raise InvalidJobError(
        f"{where} at {request.address} is not a configured host; {_LIST_IT}, or name its switch "
        f"({', '.join(switch.name for switch in switches)}) and its port there: "
        f"{_place_settings(request)}"
    )


def attached_worker(join_request: pb.JoinRequest, switch: SwitchConfig) -> Worker:
    """Return the worker with its port and addresses; what the configuration knows must agree."""
    port, mac = _port_and_mac(join_request, switch)
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


def attached_row_server(request: pb.AttachRowServer, switch: SwitchConfig) -> RowServer:
    """Return the row server with its port and addresses, without rows."""
    port, mac = _port_and_mac(request, switch)
    return RowServer(
        server_id=request.server_id,
        identity=request.identity.hex(),
        address=request.address,
        mac=mac,
        udp_port=request.udp_port,
        port=port,
        switch=switch.name,
        rows_wanted=request.rows_wanted,
    )


def _port_and_mac(request: Applicant, switch: SwitchConfig) -> tuple[int, str]:
    where = applicant_name(request)
    host = switch.host_at(request.address)
    port, mac = _port(request, where), request.mac.lower()
    if host is not None:
        port, mac = _agreed(host, port, mac, where)
    if port is None:
        raise InvalidJobError(
            f"{where} at {request.address} is not a configured host of {switch.name}; correct "
            f"the address; or {_LIST_IT}; or give the switch port that it is attached to: "
            f"{_place_settings(request)}"
        )
    try:
        check_address(f"{where}: address", request.address)
        if not mac:
            raise InvalidJobError(
                f"{where} at {request.address} is not a configured host of {switch.name} and states"
                f" no MAC address; {_LIST_IT}, or give it: {_mac_setting(request)}"
            )
        check_mac(f"{where}: mac", mac)
        check_port(f"{where}: port", port)
    except ConfigError as exc:
        raise InvalidJobError(str(exc)) from exc
    if not 1 <= request.udp_port <= 65535:
        raise InvalidJobError(f"{where}: UDP port {request.udp_port} is not in 1..65535")
    return port, mac


def _place_settings(request: Applicant) -> str:
    if isinstance(request, pb.JoinRequest):
        return "SWITCHFOLD_INGRESS_PORT=SWITCH-ethN in the worker's environment, such as s1-eth1"
    return "ingress_port and mac of the server's options"


def _mac_setting(request: Applicant) -> str:
    if isinstance(request, pb.JoinRequest):
        return "SWITCHFOLD_MAC in the worker's environment, or UdpTransport(mac=...)"
    return "mac of the server's options"


def _port(request: Applicant, where: str) -> int | None:
    if request.WhichOneof("ingress") == "ingress_port":
        return request.ingress_port
    if not request.ingress_port_name:
        return None
    match = _PORT_NAME.fullmatch(request.ingress_port_name)
    if match is None:
        raise InvalidJobError(
            f"{where}: port name {request.ingress_port_name!r} is not SWITCH-ethN, such as s1-eth1"
        )
    return int(match["port"])


def _agreed(host: HostConfig, port: int | None, mac: str, where: str) -> tuple[int, str]:
    if port is not None and port != host.port:
        raise InvalidJobError(
            f"{where} says port {port}, but {host.name} ({host.address}) is at port {host.port}"
        )
    if mac and mac != host.mac:
        raise InvalidJobError(
            f"{where} says mac {mac}, but {host.name} ({host.address}) has {host.mac} in the "
            "controller's file; correct that, or state neither port nor MAC address there: a host "
            "that is listed needs none, and one behind a router has the router's"
        )
    return host.port, host.mac
