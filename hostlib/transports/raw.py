# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Packet sockets: the C library builds and checks whole frames. Needs CAP_NET_RAW."""

from __future__ import annotations

import errno
import socket
from collections import Counter
from typing import final

from ..control.view import Endpoint
from ..errors import AddressUnreachableError, TransportClosedError, TransportError
from ..native.structures import PacketLinkStruct
from ..native.transports import Joining
from .base import Datagrams
from .frames import frames_between
from .interface_mtu import check_interface_mtu
from .kernel import KernelTransport
from .packet_filter import DROP_ALL, attach_filter, results_filter
from .packet_socket import (
    bind_packet_socket,
    dropped_frames,
    interface_addresses,
    open_packet_socket,
)
from .segmentation import cuts_super_frames, joins_for_routers
from .sockets import connect_udp, open_udp
from .strangers import dropped_datagrams, open_on_same_port

UDP_GRO = 104


@final
class RawTransport(KernelTransport):
    """Transport over one network interface, past the kernel's UDP.

    The UDP port is still reserved with a socket of its own: so that no other program gets it, and
    so that the kernel does not answer results with "port unreachable".
    """

    def __init__(self, interface: str, udp_port: int = 0) -> None:
        sock = open_packet_socket(interface)
        try:
            mac, address = interface_addresses(sock, interface)
            self._reservation = open_udp(address, udp_port)
        except TransportError:
            sock.close()
            raise
        attach_filter(self._reservation, DROP_ALL)
        port = self._reservation.getsockname()[1]
        local = Endpoint(address=address, udp_port=port, mac=mac)
        title, place = f"raw transport on {interface}", f"packet socket on {interface}"
        super().__init__(sock, local, title=title, place=place)
        self._interface = interface
        self._is_open = False
        self._has_offload_header = False
        self._is_learning = False
        self._datagram_bytes = 0
        self._counted: Counter[str] = Counter()
        self._results: socket.socket | None = None

    def _port_counters(self) -> Counter[str]:
        if not self._is_closed:
            if self._is_open:
                self._counted["overflow"] += dropped_frames(self._socket.socket)
            if self._results is not None:
                self._counted["stranger"] = dropped_datagrams(self._reservation)
        return self._counted

    def open(self, remote: Endpoint, datagram_bytes: int) -> None:
        """Prepare frames to and from `remote`, whose MAC address is needed.

        Another call changes the remote end. Raises MtuTooSmallError where the interface does not
        carry the frames, and InterfaceMissingError.
        """
        sock = self._socket.socket
        check_interface_mtu(sock, self._interface, datagram_bytes)
        frames = frames_between(self._local, remote, datagram_bytes)
        attach_filter(sock, results_filter(remote.udp_port, self._local.udp_port))
        self._tell_results_apart(remote)
        if not self._is_open:
            self._has_offload_header = bind_packet_socket(sock, self._interface)
            self._is_open = True
        self._datagram_bytes = datagram_bytes
        joining = self._joining()
        self._let_kernel_join(is_on=joining == Joining.ALWAYS)
        self._is_learning = joining == Joining.LIKE_PEER
        link = PacketLinkStruct(
            interface=self._interface.encode(),
            has_offload_header=self._has_offload_header,
            join=joining,
        )
        self._socket.open_packets(frames, link)

    def _joining(self) -> Joining:
        """Return when to send super-frames; see segmentation.py."""
        sock = self._socket.socket
        if not self._has_offload_header:
            return Joining.NEVER
        if cuts_super_frames(sock, self._interface):
            return Joining.ALWAYS
        if joins_for_routers(sock, self._interface):
            return Joining.NEVER
        return Joining.LIKE_PEER

    def _tell_results_apart(self, remote: Endpoint) -> None:
        """Connect a socket to the switch, so that the reservation's drops are strangers' alone.

        Without a route to the switch, which packet sockets do not need, strangers are not counted.
        """
        if self._results is None:
            self._results = open_on_same_port(self._reservation)
        try:
            connect_udp(self._results, remote.address, remote.udp_port)
        except AddressUnreachableError:
            self._results.close()
            self._results = None

    def _let_kernel_join(self, *, is_on: bool) -> None:
        """Let GRO join the switch's datagrams, and the kernel drop its own copies uncut.

        The UDP socket that datagrams are for decides. Else the kernel would cut super-frames for
        that socket, only to drop them.
        """
        if self._results is None:
            return
        try:
            self._results.setsockopt(socket.SOL_UDP, UDP_GRO, is_on)
        except OSError as error:
            if error.errno != errno.ENOPROTOOPT:  # kernels before 5.0
                raise

    def raise_failure(self, number: int) -> None:
        """Raise the error for a negative result of the C library, as other transports do."""
        super().raise_failure(number)
        if self._is_learning and self._socket.offloads.sent_together > 1:
            self._is_learning = False
            self._let_kernel_join(is_on=True)

    def receive(self, out: Datagrams, timeout_s: float) -> int:
        """Fill rows with the datagrams of good frames; return how many."""
        if not self._is_open:
            raise TransportClosedError(f"the raw transport on {self._interface} is not open")
        return super().receive(out, timeout_s)

    def _check_size(self, refusals: int) -> None:
        check_interface_mtu(self._socket.socket, self._interface, self._datagram_bytes)

    def close(self) -> None:
        """Close the socket and free the port."""
        self._counted = self._port_counters()
        super().close()
        if self._results is not None:
            self._results.close()
            self._results = None
        self._reservation.close()
