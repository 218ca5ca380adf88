# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Plain UDP sockets: works everywhere, needs no privileges."""

from __future__ import annotations

from collections import Counter
from typing import final

from ..control.view import Endpoint
from ..errors import TransportClosedError, TransportError
from ..native.transports import SocketTransport
from .base import Datagrams
from .interface_mtu import check_mtu
from .sockets import connect_udp, open_udp
from .strangers import PortCounts


@final
class UdpTransport:
    """Transport over a UDP socket that is connected to the switch's address.

    The kernel builds the frames and checks the checksums. `address` is this host's on the link to
    the switch; port 0 takes any free port.
    """

    def __init__(self, address: str, udp_port: int = 0) -> None:
        sock = open_udp(address, udp_port)
        self._local = Endpoint(address=address, udp_port=sock.getsockname()[1])
        self._socket = SocketTransport(sock)
        self._port_counts: PortCounts | None = None
        self._datagram_bytes = 0
        self._is_closed = False

    @property
    def local(self) -> Endpoint:
        """This worker's end; the MAC address is the kernel's business."""
        return self._local

    @property
    def handle(self) -> int:
        """The C library's transport."""
        return self._socket.handle

    @property
    def counters(self) -> Counter[str]:
        """Datagrams dropped or held up here, by cause."""
        counters = +self._socket.counters
        return counters + self._port_counts.counters if self._port_counts else counters

    def open(self, remote: Endpoint, datagram_bytes: int) -> None:
        """Connect to the switch; only its datagrams are received from now on.

        Raises MtuTooSmallError where the interface does not carry the datagrams.
        """
        check_mtu(self._socket.socket, datagram_bytes)
        connect_udp(self._socket.socket, remote.address, remote.udp_port)
        if self._port_counts is None:
            self._port_counts = PortCounts(self._socket.socket)
        self._datagram_bytes = datagram_bytes
        self._socket.open(datagram_bytes)

    def send(self, datagrams: Datagrams) -> int:
        """Send rows in order; return how many the kernel took."""
        try:
            sent = self._socket.send(datagrams)
        except OSError as error:
            raise self._translated(error) from error
        if sent < len(datagrams):
            self.check_refusals()
        return sent

    def check_refusals(self) -> None:
        """Raise MtuTooSmallError if the interface does not carry the datagrams any more."""
        if self._socket.too_long_in_a_row:
            refusals = self._socket.too_long_in_a_row
            check_mtu(self._socket.socket, self._datagram_bytes, refusals)

    def receive(self, out: Datagrams, timeout_s: float) -> int:
        """Fill rows with datagrams of the right size; return how many."""
        try:
            return self._socket.receive(out, timeout_s)
        except OSError as error:
            raise self._translated(error) from error

    def raise_failure(self, number: int) -> None:
        """Raise the error for a negative result of the C library."""
        try:
            self._socket.raise_failure(number)
        except OSError as error:
            raise self._translated(error) from error

    def _translated(self, error: OSError) -> TransportError:
        if self._is_closed:
            return TransportClosedError("the UDP transport was closed")
        return TransportError(f"UDP socket of {self._local.address}: {error.strerror}")

    def wake(self) -> None:
        """Make a waiting `receive` return."""
        if not self._is_closed:
            self._socket.wake()

    def close(self) -> None:
        """Close the socket."""
        self._is_closed = True
        if self._port_counts is not None:
            self._port_counts.close()
        self._socket.close()
