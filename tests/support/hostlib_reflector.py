# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A switch for one worker: turns every contribution into its result. For transport tests."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from switchfold.hostlib.native.structures import LAYERS_BYTES
from switchfold.hostlib.native.transports import SocketTransport
from switchfold.hostlib.slots.wire import Operation

Rows = np.ndarray[tuple[int, int], np.dtype[np.uint8]]


def reflect_datagrams(rows: Rows) -> None:
    rows[:, 1] = Operation.RESULT


def reflect_frames(rows: Rows) -> None:
    """Swap MAC, IPv4 and UDP addresses, in numpy; set the operation and correct the checksum."""
    for first, second, size in ((0, 6, 6), (26, 30, 4), (34, 36, 2)):
        kept = rows[:, first : first + size].copy()
        rows[:, first : first + size] = rows[:, second : second + size]
        rows[:, second : second + size] = kept
    reflect_datagrams(rows[:, LAYERS_BYTES:])
    rows[:, 40:42] = 0  # no checksum


@contextmanager
def running(sock: socket.socket, row_bytes: int, change: Callable[[Rows], None]) -> Iterator[None]:
    """Send every datagram or frame of the socket back, changed; close the socket in the end."""
    is_over = threading.Event()
    reflector = SocketTransport(sock)
    reflector.open(row_bytes)

    def run() -> None:
        rows = np.empty((32, row_bytes), np.uint8)
        while not is_over.is_set():
            count = reflector.receive(rows, 1.0)
            assert count >= 0, os.strerror(-count)
            change(rows[:count])
            reflector.send(rows[:count])

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        reflector.wake()
        thread.join()
        reflector.close()
