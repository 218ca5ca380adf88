# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What members of an allreduce send each other, as transfers without keys.

The head of the transfer has the number of the allreduce in place of the transfer's id, the piece's
first byte in place of the version, and the kind in place of the table.
"""

from __future__ import annotations

import enum
import json
import struct
from dataclasses import dataclass
from typing import Any, Final, cast, final

import numpy as np

from ....control.stations.allreduce_terms import VALUE_BYTES
from ....errors import (
    ExchangeTimeoutError,
    HostlibError,
    MemberLostError,
    PeerMismatchError,
    PeerProtocolError,
)
from ...rules import Values
from ..update_port import IncomingUpdate

_SIZE: Final = struct.Struct("!Q")
MOST_TEXT: Final = 2048
"""Longest text of a failure, in characters."""


class MemberKind(enum.IntEnum):
    """Kinds of messages; those that belong to an allreduce without a grant have their own."""

    PART = 0
    """The sender's values of a piece, to its root."""
    SUM = 1
    """The sum of a piece, from its root."""
    DIRECT_PART = 2
    DIRECT_SUM = 3
    DIRECT = 4
    """The sender goes on without a grant: its vector's size."""
    FAILURE = 5
    """The sender's call has failed: the error, as JSON."""

    @property
    def is_direct(self) -> bool:
        """Whether it belongs to an allreduce without a grant."""
        return self in (MemberKind.DIRECT_PART, MemberKind.DIRECT_SUM, MemberKind.DIRECT)


@final
@dataclass(frozen=True, eq=False)
class MemberMessage:
    """A message that has come from another member; its memory is freed by `release`."""

    update: IncomingUpdate

    @property
    def sender(self) -> int:
        """The other member."""
        return self.update.worker_id

    @property
    def kind(self) -> MemberKind:
        """What it is. Raises PeerProtocolError."""
        try:
            return MemberKind(self.update.head.table)
        except ValueError as error:
            kind = self.update.head.table
            raise PeerProtocolError(f"members send nothing of the kind {kind}") from error

    @property
    def number(self) -> int:
        """Of the allreduce."""
        return self.update.head.transfer_id

    @property
    def start_byte(self) -> int:
        """Where its values begin in the vector."""
        return self.update.head.version

    @property
    def num_bytes(self) -> int:
        """Of its values."""
        return self.update.head.num_bytes

    @property
    def payload(self) -> memoryview:
        """All bytes, once they are there."""
        assert self.update.payload is not None, "it is whole"
        return self.update.payload[self.update.head_bytes :]

    def values(self) -> Values:
        """Return its values; `num_bytes` is that of a piece."""
        assert not self.num_bytes % VALUE_BYTES, "pieces have whole values"
        return np.frombuffer(self.payload, np.float32)

    def size_bytes(self) -> int:
        """Return the vector's size of a DIRECT. Raises PeerProtocolError."""
        if self.num_bytes != _SIZE.size:
            raise PeerProtocolError(f"a size of {self.num_bytes} bytes")
        (size,) = _SIZE.unpack(self.payload)
        return int(size)

    def error(self) -> HostlibError:
        """Return the error of a FAILURE."""
        return _error_of(bytes(self.payload), self.sender)


def pack_size(size_bytes: int) -> memoryview:
    """Return the payload of a DIRECT."""
    return memoryview(_SIZE.pack(size_bytes))


def pack_error(error: HostlibError) -> memoryview:
    """Return the payload of a FAILURE."""
    worker_ids: list[int] = []
    if isinstance(error, MemberLostError):
        worker_ids = [error.worker_id]
    elif isinstance(error, ExchangeTimeoutError):
        worker_ids = error.worker_ids
    text = str(error)[:MOST_TEXT]
    described = {"kind": type(error).__name__, "text": text, "worker_ids": worker_ids}
    return memoryview(json.dumps(described).encode())


def _error_of(payload: bytes, sender: int) -> HostlibError:
    """Return a member's error, as all others raise it."""
    try:
        described = cast("dict[str, Any]", json.loads(payload))
        kind, text = str(described["kind"]), f"{described['text']} (as worker {sender} says)"
        worker_ids = [int(each) for each in described["worker_ids"]]
    except (ValueError, KeyError, TypeError) as error:
        return PeerProtocolError(f"worker {sender} has failed, and says nothing usable: {error}")
    if kind == MemberLostError.__name__ and worker_ids:
        return MemberLostError(text, worker_ids[0])
    if kind == ExchangeTimeoutError.__name__:
        return ExchangeTimeoutError(text, worker_ids)
    return (PeerMismatchError if kind == PeerMismatchError.__name__ else PeerProtocolError)(text)
