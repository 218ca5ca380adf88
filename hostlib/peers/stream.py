# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What carries the bytes of a connection: TCP as it is, or TLS over it (`tls_stream`)."""

from __future__ import annotations

import errno
import selectors
import socket
from collections.abc import Sequence
from typing import Protocol, final

from ..credentials import Role
from ..errors import PeerUnreachableError

LOW_WATER_BYTES = 8 << 10
"""The kernel collects this much of a payload, or the rest of it, before it wakes this thread. On a
slow link each segment would wake it otherwise. With 64 KiB, streams at 1 Gbit/s were stuck at
570 Mbit/s, as the kernel's buffers did not grow."""


class ByteStream(Protocol):
    """Bytes in both directions over a socket that does not block; used in the loop's thread."""

    @property
    def wants(self) -> int:
        """Events of the selectors module that opening waits for; 0: the stream is open."""
        ...

    @property
    def low_water_bytes(self) -> int:
        """Most bytes that the kernel may collect before it wakes the reader."""
        ...

    @property
    def has_unread(self) -> bool:
        """Whether `receive` has something without any event of the socket."""
        ...

    def go_on_opening(self) -> None:
        """Do what is possible now, and set `wants`. Raises PeerError and OSError."""
        ...

    def receive(self, places: Sequence[memoryview]) -> int:
        """Fill the places one after the other; return the number of bytes, 0 at the stream's end.

        If it is less than there is room for, there are no more bytes now, or it was enough for one
        turn of the loop. Raises BlockingIOError if there are none, PeerError and OSError.
        """
        ...

    def send(self, buffers: Sequence[memoryview]) -> int:
        """Send from the start of the buffers; return how many of their bytes the kernel has.

        The next call must go on behind these. Raises BlockingIOError if there are none, OSError.
        """
        ...

    def end_sending(self) -> None:
        """Tell the other end that nothing more comes. Raises OSError."""
        ...

    def check_role(self, role: Role) -> None:
        """Raise PeerRefusedError if the other end has shown a certificate without this role."""
        ...

    def refuse_silent(self, frame: bytes) -> bool:
        """Send a frame in clear to another end that says nothing, though it should speak first.

        Returns False if it does speak, or if this end speaks first.
        """
        ...


def finish_connecting(sock: socket.socket) -> None:
    """Check that a socket is connected, to another end. Raises PeerUnreachableError."""
    code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if code:
        name = errno.errorcode.get(code, str(code))
        raise PeerUnreachableError(f"connection failed: {name}")
    if is_to_itself(sock):
        raise PeerUnreachableError("nobody listens there: the connection reached its own end")


def is_to_itself(sock: socket.socket) -> bool:
    """Return whether a connection has no other end.

    If nobody listens on a local port any more, the kernel may choose that same port for the calling
    end, which then is connected to itself.
    """
    try:
        return sock.getsockname() == sock.getpeername()
    except OSError:  # already closed
        return False


@final
class PlainStream:
    """TCP without protection."""

    low_water_bytes = LOW_WATER_BYTES
    has_unread = False

    def __init__(self, sock: socket.socket, *, is_connecting: bool) -> None:
        self.wants = selectors.EVENT_WRITE if is_connecting else 0
        self._socket = sock

    def go_on_opening(self) -> None:
        """Learn whether the kernel has connected."""
        finish_connecting(self._socket)
        self.wants = 0

    def receive(self, places: Sequence[memoryview]) -> int:
        """Receive what the kernel has."""
        return self._socket.recvmsg_into(places)[0]

    def send(self, buffers: Sequence[memoryview]) -> int:
        """Send what the kernel takes."""
        return self._socket.sendmsg(buffers)

    def end_sending(self) -> None:
        """Close one direction."""
        self._socket.shutdown(socket.SHUT_WR)

    def check_role(self, role: Role) -> None:
        """Do nothing: the other end has shown no certificate."""

    def refuse_silent(self, frame: bytes) -> bool:
        """Do nothing: this end speaks first."""
        return False
