# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Frames by which a worker sends updates that a scheduler orders, and a server answers.

A worker numbers its updates to a server from 1 on. It begins one with TRANSFER; PIECEs with its
bytes follow, those of several updates in any order. The server answers COMMITTED or DENIED.

A worker that has added up updates of others begins their sum with SUM, which names them. If a sum
has no effect, the server has the workers of its updates SEND_AGAIN.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple, Self

from ...errors import PeerProtocolError
from .header import Frame, FrameKind, pack_header

_TRANSFER: Final = struct.Struct("!QQQQdIII")
_SUMMED: Final = struct.Struct("!IQQQQQQ")
_IS_GRANTED: Final = 1
"""Flag of TRANSFER."""
_HAS_LEFT_GROUP: Final = 2
"""Likewise."""
MOST_SUMMED: Final = 64
"""Updates in a sum."""
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
    has_left_group: bool = False
    """It was to come in a sum."""

    def pack(self) -> bytes:
        """Return the bytes of header and payload."""
        flags = _IS_GRANTED * self.is_granted | _HAS_LEFT_GROUP * self.has_left_group
        header = pack_header(FrameKind.TRANSFER, _TRANSFER.size, self.number, flags=flags)
        return header + _TRANSFER.pack(*self[1:-2])

    @classmethod
    def unpack(cls, frame: Frame, payload: memoryview) -> Self:
        """Return the frame. Raises PeerProtocolError."""
        if len(payload) != _TRANSFER.size:
            raise PeerProtocolError(f"a TRANSFER of {len(payload)} bytes")
        number, _, flags, *_ = frame.fields
        is_granted, has_left = bool(flags & _IS_GRANTED), bool(flags & _HAS_LEFT_GROUP)
        return cls._make((number, *_TRANSFER.unpack(payload), is_granted, has_left))


class SummedUpdate(NamedTuple):
    """One of the updates in a sum."""

    worker_id: int
    incarnation: int
    """Of the worker's process."""
    number: int
    """That it would have in a TRANSFER; and so on."""
    open_from: int
    transfer_id: int
    version: int
    sequence: int


class SumFrame(NamedTuple):
    """SUM: a worker begins to send the sum of granted updates, already scaled, by key."""

    head: TransferFrame
    """Of the sum: a number of the sending worker, table and size; the version is the oldest."""
    members: tuple[SummedUpdate, ...]
    """1 to MOST_SUMMED, by place in the commit sequence."""

    def pack(self) -> bytes:
        """Return the bytes of header and payload."""
        members = b"".join(_SUMMED.pack(*each) for each in self.members)
        size = _TRANSFER.size + len(members)
        header = pack_header(FrameKind.SUM, size, self.head.number)
        return header + _TRANSFER.pack(*self.head[1:-2]) + members

    @classmethod
    def unpack(cls, frame: Frame, payload: memoryview) -> Self:
        """Return the frame. Raises PeerProtocolError."""
        count, rest = divmod(len(payload) - _TRANSFER.size, _SUMMED.size)
        if rest or not 1 <= count <= MOST_SUMMED:
            raise PeerProtocolError(f"a SUM of {len(payload)} bytes")
        fields = _TRANSFER.unpack(payload[: _TRANSFER.size])
        head = TransferFrame._make((frame.fields[0], *fields, True, False))
        members = _SUMMED.iter_unpack(payload[_TRANSFER.size :])
        return cls(head, tuple(SummedUpdate._make(each) for each in members))


class SendAgainFrame(NamedTuple):
    """SEND_AGAIN: a worker sends the update with this number by itself."""

    number: int

    def pack(self) -> bytes:
        """Return the header's bytes."""
        return pack_header(FrameKind.SEND_AGAIN, sequence=self.number)

    @classmethod
    def unpack(cls, frame: Frame) -> Self:
        """Return the frame of a SEND_AGAIN header."""
        return cls(frame.fields[0])


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
