# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's connection, at the server: updates in, answers out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, final

import numpy as np

from ..errors import PeerError, PeerMismatchError, PeerProtocolError
from ..peers.connection import Connection
from ..peers.frames import Frame, FrameKind
from ..peers.heartbeat import Heartbeat
from ..peers.inbound import REFUSED_S
from .layout import VALUE_BYTES
from .rounds import Answer, Failure, Origin
from .rules import Values

if TYPE_CHECKING:
    from .server import ParameterServer

IS_INITIAL = 1
"""Flag of ANSWER and FAILED frames: of parameters that were asked for, not of an update."""
IS_CHOSEN = 1
"""Flag of RESTORE frames: go back to the iteration in `sequence` less 1; or, it is done."""
EVERYTHING = 0xFFFFFFFF
"""Key of FAILED frames that concern all keys."""


@final
class WorkerEnd:
    """Checks and counts what comes; runs in the loop's thread."""

    def __init__(self, server: ParameterServer, worker_id: int, connection: Connection) -> None:
        self.connection = connection
        self._server = server
        self._worker_id = worker_id
        self._room: Values | None = None
        self._is_refused = False
        connection.receiver = self
        connection.send(Frame(FrameKind.WELCOME))
        Heartbeat(server.loop, connection)

    # What follows is called by the server.

    def send_answer(self, key: int, pair: int, iteration: int, answer: Answer) -> None:
        """Send an answer's values."""
        frame = Frame(
            FrameKind.ANSWER,
            payload_bytes=answer.values.nbytes,
            sequence=iteration,
            first_lane=pair,
            total=len(answer.contributors),
            tag=key,
        )
        self._send_values(frame, answer.values)

    def send_initial(self, key: int, pair: int, iteration: int, values: Values) -> None:
        """Send parameters."""
        frame = Frame(
            FrameKind.ANSWER,
            payload_bytes=values.nbytes,
            sequence=iteration + 1,
            flags=IS_INITIAL,
            first_lane=pair,
            tag=key,
        )
        self._send_values(frame, values)

    def _send_values(self, frame: Frame, values: Values) -> None:
        self._server.counters["sent_floats"] += values.size
        self.connection.send(frame, values.data.cast("B"))

    def send_failure(self, key: int, iteration: int, failure: Failure) -> None:
        """Send the reason; key -1: of everything."""
        text = json.dumps(failure._asdict()).encode()
        frame = Frame(
            FrameKind.FAILED,
            payload_bytes=len(text),
            sequence=max(0, iteration),
            flags=IS_INITIAL if iteration < 0 else 0,
            tag=key & EVERYTHING,
        )
        self.connection.send(frame, memoryview(text))

    def send_restore(self, choices: list[int] | None) -> None:
        """Send what can be restored, or that it is."""
        text = json.dumps(choices).encode()
        frame = Frame(FrameKind.RESTORE, payload_bytes=len(text), flags=0 if choices else IS_CHOSEN)
        self.connection.send(frame, memoryview(text))

    # What follows is called by the connection.

    def target(self, connection: Connection, frame: Frame) -> memoryview | None:
        """Return room for updates of this shard's pairs, and for declarations."""
        self._room = None
        if self._is_refused:
            return memoryview(bytearray(frame.payload_bytes))
        try:
            if frame.kind in (FrameKind.UPDATE, FrameKind.INITIAL):
                pair = self._server.pair(frame.tag, frame.first_lane)
                size = (frame.num_lanes, frame.payload_bytes)
                if size != (pair.num_values, VALUE_BYTES * pair.num_values):
                    raise PeerProtocolError(f"{size[0]} values in {size[1]} bytes")
                self._room = self._server.room(pair.num_values)
            elif frame.kind is FrameKind.FACTORS:
                count, rows, columns = frame.num_lanes, frame.first_lane, frame.total
                self._server.check_factors(frame.tag, rows, columns)
                values = count * (rows + columns)
                if frame.payload_bytes != VALUE_BYTES * values:
                    raise PeerProtocolError(f"{values} values in {frame.payload_bytes} bytes")
                self._room = np.empty(values, np.float32)
            elif frame.kind not in (FrameKind.DECLARE, FrameKind.HEARTBEAT, FrameKind.RESTORE):
                raise PeerProtocolError(f"{frame.kind.name} frame at a parameter server")
        except PeerProtocolError as error:
            self._refuse(error)
        if self._room is not None and self._room.size:
            return self._room.data.cast("B")
        return memoryview(bytearray(frame.payload_bytes))

    def on_frame(self, connection: Connection, frame: Frame, payload: memoryview) -> None:
        """Take updates and declarations."""
        room, self._room = self._room, None
        if frame.kind is FrameKind.DECLARE:
            try:
                self._server.declare(self._worker_id, bytes(payload))
            except (PeerMismatchError, PeerProtocolError) as error:
                self._refuse(error)
        if frame.kind is FrameKind.RESTORE and not self._is_refused:
            if frame.flags & IS_CHOSEN:
                self._server.restore(self._worker_id, frame.sequence - 1)
            else:
                self._server.ask_restore(self._worker_id)
        if room is None or self._is_refused:
            return
        self._server.counters["received_floats"] += room.size
        origin = Origin(self._worker_id, frame.sequence, frame.sequence - frame.step)
        if frame.kind is FrameKind.INITIAL:
            self._server.initialise(self._worker_id, frame.tag, frame.first_lane, room)
        elif frame.kind is FrameKind.UPDATE:
            self._server.update(origin, frame.tag, frame.first_lane, room)
        else:
            count, rows = frame.num_lanes, frame.first_lane
            u = room[: count * rows].reshape(count, rows)
            v = room[count * rows :].reshape(count, frame.total)
            self._server.multiply(origin, frame.tag, u, v)

    def on_drained(self, connection: Connection) -> None:
        """Nothing waits for this."""

    def on_closed(self, connection: Connection, error: PeerError) -> None:
        """Tell the server that the worker is gone, perhaps only for a moment."""
        self._server.detach(self._worker_id, self)

    def _refuse(self, error: PeerError) -> None:
        self._server.refuse(self._worker_id, self, error)
        self._is_refused = True
        # Closing with bytes unread would reset the connection, and the reason might get lost.
        self._server.loop.call_later(REFUSED_S, lambda: self.connection.close(error))
