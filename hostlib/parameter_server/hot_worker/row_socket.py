# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The UDP socket of a worker to its switch, in an event loop."""

from __future__ import annotations

import selectors
import socket
from collections import deque
from collections.abc import Callable
from typing import Final, final

import numpy as np

from ...control.view import Endpoint
from ...errors import TransportError
from ...native.structures import BATCH
from ...peers.event_loop import EventLoop
from ...transports.base import Datagrams
from ...transports.sockets import connect_udp
from ...transports.udp import UdpTransport

_BOTH: Final = selectors.EVENT_READ | selectors.EVENT_WRITE
_MOST_BACKLOG_BYTES: Final = 16 << 20
"""Datagrams that wait for the kernel; further ones are lost, and come again by their timers."""


def local_address(switch: Endpoint) -> str:
    """Return this host's address on the route to a switch. Raises AddressUnreachableError."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        connect_udp(sock, switch.address, switch.udp_port)
        return sock.getsockname()[0]


@final
class RowSocket:
    """Runs in the loop's thread. Raises a TransportError if the switch cannot be reached.

    `take` gets batches of datagrams, in memory that is used again. `lost` learns that the socket
    failed, and is closed.
    """

    def __init__(
        self,
        loop: EventLoop,
        switch: Endpoint,
        datagram_bytes: int,
        *,
        address: str | None,
        take: Callable[[Datagrams], None],
        lost: Callable[[TransportError], None],
    ) -> None:
        self.switch = switch
        self.datagram_bytes = datagram_bytes
        self.arrived_ns = 0
        """When the datagrams at hand had arrived, at the latest: `Connection.arrived_ns`."""
        self._loop = loop
        self._take, self._lost = take, lost
        self._room: Datagrams = np.empty((BATCH, datagram_bytes), np.uint8)
        self._backlog: deque[Datagrams] = deque()
        self._backlog_bytes = 0
        self._is_closed = False
        self._transport = UdpTransport(address or local_address(switch))
        try:
            self._transport.open(switch, datagram_bytes)
        except TransportError:
            self._transport.close()
            raise
        self._loop.watch(self._transport.kernel_socket, selectors.EVENT_READ, self)

    def send(self, datagrams: Datagrams) -> None:
        """Send datagrams in order, soon; their memory may change after the call."""
        if not self._backlog:
            datagrams = datagrams[self._send_some(datagrams) :]
            if not len(datagrams) or self._is_closed:
                return
            self._loop.watch(self._transport.kernel_socket, _BOTH, self)
        if self._backlog_bytes + datagrams.nbytes <= _MOST_BACKLOG_BYTES:
            self._backlog.append(datagrams.copy())
            self._backlog_bytes += datagrams.nbytes

    def on_ready(self, events: int) -> None:
        """Take what has arrived, and send what waits."""
        if events & selectors.EVENT_WRITE:
            self._send_backlog()
        self.arrived_ns = self._loop.turn_ns
        count = BATCH
        while count == BATCH and not self._is_closed:  # what comes later is for the next turn
            count = self._receive()
            if count:
                self._take(self._room[:count])
                self.arrived_ns = self._loop.clock_ns()

    def close(self) -> None:
        """Close the socket; a second call does nothing."""
        if not self._is_closed:
            self._is_closed = True
            self._backlog.clear()
            self._loop.watch(self._transport.kernel_socket, 0, self)
            self._transport.close()

    def _receive(self) -> int:
        """Fill the room with what has arrived; return how many datagrams it holds."""
        try:
            return self._transport.receive(self._room, 0.0)
        except TransportError as error:
            self._fail(error)
            return 0

    def _send_backlog(self) -> None:
        while self._backlog:
            datagrams = self._backlog[0]
            sent = self._send_some(datagrams)
            if self._is_closed:
                return
            self._backlog_bytes -= datagrams[:sent].nbytes
            if sent < len(datagrams):
                self._backlog[0] = datagrams[sent:]
                return
            self._backlog.popleft()
        self._loop.watch(self._transport.kernel_socket, selectors.EVENT_READ, self)

    def _send_some(self, datagrams: Datagrams) -> int:
        if self._is_closed:
            return 0
        try:
            return self._transport.send(datagrams)
        except TransportError as error:
            self._fail(error)
            return 0

    def _fail(self, error: TransportError) -> None:
        self.close()
        self._lost(error)
