# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Fetching a retained result from another worker, with blocking calls and one deadline."""

from __future__ import annotations

import contextlib
import socket
import time
from typing import final

from ..errors import (
    PeerProtocolError,
    PeerRefusedError,
    PeerUnreachableError,
    ResultForgottenError,
    ResultTimeoutError,
)
from .connection import is_to_itself
from .frames import HEADER_BYTES, Frame, FrameKind, Greeting
from .results import RetainedResult, describe_result

MAX_RESULT_BYTES = 1 << 35
"""A result of the largest tensor, with its exponents, is smaller."""
ANSWER_SHARE = 0.9
"""Of the timeout, how much the other worker may wait for the tensor; the rest is for the way."""


@final
class _Stream:
    """A blocking connection with a deadline."""

    def __init__(self, address: tuple[str, int], source: str, deadline_s: float) -> None:
        self._address = address
        self._deadline_s = deadline_s
        try:
            self._socket = socket.create_connection(
                address, timeout=self._left_s(), source_address=(source, 0)
            )
        except OSError as error:
            raise PeerUnreachableError(
                f"no worker answers at {address[0]}:{address[1]}: {error}"
            ) from error
        if is_to_itself(self._socket):
            self._socket.close()
            raise PeerUnreachableError(f"no worker answers at {address[0]}:{address[1]}")

    def _left_s(self) -> float:
        return max(0.001, self._deadline_s - time.monotonic())

    def send(self, data: bytes) -> None:
        try:
            self._socket.settimeout(self._left_s())
            self._socket.sendall(data)
        except OSError as error:
            raise self._broken(error) from error

    def receive_into(self, place: memoryview) -> None:
        while place.nbytes:
            try:
                self._socket.settimeout(self._left_s())
                count = self._socket.recv_into(place)
            except TimeoutError as error:
                # Its kernel took the connection: it may be in a call that lets no thread run.
                raise ResultTimeoutError(
                    f"worker at {self._address[0]}:{self._address[1]} did not answer in time"
                ) from error
            except OSError as error:
                raise self._broken(error) from error
            if count == 0:
                raise self._broken("it closed the connection")
            place = place[count:]

    def frame(self) -> tuple[Frame, bytes]:
        """Return the next frame that is no heartbeat; pieces are read apart."""
        while True:
            header = bytearray(HEADER_BYTES)
            self.receive_into(memoryview(header))
            frame = Frame.unpack(header)
            if frame.kind is FrameKind.PIECE:
                return frame, b""
            payload = bytearray(frame.payload_bytes)
            self.receive_into(memoryview(payload))
            if frame.kind is FrameKind.REFUSED:
                raise PeerRefusedError(payload.decode(errors="replace"))
            if frame.kind is not FrameKind.HEARTBEAT:
                return frame, bytes(payload)

    def _broken(self, cause: object) -> PeerUnreachableError:
        return PeerUnreachableError(f"worker at {self._address[0]}:{self._address[1]}: {cause}")

    def close(self) -> None:
        self._socket.close()


def fetch_result(
    address: tuple[str, int],
    greeting: Greeting,
    tensor: int,
    *,
    timeout_s: float,
    source: str,
    token: str = "",
    limit_bytes: int = MAX_RESULT_BYTES,
) -> RetainedResult:
    """Fetch the result of `tensor` from the worker at `address`, waiting until it is complete.

    Raises ResultForgottenError, ResultTimeoutError, PeerUnreachableError, PeerRefusedError or
    PeerProtocolError, within about `timeout_s`.
    """
    with contextlib.closing(_Stream(address, source, time.monotonic() + timeout_s)) as stream:
        frame, nonce = stream.frame()
        if frame.kind is not FrameKind.CHALLENGE:
            raise PeerProtocolError(f"{frame.kind.name} frame instead of a challenge")
        proof = greeting.pack(token, nonce)
        stream.send(Frame(FrameKind.GREETING, payload_bytes=len(proof)).pack() + proof)
        answer_ms = int(timeout_s * ANSWER_SHARE * 1000)
        stream.send(Frame(FrameKind.FETCH, sequence=tensor, total=answer_ms).pack())
        frame, description = stream.frame()
        if frame.kind is FrameKind.FORGOTTEN:
            raise ResultForgottenError(
                f"worker {greeting.receiver} has forgotten the result of tensor {tensor}"
            )
        if frame.kind is FrameKind.NOT_COMPLETE:
            raise ResultTimeoutError(
                f"tensor {tensor} was not complete at worker {greeting.receiver} within"
                f" {timeout_s} s"
            )
        if frame.kind is not FrameKind.RESULT:
            raise PeerProtocolError(f"{frame.kind.name} frame instead of a result")
        result = describe_result(description, limit_bytes)
        if result.tensor != tensor:
            raise PeerProtocolError(f"result of tensor {result.tensor} instead of {tensor}")
        for array in result.arrays():
            if array.size:
                _receive_pieces(stream, array.data.cast("B"))
        return result


def _receive_pieces(stream: _Stream, place: memoryview) -> None:
    while place.nbytes:
        frame, _ = stream.frame()
        if frame.kind is not FrameKind.PIECE or not 0 < frame.payload_bytes <= place.nbytes:
            raise PeerProtocolError(f"{frame.kind.name} frame instead of a piece of a result")
        stream.receive_into(place[: frame.payload_bytes])
        place = place[frame.payload_bytes :]
