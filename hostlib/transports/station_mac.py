# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The MAC address that a worker behind a kernel's socket tells a controller."""

from __future__ import annotations

import fcntl
import socket
import struct
from dataclasses import replace

from ..control.view import UNKNOWN_MAC, Endpoint
from .packet_socket import SIOCGIFHWADDR
from .segmentation import interface_of


def stated_station(local: Endpoint, ingress_port: int | str) -> Endpoint:
    """Return a worker's end with what a controller needs that does not list its host.

    That is a worker which names its switch port. Others leave the MAC address to the controller's
    file, which may have a router's there.
    """
    if not ingress_port or local.mac != UNKNOWN_MAC:
        return local
    return replace(local, mac=station_mac(local.address))


def station_mac(address: str) -> str:
    """Return the MAC address of the interface that has an IPv4 address, such as 02:00:00:00:00:01.

    UNKNOWN_MAC if no interface of this network namespace has it, or one without a MAC address.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        interface = interface_of(sock, address)
        if interface is None:
            return UNKNOWN_MAC
        answer = fcntl.ioctl(sock.fileno(), SIOCGIFHWADDR, struct.pack("40s", interface.encode()))
        return answer[18:24].hex(":")
