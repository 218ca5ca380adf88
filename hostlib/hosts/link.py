# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The connection from this worker to one member, for the values of one purpose."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, final

from ..errors import PeerError, PeerProtocolError
from ..peers.connection import Connection
from ..peers.event_loop import EventLoop
from ..peers.frames import Frame, FrameKind, LostFrame, Packable
from ..peers.handshake import ClientHandshake, PeerCall

if TYPE_CHECKING:
    from .channel import Channel


@final
class OutboundLink:
    """Connects at once; frames wait here until the other member's welcome."""

    def __init__(self, channel: Channel, position: int, loop: EventLoop, call: PeerCall) -> None:
        self._channel = channel
        self._position = position
        self._handshake = ClientHandshake(call)
        self._waiting: deque[tuple[Packable, memoryview | None]] = deque()
        self.connection = call.connect(loop, self)

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
        """Return room for a server's frames; values only come over inbound connections."""
        room = self._handshake.room(frame)
        if room is None and frame.kind is not FrameKind.LOST:
            raise PeerProtocolError(f"{frame.kind.name} frame from a server")
        return room if room is not None else memoryview(b"")

    def on_frame(self, connection: Connection, frame: Frame, payload: memoryview) -> None:
        """Greet, send what has waited, pass reports of losses on."""
        if not self._handshake.take(connection, frame, payload):
            self._channel.on_member_reported_lost(LostFrame.unpack(frame).worker_id)
        elif frame.kind is FrameKind.WELCOME:
            while self._waiting:
                connection.send(*self._waiting.popleft())
            self.on_drained(connection)

    def on_drained(self, connection: Connection) -> None:
        """Let the channel end a reduction whose last values have left."""
        if self.is_drained:
            self._channel.finish()

    def on_closed(self, connection: Connection, error: PeerError) -> None:
        """Tell the channel."""
        is_drained = not self._waiting and connection.was_drained
        self._channel.on_link_broken(self._position, error, was_drained=is_drained)
