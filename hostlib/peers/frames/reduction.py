# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Frames of the host allreduce: segments of values, and lost members.

Values in payloads are little-endian: a worker of another byte order is refused at the handshake.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

from .header import Frame, FrameKind, pack_header


class ValueFlag(enum.IntEnum):
    """Flags of a segment of values. Not an IntFlag, whose operations take ten times as long."""

    WIDE = 1
    """The values are int64: a partial sum left the int32 range."""
    OVERFLOW = 2
    """A final sum left the int32 range and was saturated."""


class ValuesFrame(NamedTuple):
    """LANES: one segment of a reduction."""

    payload_bytes: int
    reduction: int
    """Its position among the reductions of its operation in this view, from 0."""
    step: int
    flags: int
    """Of ValueFlag."""
    first: int
    """Place of the segment's first value in the reduction."""
    num_values: int
    total: int
    """Values of the whole reduction."""
    tag: int
    """Names the tensor; all members must give the same tag."""

    def pack(self) -> bytes:
        """Return the header's bytes."""
        return pack_header(FrameKind.LANES, *self)

    @classmethod
    def unpack(cls, frame: Frame) -> ValuesFrame:
        """Return the frame of a LANES header."""
        return cls(frame.payload_bytes, *frame.fields)


class LostFrame(NamedTuple):
    """LOST: the sender has lost a member."""

    worker_id: int

    def pack(self) -> bytes:
        """Return the header's bytes."""
        return pack_header(FrameKind.LOST, sequence=self.worker_id)

    @classmethod
    def unpack(cls, frame: Frame) -> LostFrame:
        """Return the frame of a LOST header."""
        return cls(frame.fields[0])
