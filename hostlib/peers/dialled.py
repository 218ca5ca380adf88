# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A connection to a peer server that is dialled again until it is open, within a time limit."""

from __future__ import annotations

import time
from typing import Protocol, final

from ..errors import (
    PeerError,
    PeerRefusedError,
    PeerUnreachableError,
)
from .connection import Connection
from .event_loop import EventLoop, Timer
from .frames import Frame, Packable
from .handshake import ClientHandshake, PeerCall
from .heartbeat import Heartbeat

FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 0.5
"""Longest pause between two attempts."""
WELCOME_S = 3.0
"""Longest time from an attempt to the welcome."""


class DialledOwner(Protocol):
    """Uses a dialled link; called in the loop's thread."""

    def on_up(self, link: DialledLink) -> None:
        """Learn that frames may be sent; called for every new connection."""
        ...

    def target(self, frame: Frame) -> memoryview:
        """Return where the payload goes. A PeerError ends the connection."""
        ...

    def on_frame(self, frame: Frame, payload: memoryview) -> None:
        """Take a whole frame. A PeerError ends the connection."""
        ...

    def on_down(self, link: DialledLink, error: PeerError) -> bool:
        """Learn that the connection is gone; return whether to dial again."""
        ...

    def on_lost(self, link: DialledLink, error: PeerError) -> None:
        """Learn that the link gave up: it was refused, or reached nobody for `unreachable_s`."""
        ...


@final
class DialledLink:
    """Runs in the loop's thread. `unreachable_s` limits each time without a connection."""

    def __init__(
        self,
        loop: EventLoop,
        call: PeerCall,
        owner: DialledOwner,
        *,
        unreachable_s: float,
    ) -> None:
        self._loop = loop
        self._call = call
        self._owner = owner
        self.unreachable_s = unreachable_s
        self._connection: Connection | None = None
        self._handshake = ClientHandshake(call)
        self._is_up = False
        self._is_closed = False
        self._away_s = time.monotonic()
        self._pause_s = FIRST_PAUSE_S
        self._cause: PeerError | None = None
        self._timer: Timer | None = None  # ends the wait for the welcome, or dials again
        self._dial()

    @property
    def is_up(self) -> bool:
        """Whether frames may be sent."""
        return self._is_up

    @property
    def is_drained(self) -> bool:
        """Whether all that was sent has left for the kernel."""
        return self._connection is None or self._connection.is_drained

    @property
    def arrived_ns(self) -> int:
        """When the frame at hand was there, see `Connection.arrived_ns`."""
        assert self._connection is not None
        return self._connection.arrived_ns

    @property
    def unacknowledged_bytes(self) -> int:
        """See `Connection.unacknowledged_bytes`."""
        return 0 if self._connection is None else self._connection.unacknowledged_bytes

    def limit_rate(self, bytes_per_s: float) -> None:
        """See `Connection.limit_rate`; a new connection has no limit."""
        if self._connection is not None:
            self._connection.limit_rate(bytes_per_s)

    def send(self, frame: Packable, payload: memoryview | None = None) -> None:
        """Send a frame; the payload must not change until `is_drained`."""
        assert self._connection is not None
        self._connection.send(frame, payload)

    def close(self, *, is_gentle: bool = False) -> None:
        """Close for good; gently: sent frames still arrive."""
        self._is_closed = True
        self._is_up = False
        self._cancel_timer()
        if self._connection is not None:
            if is_gentle:
                self._connection.close_gently()
            else:
                self._connection.close()

    def _dial(self) -> None:
        left_s = self._away_s + self.unreachable_s - time.monotonic()
        self._timer = self._loop.call_later(min(WELCOME_S, left_s), self._expire)
        self._handshake = ClientHandshake(self._call)
        try:
            self._connection = self._call.connect(self._loop, self)
        except PeerError as error:
            self._retry(error)

    def _expire(self) -> None:
        if self._connection is not None:
            self._connection.close(PeerUnreachableError("no welcome in time"))

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _retry(self, error: PeerError) -> None:
        self._cancel_timer()
        self._connection = None
        # The first cause tells more: a later attempt may just have been cut short.
        self._cause = self._cause or error
        away_s = time.monotonic() - self._away_s
        if isinstance(error, PeerRefusedError) or away_s >= self.unreachable_s:
            self._give_up(error)
            return
        self._timer = self._loop.call_later(self._pause_s, self._dial)
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)

    def _give_up(self, error: PeerError) -> None:
        self.close()
        if isinstance(error, PeerRefusedError):
            self._owner.on_lost(self, error)
            return
        host, port = self._call.address
        self._owner.on_lost(
            self,
            PeerUnreachableError(
                f"no peer answers at {host}:{port} for {self.unreachable_s:g} s: {self._cause}"
            ),
        )

    # The connection calls the methods below.

    def target(self, connection: Connection, frame: Frame) -> memoryview | None:
        """Return room for what the other end sends."""
        room = self._handshake.room(frame)
        return room if room is not None else self._owner.target(frame)

    def on_frame(self, connection: Connection, frame: Frame, payload: memoryview) -> None:
        """Greet; tell the owner when the link is up; pass its frames on."""
        if not self._handshake.take(connection, frame, payload):
            self._owner.on_frame(frame, payload)
        elif self._handshake.is_open and not self._is_up:
            self._cancel_timer()
            Heartbeat(self._loop, connection)
            self._is_up = True
            self._cause = None
            self._pause_s = FIRST_PAUSE_S
            self._owner.on_up(self)

    def on_drained(self, connection: Connection) -> None:
        """Do nothing: no frame waits for this."""

    def on_closed(self, connection: Connection, error: PeerError) -> None:
        """Dial again, unless the owner wants no other connection."""
        if self._is_closed:
            return
        was_up, self._is_up = self._is_up, False
        if was_up:
            self._away_s = time.monotonic()
            if not self._owner.on_down(self, error):
                self.close()
                return
        self._retry(error)
