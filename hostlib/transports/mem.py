# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Frames handed to a switch in the same process, for tests and simulations."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray

from ..control.view import Endpoint
from ..errors import TransportClosedError
from .base import Datagrams, Offloads
from .frames import FrameCodec

POLL_S = 0.02
"""Longest wait in the port at a time, so that `wake` is seen soon."""
MAX_FRAME_BYTES = 9232
"""Row for one frame; a port may carry longer frames than ours, and they must fit to be refused."""


class FramePort(Protocol):
    """A switch port in this process; softswitch's mem ports are such."""

    def send(self, frames: NDArray[np.uint8], lengths: NDArray[np.int32]) -> int:
        """Give frames (count, stride) with their lengths to the switch; return how many it took."""
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
        self._frames: NDArray[np.uint8] = np.empty((0, MAX_FRAME_BYTES), np.uint8)
        self._lengths = np.empty(0, np.int32)
        self._is_closed = False

    @property
    def local(self) -> Endpoint:
        """This worker's end."""
        return self._local

    @property
    def counters(self) -> Counter[str]:
        """Frames dropped here, by cause."""
        return self._counters

    @property
    def offloads(self) -> Offloads:
        """None: the port takes whole frames."""
        return Offloads()

    def open(self, remote: Endpoint, datagram_bytes: int) -> None:
        """Prepare frames to and from `remote`."""
        self._codec = FrameCodec(self._local, remote, datagram_bytes)

    def send(self, datagrams: Datagrams) -> int:
        """Give rows to the switch in order; return how many it took."""
        if self._is_closed:
            raise TransportClosedError("the mem transport was closed")
        count = len(datagrams)
        frames = np.empty((count, self._codec.frame_bytes), np.uint8)
        self._codec.wrap(datagrams, frames)
        return self._port.send(frames, np.full(count, self._codec.frame_bytes, np.int32))

    def receive(self, out: Datagrams, timeout_s: float) -> int:
        """Wait for frames in short steps; return the datagrams taken."""
        if len(self._frames) != len(out):
            self._frames = np.empty((len(out), MAX_FRAME_BYTES), np.uint8)
            self._lengths = np.empty(len(out), np.int32)
        frames, lengths = self._frames, self._lengths
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
