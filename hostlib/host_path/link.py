# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The connection from this worker to one member, for the lanes of one operation."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Protocol, final

from hostlib.errors import PeerError, PeerProtocolError, PeerRefusedError
from hostlib.peers import PeerAddress, PeerServer
from hostlib.peers.connection import Connection
from hostlib.peers.frames import PROBE_BYTES, Frame, FrameKind, Greeting

NUM_PINGS = 5
"""The shortest of these round trips counts; noise only ever adds."""
_PROBE = bytes(PROBE_BYTES)


class LinkOwner(Protocol):
    """Who hears of a link's fate."""

    def on_link_drained(self) -> None:
        """What was sent has left."""
        ...

    def on_link_broken(self, error: PeerError, *, was_drained: bool) -> None:
        """The connection is gone, or was refused; drained: all that was sent had left."""
        ...

    def on_member_reported_lost(self, worker_id: int) -> None:
        """Another member says that it lost this one."""
        ...


@final
class OutboundLink:
    """Connects at once; what is sent before the other member's welcome waits here."""

    def __init__(
        self, server: PeerServer, member: PeerAddress, greeting: Greeting, owner: LinkOwner
    ) -> None:
        self._server = server
        self._greeting = greeting
        self._owner = owner
        self._is_up = False
        self._waiting: deque[tuple[Frame, memoryview | None]] = deque()
        self._on_measured: Callable[[float, float], None] | None = None
        self._round_trips: list[float] = []
        self._pinged_s = 0.0
        self.connection = Connection.open(
            server.loop, (member.peer_address, member.peer_port), server.address, self
        )

    @property
    def is_drained(self) -> bool:
        """Whether all that was sent has left."""
        return not self._waiting and self.connection.is_drained

    def send(self, frame: Frame, payload: memoryview | None = None) -> None:
        """Send once the other member is in this layout."""
        if self._is_up:
            self.connection.send(frame, payload)
        else:
            self._waiting.append((frame, payload))

    def beat(self) -> None:
        """Tell the other member that this one lives; data under way says so too."""
        if self._is_up and self.connection.is_drained:
            self.connection.send(Frame(FrameKind.HEARTBEAT))

    def measure(self, on_measured: Callable[[float, float], None]) -> None:
        """Measure (seconds of a round trip, seconds of a round trip with 2^17 bytes one way)."""
        self._on_measured = on_measured
        self._ping()

    def target(self, connection: Connection, frame: Frame) -> memoryview | None:
        """Return room for what a server says; lanes only come over inbound connections."""
        if frame.kind in (FrameKind.LANES, FrameKind.PIECE, FrameKind.PING):
            raise PeerProtocolError(f"{frame.kind.name} frame from a server")
        return memoryview(bytearray(frame.payload_bytes))

    def on_frame(self, connection: Connection, frame: Frame, payload: memoryview) -> None:
        """Greet, go up, hear of losses."""
        if frame.kind is FrameKind.CHALLENGE:
            proof = self._greeting.pack(self._server.token, bytes(payload))
            greeting = Frame(FrameKind.GREETING, payload_bytes=len(proof))
            connection.send(greeting, memoryview(proof))
        elif frame.kind is FrameKind.WELCOME:
            self._is_up = True
            while self._waiting:
                connection.send(*self._waiting.popleft())
            self.on_drained(connection)
        elif frame.kind is FrameKind.REFUSED:
            raise PeerRefusedError(bytes(payload).decode(errors="replace"))
        elif frame.kind is FrameKind.PONG:
            self._take_pong(frame.sequence)
        elif frame.kind is FrameKind.LOST:
            self._owner.on_member_reported_lost(frame.sequence)

    def on_drained(self, connection: Connection) -> None:
        """Pass it on."""
        if self.is_drained:
            self._owner.on_link_drained()

    def on_closed(self, connection: Connection, error: PeerError) -> None:
        """Pass it on."""
        is_drained = not self._waiting and connection.was_drained
        self._owner.on_link_broken(error, was_drained=is_drained)

    def _ping(self) -> None:
        self._pinged_s = time.monotonic()
        number = len(self._round_trips)
        if number < NUM_PINGS:
            self.send(Frame(FrameKind.PING, sequence=number))
        else:
            probe = Frame(FrameKind.PING, payload_bytes=PROBE_BYTES, sequence=number)
            self.send(probe, memoryview(_PROBE))

    def _take_pong(self, number: int) -> None:
        if self._on_measured is None or number != len(self._round_trips):
            raise PeerProtocolError("a pong that no ping asked for")
        # The first ping also waited for the welcome.
        self._round_trips.append(time.monotonic() - self._pinged_s)
        if number < NUM_PINGS:
            self._ping()
            return
        on_measured, self._on_measured = self._on_measured, None
        on_measured(min(self._round_trips[1:NUM_PINGS]), self._round_trips[NUM_PINGS])
