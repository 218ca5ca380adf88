# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Frames handed to a switch in the same process, for tests and simulations."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from hostlib.errors import TransportClosedError
from hostlib.job_view import Endpoint
from hostlib.transports.base import Datagrams
from hostlib.transports.frames import FrameCodec

POLL_S = 0.02
"""Longest wait in the port at a time, so that `wake` is seen soon."""


class FramePort(Protocol):
    """A switch port in this process; softswitch's mem ports are such."""

    def send(self, frames: NDArray[np.uint8], lengths: NDArray[np.int32]) -> Any:
        """Give frames (count, stride) with their lengths to the switch."""
        ...

    def receive(
        self, frames_out: NDArray[np.uint8], lengths_out: NDArray[np.int32], timeout_s: float
    ) -> int:
        """Fill rows with frames from the switch; return how many."""
        ...


@final
class MemTransport:
    """Transport over a FramePort."""

    def __init__(self, port: FramePort, local: Endpoint) -> None:
        self._port = port
        self._local = local
        self._counters: Counter[str] = Counter()
        self._wake = threading.Event()
        self._is_closed = False

    @property
    def local(self) -> Endpoint:
        """This worker's end."""
        return self._local

    @property
    def counters(self) -> Counter[str]:
        """Frames dropped here, by cause."""
        return self._counters

    def open(self, remote: Endpoint, datagram_bytes: int) -> None:
        """Prepare frames to and from `remote`."""
        self._codec = FrameCodec(self._local, remote, datagram_bytes)

    def send(self, datagrams: Datagrams) -> int:
        """Give all rows to the switch."""
        if self._is_closed:
            raise TransportClosedError("the mem transport was closed")
        count = len(datagrams)
        frames = np.empty((count, self._codec.frame_bytes), np.uint8)
        self._codec.wrap(datagrams, frames)
        self._port.send(frames, np.full(count, self._codec.frame_bytes, np.int32))
        return count

    def receive(self, out: Datagrams, timeout_s: float) -> int:
        """Wait for frames in short steps; return the datagrams taken."""
        stride = self._codec.frame_bytes + 4  # longer frames show by their length
        frames = np.empty((len(out), stride), np.uint8)
        lengths = np.zeros(len(out), np.int32)
        left_s = timeout_s
        while True:
            if self._wake.is_set():
                self._wake.clear()
                left_s = 0.0
            step_s = min(left_s, POLL_S)
            count = self._port.receive(frames, lengths, step_s)
            if count:
                return self._codec.unwrap(frames[:count], lengths[:count], out, self._counters)
            left_s -= step_s
            if left_s <= 0:
                return 0

    def wake(self) -> None:
        """Make a waiting `receive` return within POLL_S."""
        self._wake.set()

    def close(self) -> None:
        """Refuse further sends; the port is its owner's."""
        self._is_closed = True
