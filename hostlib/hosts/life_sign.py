# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A call to a member's peer server: while the process lives, its kernel accepts the connection.

A running process answers with a challenge at once. A process that is stopped, or whose interpreter
lock is held, lives, too: its connection stays open until the time is over. The connection to a
dying process breaks, and a frozen host accepts none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from ..credentials import Role
from ..errors import PeerError, PeerRefusedError
from ..peers import PeerServer
from ..peers.connection import Connection
from ..peers.frames import Frame
from ..peers.tls_stream import calling

ANSWER_S = 1.0
"""Longest wait for an answer."""


@final
class LifeSign:
    """One call; reports once, in the loop's thread, whether the member lives."""

    def __init__(
        self, server: PeerServer, address: tuple[str, int], on_answer: Callable[[bool], None]
    ) -> None:
        self._on_answer: Callable[[bool], None] | None = on_answer
        self._connection: Connection | None = None
        self._timer = server.loop.call_later(ANSWER_S, self._expire)
        try:
            self._connection = Connection.open(
                server.loop,
                address,
                server.address,
                self,
                tls=calling(server.credentials, Role.WORKER),
            )
        except PeerError:
            server.loop.call_later(0, lambda: self._end(False))

    def cancel(self) -> None:
        """End the call without a report."""
        self._on_answer = None
        self._end(False)

    def target(self, connection: Connection, frame: Frame) -> memoryview | None:
        """Return room for the member's answer, which is not read."""
        return memoryview(bytearray(frame.payload_bytes))

    def on_frame(self, connection: Connection, frame: Frame, payload: memoryview) -> None:
        """The member lives, and its process runs."""
        self._end(True)

    def on_drained(self, connection: Connection) -> None:
        """Do nothing: the connection is open, but may break at once."""

    def on_closed(self, connection: Connection, error: PeerError) -> None:
        """The member does not live, unless it has answered that it wants another certificate."""
        self._end(isinstance(error, PeerRefusedError))

    def _expire(self) -> None:
        self._end(self._connection is not None and self._connection.is_established)

    def _end(self, is_alive: bool) -> None:
        self._timer.cancel()
        if self._connection is not None:
            self._connection.close()
        on_answer, self._on_answer = self._on_answer, None
        if on_answer is not None:
            on_answer(is_alive)
