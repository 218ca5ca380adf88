# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Whole frames inside UDP datagrams on loopback, for softswitch's udp ports; no privileges."""

from __future__ import annotations

from collections import Counter
from typing import final

import numpy as np
from numpy.typing import NDArray

from ..control.view import Endpoint
from ..errors import TransportClosedError, TransportError
from .base import Datagrams
from .batch_socket import BatchSocket
from .frame_sender import FrameSender
from .frames import FrameCodec
from .interface_mtu import check_mtu
from .sockets import connect_udp, open_udp
from .strangers import PortCounts


@final
class TunnelTransport:
    """Transport to a switch port that is a UDP socket.

    `local` is the worker's address inside the frames; `port_address` is where the switch port
    listens, and `bind_address` where this end of the cable does (port 0: any).
    """

    def __init__(
        self,
        local: Endpoint,
        *,
        port_address: tuple[str, int],
        bind_address: tuple[str, int] = ("127.0.0.1", 0),
    ) -> None:
        self._local = local
        sock = open_udp(*bind_address)
        self._batch = BatchSocket(sock)
        try:
            connect_udp(sock, *port_address)
            self._port_counts = PortCounts(sock)
        except TransportError:
            self._batch.close()
            raise
        self._counters: Counter[str] = Counter()
        self._is_closed = False

    @property
    def local(self) -> Endpoint:
        """This worker's end, inside the frames."""
        return self._local

    @property
    def cable_address(self) -> tuple[str, int]:
        """Where this end of the cable is bound: the peer of the switch's port."""
        host, port = self._batch.socket.getsockname()
        return host, port

    @property
    def counters(self) -> Counter[str]:
        """Frames dropped or held up here, by cause."""
        return self._counters + self._batch.counters + self._port_counts.counters

    def open(self, remote: Endpoint, datagram_bytes: int) -> None:
        """Prepare frames to and from `remote`.

        Raises MtuTooSmallError where the cable's interface does not carry the frames.
        """
        self._codec = FrameCodec(self._local, remote, datagram_bytes)
        check_mtu(self._batch.socket, self._codec.frame_bytes)
        self._sender = FrameSender(self._batch, self._codec)
        self._in: NDArray[np.uint8] = np.empty((0, self._codec.frame_bytes), np.uint8)

    def send(self, datagrams: Datagrams) -> int:
        """Send rows in order as frames; return how many the kernel took."""
        try:
            sent = self._sender.send(datagrams)
        except OSError as error:
            raise self._translated(error) from error
        if sent < len(datagrams) and self._batch.too_long_in_a_row:
            refusals = self._batch.too_long_in_a_row
            check_mtu(self._batch.socket, self._codec.frame_bytes, refusals)
        return sent

    def receive(self, out: Datagrams, timeout_s: float) -> int:
        """Fill rows with the datagrams of good frames; return how many."""
        if len(self._in) != len(out):
            self._in = np.empty((len(out), self._codec.frame_bytes), np.uint8)
        try:
            received = self._batch.receive(self._in, timeout_s)
        except OSError as error:
            raise self._translated(error) from error
        if received is None:
            return 0
        # A longer frame than its row shows by its truncation flag.
        lengths = received[0].astype(np.int32) + (received[1] != 0)
        return self._codec.unwrap(self._in[: len(lengths)], lengths, out, self._counters)

    def _translated(self, error: OSError) -> TransportError:
        if self._is_closed:
            return TransportClosedError("the tunnel transport was closed")
        return TransportError(f"tunnel of {self._local.address}: {error.strerror}")

    def wake(self) -> None:
        """Make a waiting `receive` return."""
        if not self._is_closed:
            self._batch.wake()

    def close(self) -> None:
        """Close the socket."""
        self._is_closed = True
        self._port_counts.close()
        self._batch.close()
