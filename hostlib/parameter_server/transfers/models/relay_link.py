# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's connection to another one, on which models go on as they come."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

from ....errors import PeerError, PeerProtocolError
from ....peers.dialled import DialledLink
from ....peers.event_loop import EventLoop
from ....peers.frames import PIECE_BYTES, Frame, ModelFrame, PieceFrame
from ....peers.handshake import PeerCall

UNREACHABLE_S: Final = 1.0
"""A worker that cannot be reached for so long gets its model from the server."""


@dataclass(eq=False)
class OutgoingRelay:
    """A model that is sent on."""

    link: RelayLink
    number: int
    left_bytes: int
    """Of it, that have not been passed to the link."""
    on_over: Callable[[bool], None]

    def send(self, piece: memoryview) -> None:
        """Send the next bytes; they may change after the call."""
        self.left_bytes -= piece.nbytes
        self.link.send(self, bytes(piece))

    def give_up(self) -> None:
        """Send nothing more of it; `on_over` is not called."""
        self.link.give_up(self)


@final
class RelayLink:
    """Runs in the loop's thread. It dials when a model begins, and stays for the next ones."""

    def __init__(self, loop: EventLoop, call: PeerCall) -> None:
        self._loop = loop
        self._call = call
        self._link: DialledLink | None = None
        self._numbers = itertools.count(1)
        self._open: dict[int, OutgoingRelay] = {}
        """Models of which a connection has not got all."""
        self._early: list[tuple[ModelFrame | PieceFrame, memoryview | None]] = []
        """What waits for the connection."""

    def begin(
        self, model_id: bytes, num_bytes: int, on_over: Callable[[bool], None]
    ) -> OutgoingRelay:
        """Begin to send a model.

        `on_over(is_sent)` is called once: when a connection has got all of it, or when the
        connection is gone, or cannot be had. Not before this returns.
        """
        number = next(self._numbers)
        relay = self._open[number] = OutgoingRelay(self, number, num_bytes, on_over)
        if self._link is None:
            self._link = DialledLink(self._loop, self._call, self, unreachable_s=UNREACHABLE_S)
        self._put(ModelFrame(number, model_id, num_bytes), None)
        return relay

    def send(self, relay: OutgoingRelay, piece: bytes) -> None:
        """Send the next bytes of a model, unless it is over."""
        if self._open.get(relay.number) is not relay:
            return
        for start in range(0, len(piece), PIECE_BYTES):
            part = memoryview(piece)[start : start + PIECE_BYTES]
            self._put(PieceFrame(part.nbytes, relay.number), part)
        if self._is_up:
            self._end_sent()

    def give_up(self, relay: OutgoingRelay) -> None:
        """Send nothing more of a model. That the connection ends is what tells its receiver."""
        if self._open.pop(relay.number, None) is not None:
            if self._link is not None:
                self._link.close()
            self._fail()

    def close(self) -> None:
        """End the connection; nobody learns of what has not left."""
        if self._link is not None:
            self._link.close()
            self._link = None
        self._open.clear()
        self._early.clear()

    @property
    def _is_up(self) -> bool:
        return self._link is not None and self._link.is_up

    def _end_sent(self) -> None:
        for relay in [relay for relay in self._open.values() if not relay.left_bytes]:
            del self._open[relay.number]
            relay.on_over(True)

    def _put(self, frame: ModelFrame | PieceFrame, payload: memoryview | None) -> None:
        if self._link is not None and self._link.is_up:
            self._link.send(frame, payload)
        else:
            self._early.append((frame, payload))

    def _fail(self) -> None:
        self._link = None
        relays, self._open = [*self._open.values()], {}
        self._early.clear()
        for relay in relays:  # not at once: the caller may be sending
            self._loop.call_later(0, lambda relay=relay: relay.on_over(False))

    # The dialled link calls the methods below.

    def on_up(self, link: DialledLink) -> None:
        """Send what has waited."""
        early, self._early = self._early, []
        for frame, payload in early:
            link.send(frame, payload)
        self._end_sent()

    def target(self, frame: Frame) -> memoryview:
        """Refuse what comes: there are no answers."""
        raise PeerProtocolError(f"{frame.kind.name} frame from a relay of models")

    def on_frame(self, frame: Frame, payload: memoryview) -> None:
        """Do nothing: nothing has a place."""

    def on_down(self, link: DialledLink, error: PeerError) -> bool:
        """Fail what is under way; the next model dials again."""
        self._fail()
        return False

    def on_lost(self, link: DialledLink, error: PeerError) -> None:
        """Fail what is under way."""
        self._fail()
