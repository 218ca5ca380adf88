# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Whether super-frames, frames of several datagrams, leave this host as single frames.

The kernel cuts a super-frame as late as it can. An interface without hardware behind it (veth,
bridge) that computes checksums "in hardware" passes it on uncut, its checksum not finished. A
switch at the other end must then do both, as softswitch does. BMv2 does neither. Where the
interface computes no checksums, the kernel cuts and finishes before it.

So a packet socket sends super-frames over such an interface only after the switch itself has sent a
frame with an unfinished checksum. The kernel joins single frames to such a frame by itself (GRO)
only for a UDP socket that asks for it, or where somebody has turned on one of two features for
routers. There, received frames say nothing about the switch.

UDP sockets need no such care: the kernel leaves the checksum of each of their datagrams to the
interface, so a switch that finishes none drops them all in any case.
"""

from __future__ import annotations

import ctypes
import fcntl
import socket
import struct
from pathlib import Path

SIOCGIFCONF = 0x8912
SIOCGIFHWADDR = 0x8927
SIOCETHTOOL = 0x8946
ETHTOOL_GTXCSUM = 0x16
ETHTOOL_GSTRINGS = 0x1B
ETHTOOL_GSSET_INFO = 0x37
ETHTOOL_GFEATURES = 0x3A
ETH_SS_FEATURES = 4
ROUTER_FEATURES = frozenset({"rx-gro-list", "rx-udp-gro-forwarding"})
_IFREQ_BYTES = 40
_MAX_INTERFACES = 256


def cuts_super_frames(sock: socket.socket, interface: str) -> bool:
    """Return whether an interface is known to send super-frames as single, complete frames."""
    if _is_network_card(sock, interface):
        return True  # it cuts, or the kernel does before it
    return not _computes_checksums(sock, interface)


def joins_for_routers(sock: socket.socket, interface: str) -> bool:
    """Return whether an interface may join received datagrams that no socket wants joined."""
    return not ROUTER_FEATURES.isdisjoint(_active_features(sock, interface))


def interface_of(sock: socket.socket, address: str) -> str | None:
    """Return the name of the interface that has an address, in the socket's own namespace."""
    buffer = ctypes.create_string_buffer(_IFREQ_BYTES * _MAX_INTERFACES)
    request = struct.pack("iL", len(buffer), ctypes.addressof(buffer))
    size = struct.unpack("iL", fcntl.ioctl(sock.fileno(), SIOCGIFCONF, request))[0]
    wanted = socket.inet_aton(address)
    for start in range(0, size, _IFREQ_BYTES):
        entry = buffer.raw[start : start + _IFREQ_BYTES]
        if entry[20:24] == wanted:
            label = entry[:16].partition(b"\0")[0].decode()
            return label.partition(":")[0]  # an address may have a label of its own: eth0:1
    return None


def _is_network_card(sock: socket.socket, interface: str) -> bool:
    folder = Path("/sys/class/net") / interface
    if not (folder / "device").exists():
        return False
    # A thread that entered a namespace may see another one's /sys.
    request = struct.pack("40s", interface.encode())
    mac = fcntl.ioctl(sock.fileno(), SIOCGIFHWADDR, request)[18:24]
    return (folder / "address").read_text().strip() == mac.hex(":")


def _computes_checksums(sock: socket.socket, interface: str) -> bool:
    answer = _ethtool(sock, interface, struct.pack("II", ETHTOOL_GTXCSUM, 0))
    # An interface that does not tell may compute them.
    return answer is None or struct.unpack("II", answer)[1] != 0


def _active_features(sock: socket.socket, interface: str) -> frozenset[str]:
    request = struct.pack("IIQI", ETHTOOL_GSSET_INFO, 0, 1 << ETH_SS_FEATURES, 0)
    answer = _ethtool(sock, interface, request)
    count: int = 0 if answer is None else struct.unpack("IIQI", answer)[3]
    names = struct.pack("III", ETHTOOL_GSTRINGS, ETH_SS_FEATURES, count) + bytes(32 * count)
    named = _ethtool(sock, interface, names)
    blocks = -(-count // 32)
    bits = struct.pack("II", ETHTOOL_GFEATURES, blocks) + bytes(16 * blocks)
    states = _ethtool(sock, interface, bits)
    if named is None or states is None:
        return frozenset()
    active = [struct.unpack_from("I", states, 16 + 16 * block)[0] for block in range(blocks)]
    return frozenset(
        named[12 + 32 * i : 44 + 32 * i].partition(b"\0")[0].decode()
        for i in range(count)
        if active[i // 32] >> i % 32 & 1
    )


def _ethtool(sock: socket.socket, interface: str, request: bytes) -> bytes | None:
    """Return the kernel's answer to an ethtool request, or None if it has none."""
    value = ctypes.create_string_buffer(request, len(request))
    pointer = struct.pack("16sP16x", interface.encode(), ctypes.addressof(value))
    try:
        fcntl.ioctl(sock.fileno(), SIOCETHTOOL, pointer)
    except OSError:
        return None
    return value.raw
