# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The client's side of a connection: whom it calls, the answer to the challenge, the welcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from ..credentials import Credentials, Role
from ..errors import PeerProtocolError, PeerRefusedError
from .connection import Connection, FrameReceiver
from .event_loop import EventLoop
from .frames import Frame, FrameKind, Greeting, Purpose
from .tls_stream import calling

_KINDS = frozenset((FrameKind.CHALLENGE, FrameKind.WELCOME, FrameKind.REFUSED, FrameKind.HEARTBEAT))


@dataclass(frozen=True, kw_only=True)
class PeerCall:
    """A connection to a peer server: where the server is, and who calls."""

    address: tuple[str, int]
    """Where the server listens, by TCP."""
    source: str
    """Own address that the connection comes from."""
    greeting: Greeting
    token: str
    """Secret that all workers of the job hold."""
    credentials: Credentials | None = None
    """Certificate of the calling end; None: no TLS."""
    server_role: Role = Role.WORKER
    """Role that the server's certificate must have."""

    def connect(self, loop: EventLoop, receiver: FrameReceiver) -> Connection:
        """Start to connect; the receiver learns of later errors."""
        tls = calling(self.credentials, self.server_role)
        return Connection.open(loop, self.address, self.source, receiver, tls=tls)


@final
class ClientHandshake:
    """Handles the frames by which a server opens one connection, and its heartbeats."""

    def __init__(self, call: PeerCall) -> None:
        self.is_open = False
        """Whether frames of the connection's purpose may be sent."""
        self._greeting = call.greeting
        self._token = call.token

    def room(self, frame: Frame) -> memoryview | None:
        """Return room for a frame of the handshake or a heartbeat, None for a frame of the purpose.

        Raises PeerProtocolError for a frame of the purpose that comes too early.
        """
        if frame.kind in _KINDS:
            return memoryview(bytearray(frame.payload_bytes))
        if not self.is_open:
            raise PeerProtocolError(f"{frame.kind.name} frame before the welcome")
        return None

    def take(self, connection: Connection, frame: Frame, payload: memoryview) -> bool:
        """Answer a frame that `room` had room for; return False for a frame of the purpose.

        Raises PeerRefusedError with the server's reason.
        """
        if frame.kind is FrameKind.CHALLENGE:
            proof = self._greeting.pack(self._token, bytes(payload))
            greeting = Frame(FrameKind.GREETING, payload_bytes=len(proof))
            connection.send(greeting, memoryview(proof))
            # A server answers requests for results without a welcome.
            self.is_open = self._greeting.purpose is Purpose.FETCH
        elif frame.kind is FrameKind.WELCOME:
            self.is_open = True
        elif frame.kind is FrameKind.REFUSED:
            raise PeerRefusedError(bytes(payload).decode(errors="replace"))
        return frame.kind in _KINDS
