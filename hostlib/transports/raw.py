# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Packet sockets: frames built here, received through a shared ring. Needs CAP_NET_RAW."""

from __future__ import annotations

import socket
from collections import Counter
from typing import final

from ..control.view import Endpoint
from ..errors import AddressUnreachableError, TransportClosedError, TransportError
from .base import Datagrams
from .batch_socket import BatchSocket
from .frame_sender import FrameSender
from .frames import FrameCodec
from .interface_mtu import check_interface_mtu
from .packet_filter import DROP_ALL, attach_filter, results_filter
from .packet_ring import (
    PacketRing,
    interface_addresses,
    open_packet_socket,
)
from .sockets import connect_udp, open_udp
from .strangers import dropped_datagrams, open_on_same_port


@final
class RawTransport:
    """Transport over one network interface, past the kernel's UDP.

    The UDP port is still reserved with a socket of its own: so that no other program gets it, and
    so that the kernel does not answer results with "port unreachable".
    """

    def __init__(self, interface: str, udp_port: int = 0) -> None:
        self._interface = interface
        sock = open_packet_socket(interface)
        try:
            mac, address = interface_addresses(sock, interface)
            self._reservation = open_udp(address, udp_port)
        except TransportError:
            sock.close()
            raise
        attach_filter(self._reservation, DROP_ALL)
        # Nothing may come in before `open` has set the real filter.
        attach_filter(sock, DROP_ALL)
        port = self._reservation.getsockname()[1]
        self._local = Endpoint(address=address, udp_port=port, mac=mac)
        self._batch = BatchSocket(sock)
        self._ring: PacketRing | None = None
        self._counters: Counter[str] = Counter()
        self._port_counters: Counter[str] = Counter()
        self._results: socket.socket | None = None
        self._is_closed = False

    @property
    def local(self) -> Endpoint:
        """This worker's end: the interface's addresses and the reserved port."""
        return self._local

    @property
    def counters(self) -> Counter[str]:
        """Frames dropped or held up here, by cause."""
        if not self._is_closed:
            self._port_counters = self._read_port()
        return self._counters + self._batch.counters + self._port_counters

    def _read_port(self) -> Counter[str]:
        counters: Counter[str] = Counter()
        if self._ring is not None:
            counters["overflow"] = self._ring.overflow
        if self._results is not None:
            counters["stranger"] = dropped_datagrams(self._reservation)
        return counters

    def open(self, remote: Endpoint, datagram_bytes: int) -> None:
        """Map the ring and prepare frames to and from `remote`, whose MAC address is needed.

        Another call changes the remote end; the ring stays.
        """
        sock: socket.socket = self._batch.socket
        check_interface_mtu(sock, self._interface, datagram_bytes)
        self._codec = FrameCodec(self._local, remote, datagram_bytes)
        self._sender = FrameSender(self._batch, self._codec)
        attach_filter(sock, results_filter(remote.udp_port, self._local.udp_port))
        self._tell_results_apart(remote)
        if self._ring is None:
            self._ring = PacketRing(sock, self._interface)

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

    def send(self, datagrams: Datagrams) -> int:
        """Send rows in order as frames; return how many the interface took."""
        try:
            sent = self._sender.send(datagrams)
        except OSError as error:
            raise self._translated(error) from error
        if sent < len(datagrams) and self._batch.too_long_in_a_row:
            check_interface_mtu(self._batch.socket, self._interface, self._codec.datagram_bytes)
        return sent

    def receive(self, out: Datagrams, timeout_s: float) -> int:
        """Fill rows with the datagrams of good frames; return how many."""
        ring = self._ring
        if ring is None:
            raise TransportClosedError(f"the raw transport on {self._interface} is not open")
        arrived = ring.peek(len(out))
        if arrived is None and timeout_s > 0 and self._batch.wait(timeout_s):
            arrived = ring.peek(len(out))
        if arrived is None:
            return 0
        frames, lengths = arrived
        count = self._codec.unwrap(frames, lengths, out, self._counters)
        ring.release()
        return count

    def _translated(self, error: OSError) -> TransportError:
        if self._is_closed:
            return TransportClosedError(f"the raw transport on {self._interface} was closed")
        return TransportError(f"packet socket on {self._interface}: {error.strerror}")

    def wake(self) -> None:
        """Make a waiting `receive` return."""
        if not self._is_closed:
            self._batch.wake()

    def close(self) -> None:
        """Unmap the ring, close the socket and free the port."""
        if not self._is_closed:
            self._port_counters = self._read_port()
        self._is_closed = True
        if self._results is not None:
            self._results.close()
            self._results = None
        if self._ring is not None:
            self._ring.close()
            self._ring = None
        self._batch.close()
        self._reservation.close()
