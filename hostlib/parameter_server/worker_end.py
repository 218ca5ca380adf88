# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's connection, at the server: updates in, answers out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple, final

import numpy as np

from ..errors import PeerError, PeerMismatchError, PeerProtocolError
from ..peers.connection import Connection
from ..peers.frames import (
    AnswerFrame,
    FailedFrame,
    Frame,
    FrameKind,
    PushedFactorsFrame,
    UpdateFrame,
)
from ..peers.heartbeat import Heartbeat
from ..peers.inbound import REFUSED_S
from .layout import VALUE_BYTES
from .pair_state import Answer, Failure, Origin
from .rules import Values

if TYPE_CHECKING:
    from .server import ParameterServer


class _Update(NamedTuple):
    """An update that is being received: its header, and memory for its values."""

    frame: UpdateFrame | PushedFactorsFrame
    room: Values


@final
class WorkerEnd:
    """Checks and counts received frames, and sends answers; runs in the loop's thread."""

    def __init__(self, server: ParameterServer, worker_id: int, connection: Connection) -> None:
        self.connection = connection
        self._server = server
        self._worker_id = worker_id
        self._update: _Update | None = None  # of the payload under way
        self._is_refused = False
        connection.receiver = self
        connection.send(Frame(FrameKind.WELCOME))
        Heartbeat(server.loop, connection)

    # The server calls the methods below.

    def send_answer(self, key: int, pair: int, iteration: int, answer: Answer) -> None:
        """Send an answer's values."""
        values = answer.values
        num_contributors = len(answer.contributors)
        self._server.counters["sent_floats"] += values.size
        frame = AnswerFrame(values.nbytes, key, pair, iteration, num_contributors)
        self.connection.send(frame, values.data.cast("B"))

    def send_failure(self, key: int, iteration: int, failure: Failure) -> None:
        """Send the reason why no answer will come."""
        self._send_failed(key, iteration, failure)

    def send_refusal(self, failure: Failure) -> None:
        """Send the reason why no answers will come to any update."""
        self._send_failed(None, 0, failure)

    def _send_failed(self, key: int | None, iteration: int, failure: Failure) -> None:
        text = json.dumps(failure._asdict()).encode()
        self.connection.send(FailedFrame(len(text), key, iteration), memoryview(text))

    # The connection calls the methods below.

    def target(self, connection: Connection, frame: Frame) -> memoryview | None:
        """Return room for updates of this shard's pairs, and for declarations."""
        self._update = None
        if self._is_refused:
            return memoryview(bytearray(frame.payload_bytes))
        try:
            if frame.kind is FrameKind.UPDATE:
                self._update = self._pair_update(frame)
            elif frame.kind is FrameKind.FACTORS:
                self._update = self._factors(frame)
            elif frame.kind not in (FrameKind.DECLARE, FrameKind.HEARTBEAT):
                raise PeerProtocolError(f"{frame.kind.name} frame at a parameter server")
        except PeerProtocolError as error:
            self._refuse(error)
        if self._update is not None and self._update.room.size:
            return self._update.room.data.cast("B")
        return memoryview(bytearray(frame.payload_bytes))

    def _pair_update(self, frame: Frame) -> _Update:
        update = UpdateFrame.unpack(frame)
        pair = self._server.pair(update.key, update.pair)
        size = (update.num_values, update.payload_bytes)
        if size != (pair.num_values, VALUE_BYTES * pair.num_values):
            raise PeerProtocolError(f"{size[0]} values in {size[1]} bytes")
        return _Update(update, self._server.room(pair.num_values))

    def _factors(self, frame: Frame) -> _Update:
        factors = PushedFactorsFrame.unpack(frame)
        self._server.check_factors(factors.key, factors.u_columns, factors.v_columns)
        if factors.payload_bytes != VALUE_BYTES * factors.num_values:
            raise PeerProtocolError(f"{factors.num_values} values in {factors.payload_bytes} bytes")
        return _Update(factors, np.empty(factors.num_values, np.float32))

    def on_frame(self, connection: Connection, frame: Frame, payload: memoryview) -> None:
        """Take updates and declarations."""
        update, self._update = self._update, None
        if frame.kind is FrameKind.DECLARE:
            try:
                self._server.declare(self._worker_id, bytes(payload))
            except (PeerMismatchError, PeerProtocolError) as error:
                self._refuse(error)
        if update is not None and not self._is_refused:
            self._take(update.frame, update.room)

    def _take(self, frame: UpdateFrame | PushedFactorsFrame, room: Values) -> None:
        self._server.counters["received_floats"] += room.size
        origin = Origin(self._worker_id, frame.iteration, frame.open_from)
        if isinstance(frame, UpdateFrame):
            self._server.update(origin, frame.key, frame.pair, room)
            return
        middle = frame.rows * frame.u_columns
        u = room[:middle].reshape(frame.rows, frame.u_columns)
        v = room[middle:].reshape(frame.rows, frame.v_columns)
        self._server.multiply(origin, frame.key, u, v)

    def on_drained(self, connection: Connection) -> None:
        """Do nothing: no frame waits for this."""

    def on_closed(self, connection: Connection, error: PeerError) -> None:
        """Tell the server that the connection is gone; the worker may connect again."""
        self._server.detach(self._worker_id, self)

    def _refuse(self, error: PeerError) -> None:
        self._server.refuse(self._worker_id, self, error)
        self._is_refused = True
        # Closing with unread bytes would reset the connection, and the reason might get lost.
        self._server.loop.call_later(REFUSED_S, lambda: self.connection.close(error))
