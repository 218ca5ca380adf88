# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Packet sockets (AF_PACKET): whole frames from and to one network interface."""

from __future__ import annotations

import errno
import fcntl
import socket
import struct
from collections.abc import Generator
from contextlib import contextmanager

from ..errors import InterfaceMissingError, TransportError, TransportPermissionError
from .packet_filter import DROP_ALL, ETH_P_IP, attach_filter
from .sockets import enlarge_buffers

SOL_PACKET = 263
PACKET_STATISTICS = 6
PACKET_VNET_HDR = 15
PACKET_IGNORE_OUTGOING = 23
SIOCGIFADDR = 0x8915
SIOCGIFHWADDR = 0x8927
_STATISTICS = struct.Struct("II")
"""struct tpacket_stats: packets, drops."""


def open_packet_socket(interface: str) -> socket.socket:
    """Return a packet socket that is not bound, and lets nothing in before it has another filter.

    Raises TransportPermissionError without CAP_NET_RAW.
    """
    try:
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, 0)
    except PermissionError as error:
        raise TransportPermissionError(
            f"packet sockets on {interface} need root or CAP_NET_RAW; run as root, or use the udp"
            " transport, which needs no privileges"
        ) from error
    attach_filter(sock, DROP_ALL)
    enlarge_buffers(sock)
    return sock


def bind_packet_socket(sock: socket.socket, interface: str) -> bool:
    """Let the socket receive the IPv4 frames that arrive at an interface.

    Returns whether each frame has a virtio_net_hdr in front, which says what is left to do. Raises
    InterfaceMissingError or TransportError.
    """
    with _interface_errors(interface):
        sock.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        has_offload_header = _ask_for_offload_header(sock)
        sock.bind((interface, ETH_P_IP))
    return has_offload_header


def _ask_for_offload_header(sock: socket.socket) -> bool:
    try:
        sock.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    except OSError as error:
        if error.errno not in (errno.ENOPROTOOPT, errno.EINVAL):
            raise
        return False
    return True


def dropped_frames(sock: socket.socket) -> int:
    """Return how many frames found no room since the last call."""
    answer = sock.getsockopt(SOL_PACKET, PACKET_STATISTICS, _STATISTICS.size)
    return _STATISTICS.unpack(answer)[1]


def interface_addresses(sock: socket.socket, interface: str) -> tuple[str, str]:
    """Return (MAC address, IPv4 address) of an interface; raises InterfaceMissingError."""
    request = struct.pack("256s", interface.encode()[:15])
    with _interface_errors(interface):
        mac = fcntl.ioctl(sock.fileno(), SIOCGIFHWADDR, request)[18:24]
    try:
        address = fcntl.ioctl(sock.fileno(), SIOCGIFADDR, request)[20:24]
    except OSError as error:
        raise InterfaceMissingError(
            f"interface {interface} has no IPv4 address; give it one"
        ) from error
    return ":".join(f"{byte:02x}" for byte in mac), socket.inet_ntoa(address)


@contextmanager
def _interface_errors(interface: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENODEV, errno.ENXIO):
            raise InterfaceMissingError(
                f"no network interface {interface!r} in this network namespace; see 'ip link'"
            ) from error
        raise TransportError(f"interface {interface}: {error.strerror}") from error
