# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Fetching a retained result from another worker, over a connection of its own."""

from __future__ import annotations

import contextlib
from collections import deque
from concurrent.futures import Future, wait
from typing import final

from ..errors import (
    PeerClosedError,
    PeerError,
    PeerProtocolError,
    PeerUnreachableError,
    ResultForgottenError,
    ResultTimeoutError,
)
from .connection import Connection
from .event_loop import EventLoop
from .frames import FetchFrame, Frame, FrameKind
from .handshake import ClientHandshake, PeerCall
from .results import RetainedResult, describe_result

MAX_RESULT_BYTES = 1 << 35
"""A result of the largest tensor, with its exponents, is smaller."""
ANSWER_SHARE = 0.9
"""Share of the timeout that the other worker may wait for the tensor; the network has the rest."""


@final
class Fetch:
    """One request for a tensor's result; runs in the loop's thread, except for `result`."""

    def __init__(self, loop: EventLoop, call: PeerCall, tensor: int, *, timeout_s: float) -> None:
        self._loop = loop
        self._call = call
        self._worker_id = call.greeting.receiver
        self._tensor = tensor
        self._timeout_s = timeout_s
        self._handshake = ClientHandshake(call)
        self._connection: Connection | None = None
        self._is_accepted = False
        self._result: RetainedResult | None = None
        self._places: deque[memoryview] = deque()  # of the arrays that are not complete
        self._future: Future[RetainedResult] = Future()
        loop.post(self._open)

    def result(self) -> RetainedResult:
        """Return the result, which the other worker may still have to complete.

        Blocks, in the caller's thread. Raises ResultForgottenError, ResultTimeoutError,
        PeerUnreachableError, PeerRefusedError or PeerProtocolError, within about the timeout.
        """
        wait([self._future], self._timeout_s)
        if self._future.done():
            return self._future.result()
        is_accepted = self._may_be_accepted
        with contextlib.suppress(
            PeerClosedError
        ):  # the server of this worker is closed, and the connection with it
            self._loop.post(self._close)
        host, port = self._call.address
        if is_accepted:
            # The process may be in a call that lets no other thread run.
            raise ResultTimeoutError(f"worker at {host}:{port} did not answer in time")
        raise PeerUnreachableError(f"no worker answers at {host}:{port}")

    @property
    def _may_be_accepted(self) -> bool:
        """Ask the kernel, too: the loop may be held up, even before it has called."""
        connection = self._connection
        return self._is_accepted or connection is None or connection.is_established

    def _open(self) -> None:
        try:
            self._connection = self._call.connect(self._loop, self)
        except PeerError as error:
            self._future.set_exception(error)

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    # The connection calls the methods below.

    def target(self, connection: Connection, frame: Frame) -> memoryview | None:
        """Return room for the answer; pieces go to their place in the result's arrays."""
        room = self._handshake.room(frame)
        if room is not None:
            return room
        if frame.kind is not FrameKind.PIECE:
            return memoryview(bytearray(frame.payload_bytes))
        if not self._places or not 0 < frame.payload_bytes <= self._places[0].nbytes:
            raise PeerProtocolError(f"piece of {frame.payload_bytes} bytes out of place")
        return self._places[0]

    def on_frame(self, connection: Connection, frame: Frame, payload: memoryview) -> None:
        """Request the result after the greeting, then take the answer."""
        if self._handshake.take(connection, frame, payload):
            if frame.kind is FrameKind.CHALLENGE:
                answer_ms = int(self._timeout_s * ANSWER_SHARE * 1000)
                connection.send(FetchFrame(self._tensor, answer_ms))
        elif frame.kind is FrameKind.FORGOTTEN:
            raise ResultForgottenError(
                f"worker {self._worker_id} has forgotten the result of tensor {self._tensor}"
            )
        elif frame.kind is FrameKind.NOT_COMPLETE:
            raise ResultTimeoutError(
                f"tensor {self._tensor} was not complete at worker {self._worker_id} within"
                f" {self._timeout_s} s"
            )
        elif frame.kind is FrameKind.RESULT and self._result is None:
            self._begin(bytes(payload))
            self._finish_if_complete(connection)
        elif frame.kind is FrameKind.PIECE:
            rest = self._places.popleft()[frame.payload_bytes :]
            if rest.nbytes:
                self._places.appendleft(rest)
            self._finish_if_complete(connection)
        else:
            raise PeerProtocolError(f"{frame.kind.name} frame instead of a result")

    def on_drained(self, connection: Connection) -> None:
        """The other worker's kernel has accepted the connection."""
        self._is_accepted = True

    def on_closed(self, connection: Connection, error: PeerError) -> None:
        """Report the cause to the waiting thread."""
        if isinstance(error, PeerClosedError | PeerUnreachableError):
            host, port = self._call.address
            broken = PeerUnreachableError(f"worker at {host}:{port}: {error}")
            broken.__cause__ = error
            error = broken
        self._future.set_exception(error)

    def _begin(self, description: bytes) -> None:
        result = describe_result(description, MAX_RESULT_BYTES)
        if result.tensor != self._tensor:
            raise PeerProtocolError(f"result of tensor {result.tensor} instead of {self._tensor}")
        self._result = result
        self._places.extend(array.data.cast("B") for array in result.arrays() if array.size)

    def _finish_if_complete(self, connection: Connection) -> None:
        if self._result is not None and not self._places:
            connection.close()
            self._future.set_result(self._result)
