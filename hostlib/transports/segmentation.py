# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Whether super-frames, frames of several datagrams, leave this host as single frames.

The kernel cuts a super-frame as late as it can. An interface without hardware behind it (veth,
bridge) that computes checksums "in hardware" passes it on uncut, its checksum not finished. A
switch at the other end must then do both, as softswitch does. BMv2 does neither. Where the
interface computes no checksums, the kernel cuts and finishes before it.

So a packet socket sends super-frames over such an interface only after the switch itself has sent a
frame with an unfinished checksum. An interface with GRO joins single frames to such a frame by
itself, so that its frames say nothing about the switch.

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
ETHTOOL_GGRO = 0x2B
_IFREQ_BYTES = 40
_MAX_INTERFACES = 256


def cuts_super_frames(sock: socket.socket, interface: str) -> bool:
    """Return whether an interface is known to send super-frames as single, complete frames."""
    if _is_network_card(sock, interface):
        return True  # it cuts, or the kernel does before it
    return not _has_feature(sock, interface, ETHTOOL_GTXCSUM)


def joins_received_frames(sock: socket.socket, interface: str) -> bool:
    """Return whether an interface may join received frames to super-frames (GRO)."""
    return _has_feature(sock, interface, ETHTOOL_GGRO)


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


def _has_feature(sock: socket.socket, interface: str, command: int) -> bool:
    """Return whether an offload is on; an interface that does not tell may have it."""
    value = ctypes.create_string_buffer(struct.pack("II", command, 0), 8)
    request = struct.pack("16sP16x", interface.encode(), ctypes.addressof(value))
    try:
        fcntl.ioctl(sock.fileno(), SIOCETHTOOL, request)
    except OSError:
        return True
    return struct.unpack("II", value.raw)[1] != 0
