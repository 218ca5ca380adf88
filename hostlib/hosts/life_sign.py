# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Calls to a member's peer server: while the process lives, its kernel accepts a connection.

A running process answers with a challenge at once. A process that is stopped, or whose interpreter
lock is held, lives, too: its connection stays open until the time is over. The connection to a
dying process breaks, and a frozen host accepts none. A link may lose the packets of a call, which
the kernel sends again only after a second: so a call that is not accepted soon is followed by
others, beside it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import final

from ..credentials import Role
from ..errors import PeerError, PeerRefusedError
from ..peers import PeerServer
from ..peers.connection import Connection
from ..peers.event_loop import Timer
from ..peers.frames import Frame
from ..peers.tls_stream import calling

ANSWER_S = 1.0
"""Longest wait for an answer, from the first call on."""
NEXT_CALL_S = 0.15
"""Wait for a connection before the next call, and at least after the last one."""


@final
class LifeSign:
    """Calls until one is accepted; reports once, in the loop's thread, whether the member lives."""

    def __init__(
        self, server: PeerServer, address: tuple[str, int], on_answer: Callable[[bool], None]
    ) -> None:
        self._server, self._address = server, address
        self._on_answer: Callable[[bool], None] | None = on_answer
        self._connections: list[Connection] = []
        self._timer: Timer | None = None
        self._called_s = 0.0  # when the last call was made
        self._next_call = server.loop.call_later(0, self._call)

    def cancel(self) -> None:
        """End the calls without a report."""
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

    @property
    def _is_accepted(self) -> bool:
        return any(connection.is_established for connection in self._connections)

    def _call(self) -> None:
        """Call, unless the member has accepted a call and only the answer is missing."""
        if self._is_accepted:
            return
        server = self._server
        self._next_call = server.loop.call_later(NEXT_CALL_S, self._call)
        try:
            connection = Connection.open(
                server.loop,
                self._address,
                server.address,
                self,
                tls=calling(server.credentials, Role.WORKER),
            )
        except PeerError:
            self._end(False)
            return
        self._connections.append(connection)
        self._called_s = time.monotonic()
        if self._timer is None:
            self._timer = server.loop.call_later(ANSWER_S, self._expire)

    def _expire(self) -> None:
        """Judge, unless the last call was made just now, as after a stall of the loop."""
        rest_s = self._called_s + NEXT_CALL_S - time.monotonic()
        if rest_s > 0 and not self._is_accepted:
            self._next_call.cancel()
            self._timer = self._server.loop.call_later(rest_s, self._expire)
            return
        self._end(self._is_accepted)

    def _end(self, is_alive: bool) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._next_call.cancel()
        connections, self._connections = self._connections, []
        for connection in connections:
            connection.close()
        on_answer, self._on_answer = self._on_answer, None
        if on_answer is not None:
            on_answer(is_alive)
