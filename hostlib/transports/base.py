# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The seam between the engine and the network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..control.view import Endpoint
from ..errors import ConfigurationError

Datagrams = NDArray[np.uint8]
"""UDP payloads, one per row, shape (count, datagram_bytes), rows contiguous."""


@dataclass(frozen=True, kw_only=True)
class Offloads:
    """What the kernel, a network card or the switch does with many datagrams at once."""

    sent_together: int = 1
    """Most datagrams in one message that is sent; others cut it."""
    sent_together_later: int = 1
    """The same once the switch has shown that it takes such messages."""
    are_received_together: bool = False
    """Whether a received message may hold several datagrams."""

    def __str__(self) -> str:
        sent = "1 datagram"
        if self.sent_together > 1:
            sent = f"up to {self.sent_together} datagrams"
        elif self.sent_together_later > 1:
            sent += f" ({self.sent_together_later} if the switch leaves checksums to this host)"
        received = "several" if self.are_received_together else "one"
        return f"offloads: {sent} per message sent, {received} per message received"


class Transport(Protocol):
    """Carries batches of datagrams between this worker and its switch.

    One thread sends and receives; `wake` and `close` may be called from any thread.
    """

    @property
    def local(self) -> Endpoint:
        """This worker's end, known before the job is."""
        ...

    @property
    def counters(self) -> Counter[str]:
        """What was dropped or delayed here, by cause."""
        ...

    @property
    def offloads(self) -> Offloads:
        """What others do with many datagrams at once; known when the transport is open."""
        ...

    def open(self, remote: Endpoint, datagram_bytes: int) -> None:
        """Prepare for datagrams of one size to and from `remote`; again when a job changes switch.

        Raises a TransportError when the remote end cannot be reached from here.
        """
        ...

    def send(self, datagrams: Datagrams) -> int:
        """Send rows in order; return how many were taken. The rest is the caller's to send again.

        Less than all means that the network is busy; it does not mean that they are lost.
        """
        ...

    def receive(self, out: Datagrams, timeout_s: float) -> int:
        """Wait until something arrives, `wake` is called or time is over; return the rows filled.

        Datagrams of a wrong size or from elsewhere are dropped and counted.
        """
        ...

    def wake(self) -> None:
        """Make a `receive` that waits, or the next one, return at once."""
        ...

    def close(self) -> None:
        """Release the transport; closing twice is fine."""
        ...


@runtime_checkable
class TreesTransport(Transport, Protocol):
    """A transport that reaches the roots of several trees, each at an address of its own."""

    def open_trees(self, roots: Mapping[int, Endpoint], datagram_bytes: int) -> None:
        """Prepare for datagrams of one size to and from the switches of trees, by tree id.

        Each datagram goes to the switch of the tree that its header names, and what names a tree is
        taken from its switch alone. Raises a TransportError when one cannot be reached from here.
        """
        ...


def trees_transport(transport: Transport) -> TreesTransport:
    """Return the transport of a transposed job; ConfigurationError if it is for one switch."""
    if isinstance(transport, TreesTransport):
        return transport
    raise ConfigurationError(
        f"{type(transport).__name__} sends to one switch, and a transposed job has one on each of"
        " several hosts; use the transport udp, or another path"
    )
