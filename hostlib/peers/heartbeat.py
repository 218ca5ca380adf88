# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Heartbeats on idle connections, and the end of silent ones."""

from __future__ import annotations

import time
from typing import final

from ..errors import PeerClosedError
from .connection import Connection
from .event_loop import EventLoop
from .frames import Frame, FrameKind

HEARTBEAT_S = 0.5
"""Pause between two looks at a connection."""
SILENCE_S = 10.0
"""A connection without a sign of life for so long is closed."""


@final
class Heartbeat:
    """Looks at one connection until it is closed; runs in the loop's thread.

    It sends a heartbeat if nothing else has left lately. Bytes are signs of life, and so are
    receipts: a heartbeat may wait behind a large frame for long where links are full. A process
    that hangs has a living kernel, so it is left to the timeouts of those who use the connection.

    A silence of more than `silence_s` closes the connection with PeerClosedError.
    """

    def __init__(
        self,
        loop: EventLoop,
        connection: Connection,
        *,
        silence_s: float | None = None,
    ) -> None:
        self._loop = loop
        self._connection = connection
        self._silence_s = SILENCE_S if silence_s is None else silence_s
        self._looked_s = time.monotonic()
        self._timer = loop.call_later(HEARTBEAT_S, self._look)

    def stop(self) -> None:
        """Leave the connection alone."""
        self._timer.cancel()

    def _look(self) -> None:
        connection = self._connection
        if connection.is_closed:
            return
        now_s = time.monotonic()
        # A thread that was held up has not read yet what came meanwhile.
        is_on_time = now_s - self._looked_s < 2 * HEARTBEAT_S
        self._looked_s = now_s
        self._timer = self._loop.call_later(HEARTBEAT_S, self._look)
        is_idle = connection.is_drained and now_s - connection.sent_s > HEARTBEAT_S / 2
        if is_idle:
            connection.send(Frame(FrameKind.HEARTBEAT))
        silent_s = now_s - connection.alive_s
        if is_on_time and silent_s > self._silence_s:
            connection.close(PeerClosedError(f"silent for {self._silence_s:g} s"))
