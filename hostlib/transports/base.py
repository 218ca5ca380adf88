# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The seam between the engine and the network."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..control.view import Endpoint

Datagrams = NDArray[np.uint8]
"""UDP payloads, one per row, shape (count, datagram_bytes), rows contiguous."""


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
