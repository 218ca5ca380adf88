# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Plain UDP sockets: works everywhere, needs no privileges."""

from __future__ import annotations

from collections import Counter
from typing import final

import numpy as np

from ..control.view import Endpoint
from ..errors import TransportClosedError, TransportError
from .base import Datagrams
from .batch_socket import MSG_TRUNC, BatchSocket
from .interface_mtu import check_mtu
from .segmentation import sends_own_frames
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
        self._batch = BatchSocket(sock)
        self._counters: Counter[str] = Counter()
        self._port_counts: PortCounts | None = None
        self._datagram_bytes = 0
        self._is_closed = False

    @property
    def local(self) -> Endpoint:
        """This worker's end; the MAC address is the kernel's business."""
        return self._local

    @property
    def counters(self) -> Counter[str]:
        """Datagrams dropped or held up here, by cause."""
        counters = self._counters + self._batch.counters
        return counters + self._port_counts.counters if self._port_counts else counters

    def open(self, remote: Endpoint, datagram_bytes: int) -> None:
        """Connect to the switch; only its datagrams are received from now on.

        Raises MtuTooSmallError where the interface does not carry the datagrams.
        """
        check_mtu(self._batch.socket, datagram_bytes)
        connect_udp(self._batch.socket, remote.address, remote.udp_port)
        if self._port_counts is None:
            self._port_counts = PortCounts(self._batch.socket)
        self._datagram_bytes = datagram_bytes
        if sends_own_frames(self._batch.socket):
            self._batch.cut_messages(datagram_bytes)

    def send(self, datagrams: Datagrams) -> int:
        """Send rows in order; return how many the kernel took."""
        try:
            sent = self._batch.send(datagrams)
        except OSError as error:
            raise self._translated(error) from error
        if sent < len(datagrams) and self._batch.too_long_in_a_row:
            check_mtu(self._batch.socket, self._datagram_bytes, self._batch.too_long_in_a_row)
        return sent

    def receive(self, out: Datagrams, timeout_s: float) -> int:
        """Fill rows with datagrams of the right size; return how many."""
        try:
            received = self._batch.receive(out, timeout_s)
        except OSError as error:
            raise self._translated(error) from error
        if received is None:
            return 0
        lengths, flags = received
        count = len(lengths)
        if not (np.count_nonzero(lengths != self._datagram_bytes) or np.count_nonzero(flags)):
            return count
        is_good = (lengths == self._datagram_bytes) & (flags & np.uint64(MSG_TRUNC) == 0)
        good = np.flatnonzero(is_good)
        self._counters["length"] += count - len(good)
        out[: len(good)] = out[good]
        return len(good)

    def _translated(self, error: OSError) -> TransportError:
        if self._is_closed:
            return TransportClosedError("the UDP transport was closed")
        return TransportError(f"UDP socket of {self._local.address}: {error.strerror}")

    def wake(self) -> None:
        """Make a waiting `receive` return."""
        if not self._is_closed:
            self._batch.wake()

    def close(self) -> None:
        """Close the socket."""
        self._is_closed = True
        if self._port_counts is not None:
            self._port_counts.close()
        self._batch.close()
