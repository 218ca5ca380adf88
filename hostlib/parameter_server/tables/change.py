# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What workers ask a server to change, as it is logged."""

from __future__ import annotations

import struct
from typing import Final, NamedTuple, Self

from ...errors import PeerProtocolError, StorageDamagedError
from ...peers.frames import FrameKind

_HEADER = struct.Struct("<BxxxIQQII")
HEADER_BYTES = _HEADER.size
CHANGES = frozenset(
    (
        FrameKind.ENTER,
        FrameKind.DEFINE,
        FrameKind.START,
        FrameKind.PUSH,
        FrameKind.RATE,
        FrameKind.ADVANCE,
        FrameKind.TRANSFER,
        FrameKind.SUM,
    )
)
UPDATES: Final = frozenset((FrameKind.TRANSFER, FrameKind.SUM))
"""Those that a scheduler plans; the numbers of other requests do not count them."""
_PLACEMENT: Final = struct.Struct("<II")
_RATE: Final = struct.Struct("=d")
_UPDATE: Final = struct.Struct("=dQ")
UPDATE_BYTES: Final = _UPDATE.size
"""Bytes of a ScheduledUpdate before the keys of a TRANSFER."""
MAX_OPEN_REQUESTS: Final = 1 << 14
"""Most requests of a worker without a receipt: servers remember denials of so many numbers."""


class ShardPlace(NamedTuple):
    """Which server of how many has the tables; the payload of a logged ENTER."""

    shard: int
    num_servers: int

    def pack(self) -> bytes:
        """Return the payload."""
        return _PLACEMENT.pack(*self)

    @classmethod
    def unpack(cls, payload: memoryview) -> Self:
        """Return what `pack` packed. Raises StorageDamagedError."""
        if len(payload) != _PLACEMENT.size:
            raise StorageDamagedError(f"an ENTER with {len(payload)} bytes in the log of a server")
        return cls(*_PLACEMENT.unpack(payload))

    def __str__(self) -> str:
        """Return what people call it."""
        return f"server {self.shard} of {self.num_servers}"


class ScheduledUpdate(NamedTuple):
    """The head of a TRANSFER's payload, before its keys and values."""

    factor: float
    """By which the values are multiplied before the optimiser has them."""
    open_from: int
    """The worker knows the outcome of all its updates before this number."""

    def pack_into(self, payload: memoryview) -> None:
        """Write the first UPDATE_BYTES."""
        _UPDATE.pack_into(payload, 0, *self)

    @classmethod
    def unpack(cls, payload: memoryview) -> Self:
        """Return what `pack_into` wrote. Raises StorageDamagedError."""
        if len(payload) < UPDATE_BYTES:
            raise StorageDamagedError(f"a TRANSFER of {len(payload)} bytes in the log of a server")
        return cls(*_UPDATE.unpack_from(payload))


class TableChange(NamedTuple):
    """A change of the tables; its payload is that of the worker's frame, but for ENTER."""

    kind: FrameKind
    """One of CHANGES."""
    worker_id: int
    incarnation: int
    """Of the worker's process."""
    number: int
    """In the worker's process, from 1; 0 of ENTER. UPDATES have numbers of their own."""
    table: int = 0
    """Its number; of ENTER, the worker's number of servers, 0 if it did not say."""
    num_keys: int = 0
    """Of PUSH, TRANSFER and SUM; of ENTER, the server's number of workers."""

    def pack(self) -> bytes:
        """Return the record's header."""
        return _HEADER.pack(*self)

    @classmethod
    def unpack(cls, record: memoryview) -> tuple[Self, memoryview]:
        """Return a record's request and payload. Raises StorageDamagedError."""
        if len(record) < HEADER_BYTES or record[0] not in CHANGES:
            raise StorageDamagedError(
                f"a record of {len(record)} bytes and kind {bytes(record[:1]).hex()} in the log of"
                " a parameter server; it is that of another release, or of another program"
            )
        kind, *rest = _HEADER.unpack_from(record)
        return cls(FrameKind(kind), *rest), record[HEADER_BYTES:]


def pack_rate(rate: float) -> bytes:
    """Return the payload of a RATE."""
    return _RATE.pack(rate)


def unpack_rate(payload: memoryview) -> float:
    """Return the learning rate of a RATE. Raises PeerProtocolError."""
    if len(payload) != _RATE.size:
        raise PeerProtocolError(f"a learning rate of {len(payload)} bytes")
    rate: float = _RATE.unpack(payload)[0]
    return rate
