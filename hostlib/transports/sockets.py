# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""UDP sockets with buffers and errors as the transports want them."""

from __future__ import annotations

import errno
import socket

from ..errors import AddressUnreachableError, PortTakenError, TransportError
from .frames import ECN_CAPABLE

BUFFER_BYTES = 4 << 20
"""Asked for in both directions; the kernel may grant less (net.core.rmem_max)."""
IP_MTU_DISCOVER = 10
IP_PMTUDISC_PROBE = 3
"""Never fragment, and go by the interface's MTU alone. Anybody may claim in an ICMP message that
the path has a smaller one; the kernel would believe that for ten minutes."""
SO_SNDBUFFORCE = 32
SO_RCVBUFFORCE = 33


def open_udp(address: str, udp_port: int) -> socket.socket:
    """Return a UDP socket bound to the address, datagrams never fragmented, buffers large.

    Raises PortTakenError, AddressUnreachableError (not an address of this host) or TransportError.
    """
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    try:
        set_datagram_options(sock)
        sock.bind((address, udp_port))
    except OSError as error:
        sock.close()
        raise _bind_error(error, address, udp_port) from error
    return sock


def set_datagram_options(sock: socket.socket) -> None:
    """Have datagrams never fragmented and able to be marked, and buffers large."""
    sock.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE)
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, ECN_CAPABLE)
    enlarge_buffers(sock)


def enlarge_buffers(sock: socket.socket) -> None:
    """Ask for BUFFER_BYTES in both directions, beyond the kernel's limits where that is allowed."""
    for forced, plain in (
        (SO_RCVBUFFORCE, socket.SO_RCVBUF),
        (SO_SNDBUFFORCE, socket.SO_SNDBUF),
    ):
        try:
            sock.setsockopt(socket.SOL_SOCKET, forced, BUFFER_BYTES)
        except PermissionError:
            sock.setsockopt(socket.SOL_SOCKET, plain, BUFFER_BYTES)


def connect_udp(sock: socket.socket, address: str, udp_port: int) -> None:
    """Connect the socket; raises AddressUnreachableError when there is no route."""
    try:
        sock.connect((address, udp_port))
    except OSError as error:
        raise AddressUnreachableError(
            f"no route to {address}:{udp_port}, the service address of the switch, from"
            f" {sock.getsockname()[0]} ({error.strerror}); give the switch a free address of this"
            " host's network: service_address in the controller's file, or `controller run"
            " --service-address`; or add a route: ip route add"
            f" {address} dev INTERFACE"
        ) from error


def _bind_error(error: OSError, address: str, udp_port: int) -> TransportError:
    place = f"{address}:{udp_port}"
    if error.errno == errno.EADDRINUSE:
        return PortTakenError(
            f"UDP port {place} is taken by another socket; choose another port, or end the worker"
            " that holds it"
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return AddressUnreachableError(
            f"{address} is no address of this host; see 'ip addr' in this network namespace"
        )
    return TransportError(f"cannot bind UDP {place}: {error.strerror}")
