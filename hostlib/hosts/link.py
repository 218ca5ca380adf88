# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The connection from this worker to one member, for the lanes of one operation."""

from __future__ import annotations

from collections import deque
from typing import Protocol, final

from ..errors import PeerError, PeerProtocolError
from ..peers import PeerAddress, PeerServer
from ..peers.connection import Connection
from ..peers.frames import Frame, FrameKind, Greeting, LostFrame, Packable
from ..peers.handshake import ClientHandshake
from ..peers.heartbeat import Heartbeat


class LinkOwner(Protocol):
    """Who hears of a link's fate."""

    def on_link_drained(self) -> None:
        """What was sent has left."""
        ...

    def on_link_broken(self, error: PeerError, *, was_drained: bool) -> None:
        """The connection is gone, or was refused; drained: all that was sent had left."""
        ...

    def on_link_silent(self, silent_s: float) -> None:
        """The other member's host has given no sign of life for so long."""
        ...

    def on_member_reported_lost(self, worker_id: int) -> None:
        """Another member says that it lost this one."""
        ...


@final
class OutboundLink:
    """Connects at once; what is sent before the other member's welcome waits here."""

    def __init__(
        self,
        server: PeerServer,
        member: PeerAddress,
        greeting: Greeting,
        owner: LinkOwner,
        silence_s: float,
    ) -> None:
        self._owner = owner
        self._handshake = ClientHandshake(greeting, server.token)
        self._waiting: deque[tuple[Packable, memoryview | None]] = deque()
        self.connection = Connection.open(
            server.loop, (member.peer_address, member.peer_port), server.address, self
        )
        self._heartbeat = Heartbeat(
            server.loop,
            self.connection,
            is_sending=False,
            silence_s=silence_s,
            on_silence=owner.on_link_silent,
        )

    @property
    def is_drained(self) -> bool:
        """Whether all that was sent has left."""
        return not self._waiting and self.connection.is_drained

    def send(self, frame: Packable, payload: memoryview | None = None) -> None:
        """Send once the other member is in this view."""
        if self._handshake.is_open:
            self.connection.send(frame, payload)
        else:
            self._waiting.append((frame, payload))

    def target(self, connection: Connection, frame: Frame) -> memoryview | None:
        """Return room for what a server sends; values only come over inbound connections."""
        room = self._handshake.room(frame)
        if room is None and frame.kind is not FrameKind.LOST:
            raise PeerProtocolError(f"{frame.kind.name} frame from a server")
        return room if room is not None else memoryview(b"")

    def on_frame(self, connection: Connection, frame: Frame, payload: memoryview) -> None:
        """Greet, go up, hear of losses."""
        if not self._handshake.take(connection, frame, payload):
            self._owner.on_member_reported_lost(LostFrame.unpack(frame).worker_id)
        elif frame.kind is FrameKind.WELCOME:
            self._heartbeat.is_sending = True
            while self._waiting:
                connection.send(*self._waiting.popleft())
            self.on_drained(connection)

    def on_drained(self, connection: Connection) -> None:
        """Pass it on."""
        if self.is_drained:
            self._owner.on_link_drained()

    def on_closed(self, connection: Connection, error: PeerError) -> None:
        """Pass it on."""
        is_drained = not self._waiting and connection.was_drained
        self._owner.on_link_broken(error, was_drained=is_drained)
