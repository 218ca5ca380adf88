# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Frames between a worker and the sparse tables of a parameter server.

A worker numbers its requests DEFINE, START, PUSH and ADVANCE to a server from 1 on, and sends them
in this order. It numbers its pulls by themselves.
"""

from __future__ import annotations

from typing import NamedTuple, Self

from .header import Frame, FrameKind, pack_header

_IS_PULL = 1
"""Flag of DENIED: of a pull, not of a request."""


class EnterFrame(NamedTuple):
    """ENTER: the worker's process."""

    incarnation: int
    """64 bits that the process drew at random."""

    def pack(self) -> bytes:
        """Return the header's bytes."""
        return pack_header(FrameKind.ENTER, sequence=self.incarnation)

    @classmethod
    def unpack(cls, frame: Frame) -> Self:
        """Return the frame of an ENTER header."""
        return cls(frame.fields[0])


class EnteredFrame(NamedTuple):
    """ENTERED: what the server knows of the worker."""

    accepted: int
    """The highest number of a request of this process that need not come again."""
    num_open: int
    """Of the last so many of these, some wait for the log; all before have their receipt here."""
    clock: int
    """How many iterations the worker has ended, in all its processes."""
    identity: int
    """32 bits that stay the same as long as the server keeps what it has taken."""

    def pack(self) -> bytes:
        """Return the header's bytes."""
        accepted, num_open, clock, identity = self
        return pack_header(
            FrameKind.ENTERED, sequence=accepted, num_lanes=num_open, total=clock, tag=identity
        )

    @classmethod
    def unpack(cls, frame: Frame) -> Self:
        """Return the frame of an ENTERED header."""
        accepted, _, _, _, num_open, clock, identity = frame.fields
        return cls(accepted, num_open, clock, identity)


class TableFrame(NamedTuple):
    """DEFINE, START, PUSH, ADVANCE, PULL or ROWS."""

    kind: FrameKind
    payload_bytes: int
    number: int
    table: int = 0
    """Of START, PUSH, PULL and ROWS: the table's number, see TableDefinition."""
    num_keys: int = 0
    clock: int = 0
    """Of PULL: how many iterations the worker has ended."""

    def pack(self) -> bytes:
        """Return the header's bytes."""
        kind, payload_bytes, number, table, num_keys, clock = self
        return pack_header(kind, payload_bytes, number, num_lanes=num_keys, total=clock, tag=table)

    @classmethod
    def unpack(cls, frame: Frame) -> Self:
        """Return the frame of a header of these kinds."""
        number, _, _, _, num_keys, clock, table = frame.fields
        return cls(frame.kind, frame.payload_bytes, number, table, num_keys, clock)


class ReceiptFrame(NamedTuple):
    """RECEIPT: requests that were applied, or denied before."""

    number: int
    """This one and all before it."""

    def pack(self) -> bytes:
        """Return the header's bytes."""
        return pack_header(FrameKind.RECEIPT, sequence=self.number)

    @classmethod
    def unpack(cls, frame: Frame) -> Self:
        """Return the frame of a RECEIPT header."""
        return cls(frame.fields[0])


class DeniedFrame(NamedTuple):
    """DENIED: a request or a pull has no effect; the payload gives the reason as JSON."""

    payload_bytes: int
    number: int
    is_pull: bool

    def pack(self) -> bytes:
        """Return the header's bytes."""
        flags = _IS_PULL if self.is_pull else 0
        return pack_header(FrameKind.DENIED, self.payload_bytes, self.number, flags=flags)

    @classmethod
    def unpack(cls, frame: Frame) -> Self:
        """Return the frame of a DENIED header."""
        number, _, flags, *_ = frame.fields
        return cls(frame.payload_bytes, number, bool(flags & _IS_PULL))
