# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A call to a member's peer server: a living one answers with a challenge."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from hostlib.errors import PeerError, PeerProtocolError
from hostlib.peers import PeerServer
from hostlib.peers.connection import Connection
from hostlib.peers.frames import Frame, FrameKind

ANSWER_S = 1.0
"""Time to answer."""


@final
class LifeSign:
    """One call; tells once, in the loop's thread, whether the member lives."""

    def __init__(
        self, server: PeerServer, address: tuple[str, int], on_answer: Callable[[bool], None]
    ) -> None:
        self._on_answer: Callable[[bool], None] | None = on_answer
        self._connection: Connection | None = None
        self._timer = server.loop.call_later(ANSWER_S, lambda: self._end(False))
        try:
            self._connection = Connection.open(server.loop, address, server.address, self)
        except PeerError:
            server.loop.call_later(0, lambda: self._end(False))

    def cancel(self) -> None:
        """Tell nothing any more."""
        self._on_answer = None
        self._end(False)

    def target(self, connection: Connection, frame: Frame) -> memoryview | None:
        """Return room for the challenge."""
        if frame.kind is not FrameKind.CHALLENGE:
            raise PeerProtocolError(f"{frame.kind.name} frame instead of a challenge")
        return memoryview(bytearray(frame.payload_bytes))

    def on_frame(self, connection: Connection, frame: Frame, payload: memoryview) -> None:
        """It lives."""
        self._end(True)

    def on_drained(self, connection: Connection) -> None:
        """Nothing is sent."""

    def on_closed(self, connection: Connection, error: PeerError) -> None:
        """It does not."""
        self._end(False)

    def _end(self, is_alive: bool) -> None:
        self._timer.cancel()
        if self._connection is not None:
            self._connection.close()
        on_answer, self._on_answer = self._on_answer, None
        if on_answer is not None:
            on_answer(is_alive)
