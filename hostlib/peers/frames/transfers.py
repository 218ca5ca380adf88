# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Frames by which a worker sends updates that a scheduler orders, and a server answers.

A worker numbers its updates to a server from 1 on. It begins one with TRANSFER; PIECEs with its
bytes follow, those of several updates in any order. The server answers COMMITTED or DENIED.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple, Self

from ...errors import PeerProtocolError
from .header import Frame, FrameKind, pack_header

_TRANSFER: Final = struct.Struct("!QQQQdIII")
_IS_GRANTED: Final = 1
"""Flag of TRANSFER."""
_U32: Final = (1 << 32) - 1


class TransferFrame(NamedTuple):
    """TRANSFER: a worker begins to send an update of some keys."""

    number: int
    open_from: int
    """The lowest number of an update whose outcome the worker does not know."""
    transfer_id: int
    """At the scheduler; 0: the scheduler has not heard of it."""
    version: int
    """Of the model that the update was computed on."""
    sequence: int
    """Place in the commit sequence, if it is granted."""
    factor: float
    """Of the learning rate, if it is granted; else 1."""
    table: int
    num_keys: int
    num_bytes: int
    """Of the keys, and then their values, in the pieces."""
    is_granted: bool

    def pack(self) -> bytes:
        """Return the bytes of header and payload."""
        header = pack_header(
            FrameKind.TRANSFER,
            _TRANSFER.size,
            self.number,
            flags=_IS_GRANTED if self.is_granted else 0,
        )
        return header + _TRANSFER.pack(*self[1:-1])

    @classmethod
    def unpack(cls, frame: Frame, payload: memoryview) -> Self:
        """Return the frame. Raises PeerProtocolError."""
        if len(payload) != _TRANSFER.size:
            raise PeerProtocolError(f"a TRANSFER of {len(payload)} bytes")
        number, _, flags, *_ = frame.fields
        is_granted = bool(flags & _IS_GRANTED)
        return cls._make((number, *_TRANSFER.unpack(payload), is_granted))


class PieceFrame(NamedTuple):
    """PIECE: the next bytes of an update."""

    payload_bytes: int
    number: int

    def pack(self) -> bytes:
        """Return the header's bytes."""
        return pack_header(FrameKind.PIECE, self.payload_bytes, self.number)

    @classmethod
    def unpack(cls, frame: Frame) -> Self:
        """Return the frame of a PIECE header."""
        return cls(frame.payload_bytes, frame.fields[0])


class CommittedFrame(NamedTuple):
    """COMMITTED: the server has applied an update, durably if it keeps a log."""

    number: int
    version: int
    """Number of updates that the model contained with it; 64 bits."""
    delay: int
    """Number of updates between its version and itself, as far as the server still knows it."""

    def pack(self) -> bytes:
        """Return the header's bytes."""
        return pack_header(
            FrameKind.COMMITTED,
            sequence=self.number,
            first_lane=self.version >> 32,
            num_lanes=self.version & _U32,
            total=min(self.delay, _U32),
        )

    @classmethod
    def unpack(cls, frame: Frame) -> Self:
        """Return the frame of a COMMITTED header."""
        number, _, _, high, low, delay, _ = frame.fields
        return cls(number, high << 32 | low, delay)
