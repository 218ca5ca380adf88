# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Frames of switch groups: updates of several workers that a switch adds up on their path.

The server tells its workers of the switch rows by GROUP_LEASE. A worker joins by GROUP_JOIN the
group for which its update is granted. The server answers GROUP_BEGIN when all have joined, and
tells by GROUP_PROGRESS which sums have come; or it answers GROUP_OVER, before or after that: no sum
with the update counts.
"""

from __future__ import annotations

import ipaddress
import struct
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ...errors import PeerProtocolError
from .header import Frame, FrameKind, pack_header

Exponents = NDArray[np.int32]
"""One of each chunk; as in `hostlib.summation.quantization`."""
_WIRE_EXPONENT: Final = np.dtype(">i2")
_LEASE: Final = struct.Struct("!II4sIIIIIIII")
_JOIN: Final = struct.Struct("!QQQQIIIII")
_BEGIN: Final = struct.Struct("!QI")


class GroupLeaseFrame(NamedTuple):
    """GROUP_LEASE: the rows of a server's groups as one worker sees them."""

    generation: int = 0
    """Of the job's view; 0: there are no groups now."""
    tree_id: int = 0
    """In the header's `job_id` field."""
    switch_address: str = "0.0.0.0"  # noqa: S104 - of no switch
    switch_udp_port: int = 0
    child_id: int = 0
    """The worker's, in the header's `worker_id` field."""
    worker_bitmap: int = 0
    values_per_packet: int = 0
    first_row: int = 0
    num_rows: int = 0
    epoch: int = 0
    """Of all rows."""
    first_round: int = 0
    """Of all rows: the stream of chunks begins there."""

    def pack(self) -> bytes:
        """Return the bytes of header and payload."""
        address = ipaddress.IPv4Address(self.switch_address).packed
        payload = _LEASE.pack(self.generation, self.tree_id, address, *self[3:])
        return pack_header(FrameKind.GROUP_LEASE, len(payload)) + payload

    @classmethod
    def unpack(cls, payload: memoryview) -> Self:
        """Return the frame. Raises PeerProtocolError."""
        if len(payload) != _LEASE.size:
            raise PeerProtocolError(f"a GROUP_LEASE of {len(payload)} bytes")
        generation, tree_id, address, *rest = _LEASE.unpack(payload)
        found = cls._make((generation, tree_id, str(ipaddress.IPv4Address(address)), *rest))
        if generation and not (found.num_rows and found.values_per_packet):
            raise PeerProtocolError(f"a GROUP_LEASE without rows or lanes: {found}")
        return found


class GroupJoinFrame(NamedTuple):
    """GROUP_JOIN: a worker is to send an update together with others."""

    number: int
    """That the update would have in a TRANSFER; and so on."""
    open_from: int
    version: int
    transfer_id: int
    sequence: int
    table: int
    num_keys: int
    num_values: int
    """Of all keys."""
    keys_checksum: int
    """CRC-32 of the keys' bytes."""
    generation: int
    """Of the GROUP_LEASE that the worker knows."""
    exponents: Exponents
    """That the worker's values need, by chunk."""

    def pack(self) -> bytes:
        """Return the bytes of header and payload."""
        payload = _JOIN.pack(*self[1:-1]) + _pack_exponents(self.exponents)
        return pack_header(FrameKind.GROUP_JOIN, len(payload), self.number) + payload

    @classmethod
    def unpack(cls, frame: Frame, payload: memoryview) -> Self:
        """Return the frame. Raises PeerProtocolError."""
        fields, exponents = _split(_JOIN, frame, payload)
        return cls._make((frame.fields[0], *fields, exponents))


class GroupBeginFrame(NamedTuple):
    """GROUP_BEGIN: the group is complete, and its members send their chunks to the switch."""

    number: int
    """Of the member's update."""
    first: int
    """Number of the group's first chunk in the stream."""
    num_members: int
    exponents: Exponents
    """The greatest of all members', by chunk."""

    def pack(self) -> bytes:
        """Return the bytes of header and payload."""
        payload = _BEGIN.pack(self.first, self.num_members) + _pack_exponents(self.exponents)
        return pack_header(FrameKind.GROUP_BEGIN, len(payload), self.number) + payload

    @classmethod
    def unpack(cls, frame: Frame, payload: memoryview) -> Self:
        """Return the frame. Raises PeerProtocolError."""
        (first, num_members), exponents = _split(_BEGIN, frame, payload)
        if not 1 <= num_members <= 32:
            raise PeerProtocolError(f"a GROUP_BEGIN of {num_members} members")
        return cls(frame.fields[0], first, num_members, exponents)


class GroupProgressFrame(NamedTuple):
    """GROUP_PROGRESS: the server has the sums of these chunks; their bits are the payload."""

    first: int
    """Of the group."""
    done: int
    """It has all chunks before."""
    num_bits: int
    """Bit i of byte i / 8, from the least significant: it has chunk `done` + i."""
    num_marked: int
    """Sums that have met congestion, since the frame before."""

    def pack(self) -> bytes:
        """Return the header's bytes."""
        return pack_header(
            FrameKind.GROUP_PROGRESS,
            -(-self.num_bits // 8),
            self.first,
            first_lane=self.done,
            num_lanes=self.num_bits,
            total=self.num_marked,
        )

    @classmethod
    def unpack(cls, frame: Frame) -> Self:
        """Return the frame. Raises PeerProtocolError."""
        first, _, _, done, num_bits, num_marked, _ = frame.fields
        if frame.payload_bytes != -(-num_bits // 8):
            raise PeerProtocolError(f"{num_bits} bits in {frame.payload_bytes} bytes")
        return cls(first, done, num_bits, num_marked)


class GroupOverFrame(NamedTuple):
    """GROUP_OVER: an update is in no group, and no sum with it counts."""

    number: int

    def pack(self) -> bytes:
        """Return the header's bytes."""
        return pack_header(FrameKind.GROUP_OVER, sequence=self.number)

    @classmethod
    def unpack(cls, frame: Frame) -> Self:
        """Return the frame of a GROUP_OVER header."""
        return cls(frame.fields[0])


def _pack_exponents(exponents: Exponents) -> bytes:
    return exponents.astype(_WIRE_EXPONENT).tobytes()


def _split(
    head: struct.Struct, frame: Frame, payload: memoryview
) -> tuple[tuple[int, ...], Exponents]:
    count, rest = divmod(len(payload) - head.size, _WIRE_EXPONENT.itemsize)
    if rest or count < 1:
        raise PeerProtocolError(f"a {frame.kind.name} of {len(payload)} bytes")
    exponents = np.frombuffer(payload[head.size :], _WIRE_EXPONENT)
    return head.unpack(payload[: head.size]), exponents.astype(np.int32)
