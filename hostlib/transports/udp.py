# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Plain UDP sockets: works everywhere, needs no privileges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import final

from ..control.view import UNKNOWN_MAC, Endpoint
from ..errors import TransportError
from ..native.structures import MAX_SOCKETS
from .interface_mtu import check_mtu
from .kernel import KernelTransport
from .sockets import connect_udp, open_udp
from .strangers import PortCounts


@final
class UdpTransport(KernelTransport):
    """Transport over a UDP socket that is connected to the switch's address, or over one for each.

    The kernel builds the frames and checks the checksums. `address` is this host's on the link to
    the switch; port 0 takes any free port. A `mac` is only told to the controller, which needs it
    of a host that it does not list; without one, `Session.join` looks for it.
    """

    def __init__(self, address: str, udp_port: int = 0, *, mac: str = UNKNOWN_MAC) -> None:
        sock = open_udp(address, udp_port)
        local = Endpoint(address=address, udp_port=sock.getsockname()[1], mac=mac)
        super().__init__(sock, local, title="UDP transport", place=f"UDP socket of {address}")
        self._port_counts: PortCounts | None = None
        self._datagram_bytes = 0

    def open(self, remote: Endpoint, datagram_bytes: int) -> None:
        """Connect to the switch; only its datagrams are received from now on.

        Raises MtuTooSmallError where the interface does not carry the datagrams.
        """
        self._open([remote], {}, datagram_bytes)

    def open_trees(self, roots: Mapping[int, Endpoint], datagram_bytes: int) -> None:
        """Connect to the switches of trees; see `TreesTransport`."""
        remotes = list(dict.fromkeys(roots.values()))
        if len(remotes) > MAX_SOCKETS:
            raise TransportError(
                f"the job's trees have {len(remotes)} roots; a UDP transport reaches at most"
                f" {MAX_SOCKETS}"
            )
        places = {tree_id: remotes.index(root) for tree_id, root in roots.items()}
        self._open(remotes, places, datagram_bytes)

    def _open(
        self, remotes: Sequence[Endpoint], places: Mapping[int, int], datagram_bytes: int
    ) -> None:
        first, *others = remotes
        sock = self._socket.socket
        check_mtu(sock, datagram_bytes)
        connect_udp(sock, first.address, first.udp_port)
        if self._port_counts is None:
            self._port_counts = PortCounts(sock)
        self._socket.route(self._port_counts.open_more(others), places)
        self._datagram_bytes = datagram_bytes
        self._socket.open(datagram_bytes)

    def _check_size(self, refusals: int) -> None:
        check_mtu(self._socket.socket, self._datagram_bytes, refusals)

    def _port_counters(self) -> Counter[str]:
        return self._port_counts.counters if self._port_counts else Counter()

    def close(self) -> None:
        """Close the socket."""
        if self._port_counts is not None:
            self._port_counts.close()
        super().close()
