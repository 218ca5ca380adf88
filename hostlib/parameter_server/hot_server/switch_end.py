# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The server's UDP socket to its switch, watched by the server's event loop."""

from __future__ import annotations

import logging
import selectors
import time
from collections import Counter
from collections.abc import Callable
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from ...control.row_server_link import RowView
from ...control.view import Endpoint
from ...errors import TransportError
from ...hot_rows.row_packets import RowPackets
from ...peers.event_loop import EventLoop
from ...transports.base import Datagrams
from ...transports.udp import UdpTransport

_BATCH: Final = 512
"""Datagrams that are taken at a time."""
_PAUSE_S: Final = 0.003
"""Time from one look at the socket to the next: sums that come one by one are taken together."""
_logger = logging.getLogger(__name__)


@final
class SwitchEnd:
    """Sends packets about rows, and takes the answers; all but the constructor in the loop.

    `counters`: hot_unsent (packets that the kernel did not take; all packets are repeated),
    hot_foreign (datagrams of other views or jobs), hot_received.
    """

    def __init__(
        self,
        loop: EventLoop,
        local: tuple[str, int],
        counters: Counter[str],
        on_packets: Callable[[NDArray[np.void]], None],
    ) -> None:
        """`local`: IPv4 address and UDP port. Raises TransportError."""
        self._loop = loop
        self._counters = counters
        self._on_packets = on_packets
        self._transport = UdpTransport(*local)
        self._room = np.empty((0, 0), np.uint8)
        self._asked_s: float | None = None  # since when nothing has come, though it was asked for
        self._packets: RowPackets | None = None

    @property
    def local(self) -> Endpoint:
        """Where the socket is bound."""
        return self._transport.local

    @property
    def silent_s(self) -> float:
        """For how long the switch has not answered."""
        return 0.0 if self._asked_s is None else time.monotonic() - self._asked_s

    @property
    def packets(self) -> RowPackets:
        """Builds packets, while `speaks` is true for a generation."""
        assert self._packets is not None
        return self._packets

    def speaks(self, generation: int) -> bool:
        """Return whether there is a switch in this generation."""
        return self._packets is not None and self._packets.generation == generation

    def open(self, view: RowView) -> None:
        """Speak to the switch of a view from now on. Raises TransportError."""
        packets = RowPackets(
            job_id=view.tree_id,
            generation=view.generation,
            worker_id=view.worker_id,
            worker_bitmap=0,
            num_workers=view.num_workers,
            values_per_packet=view.values_per_packet,
        )
        self._asked_s = None
        self._room = np.empty((_BATCH, packets.datagram_bytes), np.uint8)
        self._transport.open(view.switch, packets.datagram_bytes)
        self._packets = packets
        self._loop.watch(self._transport.kernel_socket, selectors.EVENT_READ, self)

    def forget(self) -> None:
        """Ask for nothing more, so that the switch is not silent."""
        self._asked_s = None

    def shut(self) -> None:
        """Send and take nothing until `open`."""
        self._packets = None
        self._asked_s = None
        self._loop.watch(self._transport.kernel_socket, 0, self)

    def close(self) -> None:
        """Close the socket."""
        self.shut()
        self._transport.close()

    def send(self, datagrams: Datagrams) -> None:
        """Send what the kernel takes; the rest is lost, as on the network."""
        if self._packets is None or not len(datagrams):
            return
        if self._asked_s is None:
            self._asked_s = time.monotonic()
        try:
            sent = self._transport.send(datagrams)
        except TransportError as error:
            _logger.warning("hot rows: %s", error)
            sent = 0
        self._counters["hot_unsent"] += len(datagrams) - sent

    def on_ready(self, events: int) -> None:
        """Take what has come, and then only look at times, until nothing comes any more."""
        self._loop.watch(self._transport.kernel_socket, 0, self)
        self._take_all()

    def _take_all(self) -> None:
        if self._packets is None:
            return
        has_taken = False
        while self._take():
            has_taken = True
        if has_taken:
            self._loop.call_later(_PAUSE_S, self._take_all)
        else:
            self._loop.watch(self._transport.kernel_socket, selectors.EVENT_READ, self)

    def _take(self) -> bool:
        """Pass on a batch; return whether there may be more."""
        packets = self._packets
        if packets is None:
            return False
        try:
            count = self._transport.receive(self._room, 0.0)
        except TransportError as error:
            _logger.warning("hot rows: %s", error)
            return False
        if count:
            ours = packets.view(self._room[:count])
            self._counters["hot_received"] += ours.size
            self._counters["hot_foreign"] += count - ours.size
            if ours.size:
                self._asked_s = None
                self._on_packets(ours)
        return count > 0
