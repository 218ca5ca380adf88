# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Transports of the C library: over a socket, or over another transport's two calls."""

from __future__ import annotations

import ctypes
import enum
import os
import socket
import threading
import weakref
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..transports.base import Datagrams, Offloads
from .library import address, library
from .structures import BATCH, RECEIVE_ROWS, SEND_ROWS, FramesStruct, PacketLinkStruct


@runtime_checkable
class NativeTransport(Protocol):
    """What the library's reducer sends and receives by."""

    @property
    def handle(self) -> int:
        """The library's `transport_t`."""
        ...

    def raise_failure(self, number: int) -> None:
        """Raise the error for a negative result of a call."""
        ...


class Joining(enum.IntEnum):
    """When a packet socket sends super-frames, frames of several datagrams: `join_t`."""

    NEVER = 0
    LIKE_PEER = 1
    """After the switch has sent a frame whose checksum it left to others."""
    ALWAYS = 2


@final
class SocketTransport:
    """Datagrams over a socket; one thread sends and receives, any thread may wake it."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self._lock = threading.Lock()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._state = library.socket_transport_new(sock.fileno(), self._wake)
        if not self._state:
            raise MemoryError("no memory for a socket's messages")
        # Another thread may be in a call when the socket is closed.
        weakref.finalize(self, library.socket_transport_free, self._state)
        self.handle: int = library.socket_transport_base(self._state)
        self._totals = library.socket_transport_counters(self._state).contents
        self._row_bytes = 0
        self._more: tuple[socket.socket, ...] = ()
        self._counted: Counter[str] = Counter()
        self._is_closed = False

    def route(self, more: Sequence[socket.socket], places: Mapping[int, int]) -> None:
        """Have the trees of `places` lead to other switches; to be called before `open`.

        By tree id: 0 for the transport's own socket, 1 for the first of `more`, and so on. These
        have the same local port, and are closed with the transport unless another call replaces
        them before, which closes them.
        """
        fds = (ctypes.c_int * (1 + len(more)))(self.socket.fileno(), *(s.fileno() for s in more))
        trees = (ctypes.c_uint16 * len(places))(*places)
        sockets = (ctypes.c_uint8 * len(places))(*places.values())
        with self._lock:  # another thread may close the transport
            if self._is_closed:
                unused = more
            else:
                library.socket_transport_route(
                    self._state, fds, len(fds), trees, sockets, len(places)
                )
                unused, self._more = self._more, tuple(more)
        for sock in unused:
            sock.close()

    def open(self, datagram_bytes: int, frames: FramesStruct | None = None) -> None:
        """Carry datagrams of this size over UDP from now on, inside frames if there are any."""
        self._row_bytes = datagram_bytes
        pointer = None if frames is None else ctypes.byref(frames)
        library.socket_transport_open(self._state, datagram_bytes, pointer)

    def open_packets(self, frames: FramesStruct, link: PacketLinkStruct) -> None:
        """Carry frames over a packet socket that is bound to the link's interface from now on."""
        self._row_bytes = frames.datagram_bytes
        library.socket_transport_open_packets(self._state, ctypes.byref(frames), ctypes.byref(link))

    def raise_failure(self, number: int) -> None:
        """Raise OSError for a negative result of a call."""
        if number < 0:
            raise OSError(-number, os.strerror(-number))

    def send(self, rows: Datagrams) -> int:
        """Send rows in order; return how many the kernel took, or a negative errno."""
        rows = np.ascontiguousarray(rows)
        return library.transport_send_rows(self.handle, address(rows), len(rows), self._row_bytes)

    def receive(self, rows: Datagrams, timeout_s: float) -> int:
        """Fill rows with good datagrams; return how many, or a negative errno."""
        return library.transport_receive_rows(
            self.handle, address(rows), len(rows), self._row_bytes, timeout_s
        )

    @property
    def too_long_in_a_row(self) -> int:
        """How often in a row, without a packet sent in between, the kernel refused the size."""
        return self._totals.too_long_in_a_row

    @property
    def offloads(self) -> Offloads:
        """What the kernel does with many datagrams at once."""
        return Offloads(
            sent_together=library.socket_transport_segments(self._state),
            sent_together_later=library.socket_transport_most_segments(self._state),
            are_received_together=library.socket_transport_joins(self._state),
        )

    @property
    def counters(self) -> Counter[str]:
        """What was held up or dropped here, by cause; causes that did not occur are absent."""
        if not self._is_closed:
            totals = self._totals
            names = (name for name, _ in totals._fields_ if name != "too_long_in_a_row")
            self._counted = +Counter({name: getattr(totals, name) for name in names})
        return self._counted

    def wake(self) -> None:
        """Make a waiting `receive` return."""
        with self._lock:
            if self._wake >= 0:
                os.eventfd_write(self._wake, 1)

    def close(self) -> None:
        """Close the socket; closing twice is fine."""
        if self._is_closed:
            return
        self._counted = self.counters
        with self._lock:
            self._is_closed = True
            library.socket_transport_close(self._state)
        for sock in (self.socket, *self._more):
            sock.close()
        # The number may be that of another file the moment after.
        with self._lock:
            os.close(self._wake)
            self._wake = -1


class RowTransport(Protocol):
    """A transport that is not the library's."""

    def send(self, datagrams: Datagrams) -> int:
        """Send rows in order; return how many were taken."""
        ...

    def receive(self, out: Datagrams, timeout_s: float) -> int:
        """Fill rows; return how many."""
        ...


@final
class CallbackTransport:
    """Lets the library send and receive by another transport's calls."""

    def __init__(self, transport: RowTransport, datagram_bytes: int) -> None:
        self._transport = transport
        self._bytes = datagram_bytes
        self._failure: BaseException | None = None
        # The library keeps only their addresses.
        self._send = SEND_ROWS(self._send_rows)
        self._receive = RECEIVE_ROWS(self._receive_rows)
        self.handle: int = library.callback_transport_new(self._send, self._receive, datagram_bytes)
        weakref.finalize(self, library.callback_transport_free, self.handle)

    def _rows(self, address: int, count: int) -> NDArray[np.uint8]:
        memory = (ctypes.c_uint8 * (count * self._bytes)).from_address(address)
        return np.frombuffer(memoryview(memory), np.uint8).reshape(count, self._bytes)

    def _send_rows(self, address: int, count: int) -> int:
        try:
            return self._transport.send(self._rows(address, count))
        except BaseException as error:  # none crosses the library: `raise_failure` does
            self._failure = error
            return -1

    def _receive_rows(self, address: int, capacity: int, wait_s: float) -> int:
        try:
            return self._transport.receive(self._rows(address, min(capacity, BATCH)), wait_s)
        except BaseException as error:  # none crosses the library: `raise_failure` does
            self._failure = error
            return -1

    def raise_failure(self, number: int) -> None:
        """Raise what a call has raised."""
        if number < 0 and self._failure is not None:
            raise self._failure
