# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Frames by which workers send models on to each other, as a server tells them.

The server tells one worker to send the answer to its pull on, and another one that its answer comes
like that. Between the two, MODEL begins the answer, and PIECEs with its bytes follow. The second
worker tells the server how that ended. If it fails, the server sends the answer itself.
"""

from __future__ import annotations

import socket
import struct
from typing import Final, NamedTuple, Self

from ...errors import PeerProtocolError
from .header import Frame, FrameKind, pack_header

MODEL_ID_BYTES: Final = 16
DIGEST_BYTES: Final = 32
_SEND_ON: Final = struct.Struct(f"!{MODEL_ID_BYTES}sQI4sH")
_COMING: Final = struct.Struct(f"!{MODEL_ID_BYTES}s{DIGEST_BYTES}sQ")
_MODEL: Final = struct.Struct(f"!{MODEL_ID_BYTES}sQ")
_IS_WHOLE: Final = 1
"""Flag of MODEL_CAME."""
_MOST_US: Final = (1 << 32) - 1


class SendOnFrame(NamedTuple):
    """SEND_ON: a server tells a worker to send the answer to its pull on, as it comes."""

    number: int
    """Of the pull, at the worker that gets this."""
    model_id: bytes
    """16 random bytes: what the answer is called between workers."""
    num_bytes: int
    """Of the answer."""
    worker_id: int
    """Who gets it next."""
    address: tuple[str, int]
    """Where that worker listens: a dotted IPv4 address, and a port."""

    def pack(self) -> bytes:
        """Return the bytes of header and payload."""
        host, port = self.address
        place = self.worker_id, socket.inet_aton(host), port
        header = pack_header(FrameKind.SEND_ON, _SEND_ON.size, self.number)
        return header + _SEND_ON.pack(self.model_id, self.num_bytes, *place)

    @classmethod
    def unpack(cls, frame: Frame, payload: memoryview) -> Self:
        """Return the frame. Raises PeerProtocolError."""
        _check_size(payload, _SEND_ON, "SEND_ON")
        model_id, num_bytes, worker_id, host, port = _SEND_ON.unpack(payload)
        return cls(frame.fields[0], model_id, num_bytes, worker_id, (socket.inet_ntoa(host), port))


class ModelComingFrame(NamedTuple):
    """MODEL_COMING: a server tells a worker that another one sends the answer to its pull."""

    number: int
    """Of the pull."""
    model_id: bytes
    digest: bytes
    """BLAKE2b of the answer, 32 bytes: what comes is of use only if it has this one."""
    num_bytes: int

    def pack(self) -> bytes:
        """Return the bytes of header and payload."""
        header = pack_header(FrameKind.MODEL_COMING, _COMING.size, self.number)
        return header + _COMING.pack(*self[1:])

    @classmethod
    def unpack(cls, frame: Frame, payload: memoryview) -> Self:
        """Return the frame. Raises PeerProtocolError."""
        _check_size(payload, _COMING, "MODEL_COMING")
        return cls(frame.fields[0], *_COMING.unpack(payload))


class ModelFrame(NamedTuple):
    """MODEL: a worker begins to send an answer on to another one."""

    number: int
    """Of the PIECEs that follow; the sender counts them for each connection."""
    model_id: bytes
    num_bytes: int

    def pack(self) -> bytes:
        """Return the bytes of header and payload."""
        header = pack_header(FrameKind.MODEL, _MODEL.size, self.number)
        return header + _MODEL.pack(self.model_id, self.num_bytes)

    @classmethod
    def unpack(cls, frame: Frame, payload: memoryview) -> Self:
        """Return the frame. Raises PeerProtocolError."""
        _check_size(payload, _MODEL, "MODEL")
        return cls(frame.fields[0], *_MODEL.unpack(payload))


class ModelCameFrame(NamedTuple):
    """MODEL_CAME: a worker tells its server what became of an answer from another worker."""

    number: int
    """Of the pull."""
    is_whole: bool
    """False: the server is to send the answer."""
    took_us: int
    """From its first byte to its last, in microseconds; at most 2^32 - 1."""

    def pack(self) -> bytes:
        """Return the header's bytes."""
        flags, took_us = _IS_WHOLE * self.is_whole, min(self.took_us, _MOST_US)
        return pack_header(FrameKind.MODEL_CAME, 0, self.number, flags=flags, total=took_us)

    @classmethod
    def unpack(cls, frame: Frame) -> Self:
        """Return the frame of a MODEL_CAME header."""
        number, _, flags, _, _, took_us, _ = frame.fields
        return cls(number, bool(flags & _IS_WHOLE), took_us)


class NotSentOnFrame(NamedTuple):
    """NOT_SENT_ON: a worker tells its server that it does not send an answer on."""

    number: int
    """Of its own pull."""

    def pack(self) -> bytes:
        """Return the header's bytes."""
        return pack_header(FrameKind.NOT_SENT_ON, sequence=self.number)

    @classmethod
    def unpack(cls, frame: Frame) -> Self:
        """Return the frame of a NOT_SENT_ON header."""
        return cls(frame.fields[0])


def declined(told: Frame) -> NotSentOnFrame | ModelCameFrame:
    """Return what a worker that relays nothing answers to SEND_ON or MODEL_COMING."""
    number = told.fields[0]
    if told.kind is FrameKind.SEND_ON:
        return NotSentOnFrame(number)
    return ModelCameFrame(number, is_whole=False, took_us=0)


def _check_size(payload: memoryview, form: struct.Struct, kind: str) -> None:
    if len(payload) != form.size:
        raise PeerProtocolError(f"a {kind} of {len(payload)} bytes")
