# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Makes what a testbed's processes need: certificates, tokens, links and addresses."""

from __future__ import annotations

import os
from typing import Final

from .errors import TestbedError
from .network import links
from .network.network import make_network, namespace_name, negotiate_ecn, reserve_udp_ports
from .processes import daemons
from .processes.certificates import make_certificates
from .processes.tokens import draw_tokens
from .state import Record

_MAX_UNIX_PATH_BYTES: Final = 107


def make_secrets(record: Record, *, has_switch: bool, has_controller: bool) -> None:
    """Make certificates and tokens; TestbedError where the run directory's path is too long."""
    addresses = [
        daemons.controller_address(record.directory),
        *(daemons.switch_address(record.directory, switch) for switch in record.topology.switches),
    ]
    for address in addresses:
        if len(os.fsencode(address.removeprefix("unix:"))) > _MAX_UNIX_PATH_BYTES:
            raise TestbedError(f"{record.directory} is too long for sockets; use --name")
    if has_switch:
        names = [switch.name for switch in record.topology.switches]
        make_certificates(record.directory, names, has_controller=has_controller)
    if has_controller:
        draw_tokens(record.directory)


def make_links(
    record: Record, *, udp_base_port: int | None, tcp_ecn: bool, has_bridge: bool
) -> None:
    """Make namespaces and links, or reserve UDP ports; then the bridge, if there is to be one."""
    if record.mode == "udp":
        reserve_udp_ports(record, udp_base_port)
        return
    make_network(record)
    if tcp_ecn:
        negotiate_ecn(record)
    if has_bridge:
        (switch,) = record.topology.switches
        namespace = namespace_name(record.name, switch)
        links.create_bridge(record.topology, switch, switch_namespace=namespace)
