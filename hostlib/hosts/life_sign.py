# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A call to a member's peer server: where the process lives, its kernel accepts it.

A process that runs answers with a challenge at once. One that is stopped, or that holds its
interpreter lock, lives too: then the connection stands until the time is over. That of a process
that is just dying does not, and a frozen host accepts none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from ..errors import PeerError
from ..peers import PeerServer
from ..peers.connection import Connection
from ..peers.frames import Frame

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
        self._timer = server.loop.call_later(ANSWER_S, self._expire)
        try:
            self._connection = Connection.open(server.loop, address, server.address, self)
        except PeerError:
            server.loop.call_later(0, lambda: self._end(False))

    def cancel(self) -> None:
        """Tell nothing any more."""
        self._on_answer = None
        self._end(False)

    def target(self, connection: Connection, frame: Frame) -> memoryview | None:
        """Return room for what the member says, which adds nothing."""
        return memoryview(bytearray(frame.payload_bytes))

    def on_frame(self, connection: Connection, frame: Frame, payload: memoryview) -> None:
        """It lives, and runs."""
        self._end(True)

    def on_drained(self, connection: Connection) -> None:
        """The connection stands; the next moment tells whether it stays."""

    def on_closed(self, connection: Connection, error: PeerError) -> None:
        """It does not."""
        self._end(False)

    def _expire(self) -> None:
        self._end(self._connection is not None and self._connection.is_established)

    def _end(self, is_alive: bool) -> None:
        self._timer.cancel()
        if self._connection is not None:
            self._connection.close()
        on_answer, self._on_answer = self._on_answer, None
        if on_answer is not None:
            on_answer(is_alive)
