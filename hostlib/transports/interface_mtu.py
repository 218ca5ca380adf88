# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Whether datagrams of one size fit the interface that they leave by.

The interface's own MTU decides, and nothing else: what ICMP says about the path may be forged by
anybody who guesses the ports, so the sockets ignore it (IP_PMTUDISC_PROBE).
"""

from __future__ import annotations

import fcntl
import socket
import struct

from ..errors import MtuTooSmallError
from ..slots.wire import IPV4_BYTES, UDP_BYTES, datagram_bytes
from .segmentation import interface_of

SIOCGIFFLAGS = 0x8913
SIOCGIFMTU = 0x8921
IFF_LOOPBACK = 0x8
ETHERNET_MTU = 1500
NARROW_VALUES, WIDE_VALUES = 32, 352
UNKNOWN_LIMIT = 100
"""Refusals in a row that are believed where the interface is not known: each forged message causes
one, so that many in a row are no forgery."""


def packet_bytes(payload_bytes: int) -> int:
    """Return the size of the IPv4 packet around a UDP payload."""
    return IPV4_BYTES + UDP_BYTES + payload_bytes


def check_mtu(sock: socket.socket, payload_bytes: int, refusals: int = 0) -> None:
    """Raise MtuTooSmallError unless the interface of the socket's own address carries the payload.

    An address of the loopback interface does not tell which interface its packets leave by; then
    `refusals`, how often in a row the kernel refused the size, decides.
    """
    address = str(sock.getsockname()[0])
    interface = interface_of(sock, address)
    if interface is not None and not _is_loopback_for_others(sock, interface, address):
        check_interface_mtu(sock, interface, payload_bytes)
    elif refusals >= UNKNOWN_LIMIT:
        raise MtuTooSmallError(
            f"the interface by which {address} sends carries less than the"
            f" {packet_bytes(payload_bytes)} bytes of a packet to the switch; find it with"
            f" 'ip route get', and {_advice('INTERFACE', payload_bytes)}"
        )


def check_interface_mtu(sock: socket.socket, interface: str, payload_bytes: int) -> None:
    """Raise MtuTooSmallError unless an interface carries UDP payloads of this size."""
    needed = packet_bytes(payload_bytes)
    mtu = _request(sock, SIOCGIFMTU, interface, "i")
    if mtu < needed:
        raise MtuTooSmallError(
            f"interface {interface} has an MTU of {mtu} bytes and the packets to the switch have"
            f" {needed}; {_advice(interface, payload_bytes)}"
        )


def _advice(interface: str, payload_bytes: int) -> str:
    mtu = max(ETHERNET_MTU, packet_bytes(payload_bytes))
    advice = f"run 'ip link set dev {interface} mtu {mtu}'"
    if payload_bytes != datagram_bytes(WIDE_VALUES):
        return advice
    narrow = packet_bytes(datagram_bytes(NARROW_VALUES))
    return f"{advice}, or load the narrow program, whose packets have {narrow} bytes"


def _is_loopback_for_others(sock: socket.socket, interface: str, address: str) -> bool:
    flags = _request(sock, SIOCGIFFLAGS, interface, "h")
    return bool(flags & IFF_LOOPBACK) and not address.startswith("127.")


def _request(sock: socket.socket, request: int, interface: str, kind: str) -> int:
    answer = fcntl.ioctl(sock.fileno(), request, struct.pack("40s", interface.encode()[:15]))
    return int(struct.unpack_from(kind, answer, 16)[0])
