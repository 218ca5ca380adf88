# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Whole frames inside UDP datagrams on loopback, for softswitch's udp ports; no privileges."""

from __future__ import annotations

from collections import Counter
from typing import final

from ..control.view import Endpoint
from ..errors import TransportError
from ..native.structures import LAYERS_BYTES
from .frames import frames_between
from .interface_mtu import check_mtu
from .kernel import KernelTransport
from .sockets import connect_udp, open_udp
from .strangers import PortCounts


@final
class TunnelTransport(KernelTransport):
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
        sock = open_udp(*bind_address)
        try:
            connect_udp(sock, *port_address)
            self._port_counts = PortCounts(sock)
        except TransportError:
            sock.close()
            raise
        place = f"tunnel of {local.address}"
        super().__init__(sock, local, title="tunnel transport", place=place)
        self._frame_bytes = 0

    @property
    def cable_address(self) -> tuple[str, int]:
        """Where this end of the cable is bound: the peer of the switch's port."""
        host, port = self._socket.socket.getsockname()
        return host, port

    def open(self, remote: Endpoint, datagram_bytes: int) -> None:
        """Prepare frames to and from `remote`.

        Raises MtuTooSmallError where the cable's interface does not carry the frames.
        """
        frames = frames_between(self._local, remote, datagram_bytes)
        check_mtu(self._socket.socket, LAYERS_BYTES + datagram_bytes)
        self._frame_bytes = LAYERS_BYTES + datagram_bytes
        self._socket.open(datagram_bytes, frames)

    def _check_size(self, refusals: int) -> None:
        check_mtu(self._socket.socket, self._frame_bytes, refusals)

    def _port_counters(self) -> Counter[str]:
        return self._port_counts.counters

    def close(self) -> None:
        """Close the socket."""
        self._port_counts.close()
        super().close()
