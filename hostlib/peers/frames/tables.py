# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Frames between a worker and the sparse tables of a parameter server.

A worker numbers its requests DEFINE, START, PUSH, RATE and ADVANCE to a server from 1 on, and sends
them in this order. It numbers its pulls by themselves.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, Self

from ...errors import PeerProtocolError
from .header import Frame, FrameKind, pack_header

_IS_PULL = 1
"""Flag of DENIED: of a pull, not of a request."""
_IS_MEASURED = 1
"""Flag of PUSH and PULL: the answer is to say how long this took at the server. Of RECEIPT: this
does."""
_WANTS_HOT = 2
"""Flag of ENTER: the worker can use hot rows."""
_IS_MODEL = 2
"""Flag of PULL: the scheduler may say when the rows travel."""
_MOST_US: Final = (1 << 32) - 1
_U32: Final = (1 << 32) - 1
_RECEIPT_BITS: Final = 48
_TIMES: Final = struct.Struct("!IIII")
MOST_TIMES: Final = 1 << 16
"""Pushes of which one RECEIPT has times."""


ServerTimes = tuple[int, int, int]
"""Where the time of a request at the server went, in microseconds; at most 2^32 - 1 each.

In the queue: from its arrival until its handler began. Then in the handler. Then the rest until its
answer was sent: waits for the log's disk, for slower workers, or for a receipt that it shares.
"""
NO_TIMES: Final[ServerTimes] = (0, 0, 0)


def server_times(queue_ns: int, proc_ns: int, wait_ns: int) -> ServerTimes:
    """Return times that were measured, in nanoseconds, as they travel."""
    if queue_ns + proc_ns + wait_ns > _MOST_US:  # after 4 s, look closer
        queue_us, proc_us, wait_us = (
            min(part // 1000, _MOST_US) for part in (queue_ns, proc_ns, wait_ns)
        )
        return queue_us, proc_us, wait_us
    return queue_ns // 1000, proc_ns // 1000, wait_ns // 1000


class EnterFrame(NamedTuple):
    """ENTER: the worker's process."""

    incarnation: int
    """64 bits that the process drew at random."""
    wants_hot: bool = False
    """Whether the worker wants HOT_ROWS and DECISIONS."""
    num_servers: int = 0
    """Over how many servers the worker spreads keys."""

    def pack(self) -> bytes:
        """Return the header's bytes."""
        flags = _WANTS_HOT * self.wants_hot
        return pack_header(
            FrameKind.ENTER, sequence=self.incarnation, flags=flags, total=self.num_servers
        )

    @classmethod
    def unpack(cls, frame: Frame) -> Self:
        """Return the frame of an ENTER header."""
        incarnation, _, flags, _, _, num_servers, _ = frame.fields
        return cls(incarnation, bool(flags & _WANTS_HOT), num_servers)


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
    version: int = 0
    """Of the server's tables; 64 bits."""

    def pack(self) -> bytes:
        """Return the header's bytes."""
        accepted, num_open, clock, identity, version = self
        parts = version >> 16 & 0xFFFF, version & 0xFFFF, version >> 32
        return pack_header(FrameKind.ENTERED, 0, accepted, *parts, num_open, clock, identity)

    @classmethod
    def unpack(cls, frame: Frame) -> Self:
        """Return the frame of an ENTERED header."""
        accepted, middle, low, high, num_open, clock, identity = frame.fields
        return cls(accepted, num_open, clock, identity, high << 32 | middle << 16 | low)


class TableFrame(NamedTuple):
    """DEFINE, START, PUSH, RATE, ADVANCE, PULL or ROWS."""

    kind: FrameKind
    payload_bytes: int
    number: int
    table: int = 0
    """Of START, PUSH, RATE, PULL and ROWS: the table's number, see TableDefinition."""
    num_keys: int = 0
    clock: int = 0
    """Of PULL: how many iterations the worker has ended."""
    is_measured: bool = False
    """Of PUSH and PULL: whether the worker wants the server's times with the answer."""
    is_model: bool = False
    """Of PULL: whether the rows are a model, which a transfer scheduler may plan."""

    def pack(self) -> bytes:
        """Return the header's bytes."""
        kind, payload_bytes, number, table, num_keys, clock, is_measured, is_model = self
        flags = _IS_MEASURED * is_measured | _IS_MODEL * is_model
        return pack_header(kind, payload_bytes, number, 0, flags, 0, num_keys, clock, table)

    @classmethod
    def unpack(cls, frame: Frame) -> Self:
        """Return the frame of a header of these kinds."""
        kind, payload_bytes, (number, _, flags, _, num_keys, clock, table) = frame
        if kind is FrameKind.ROWS:
            clock = flags = 0  # the server's times are in their place
        is_measured, is_model = bool(flags & _IS_MEASURED), bool(flags & _IS_MODEL)
        return cls(kind, payload_bytes, number, table, num_keys, clock, is_measured, is_model)


class RowsFrame(NamedTuple):
    """ROWS, with the server's times; they are zero if the worker does not want them.

    The payload ends with the version of the server's tables and the number of scheduled updates in
    them, 64 bits each in the machines' byte order. PIECEs with the pull's number may come before
    it: these are the beginning of the payload then, and this frame has the rest.
    """

    payload_bytes: int
    number: int
    table: int
    num_keys: int
    times: ServerTimes

    def pack(self) -> bytes:
        """Return the header's bytes."""
        payload_bytes, number, table, num_keys, (queue_us, proc_us, wait_us) = self
        wait = wait_us >> 16, wait_us & 0xFFFF
        fields = number, *wait, queue_us, num_keys, proc_us, table
        return pack_header(FrameKind.ROWS, payload_bytes, *fields)

    @classmethod
    def unpack(cls, frame: Frame) -> Self:
        """Return the frame of a ROWS header."""
        number, step, flags, queue_us, num_keys, proc_us, table = frame.fields
        times = queue_us, proc_us, step << 16 | flags
        return cls(frame.payload_bytes, number, table, num_keys, times)


class ReceiptFrame(NamedTuple):
    """RECEIPT: requests that were applied, or denied before."""

    number: int
    """This one and all before it."""
    payload_bytes: int = 0
    times: ServerTimes | None = None
    """Of this request, if it is a push that was measured; the payload has those of earlier ones."""
    version: int = 0
    """Of the tables, which hold the requests: its low 48 bits; see `whole_version`."""

    def pack(self) -> bytes:
        """Return the header's bytes."""
        number, payload_bytes, times, version = self
        flags = 0 if times is None else _IS_MEASURED
        high, low = version >> 32 & 0xFFFF, version & _U32
        return pack_header(
            FrameKind.RECEIPT, payload_bytes, number, high, flags, *(times or NO_TIMES), low
        )

    @classmethod
    def unpack(cls, frame: Frame) -> Self:
        """Return the frame of a RECEIPT header."""
        number, high, flags, queue_us, proc_us, wait_us, low = frame.fields
        times = (queue_us, proc_us, wait_us) if flags & _IS_MEASURED else None
        return cls(number, frame.payload_bytes, times, high << 32 | low)


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


def whole_version(received: int, known: int) -> int:
    """Return the version of a RECEIPT: the one that is nearest to another one of the server."""
    half = 1 << _RECEIPT_BITS - 1
    ahead = (received - known + half) % (2 * half) - half
    return known + ahead


def pack_times(times: Sequence[tuple[int, ServerTimes]]) -> bytes:
    """Return the payload of a RECEIPT: numbers of earlier pushes, and their times."""
    return b"".join(_TIMES.pack(number & _MOST_US, *each) for number, each in times[-MOST_TIMES:])


def unpack_times(payload: memoryview, last: int) -> Iterator[tuple[int, ServerTimes]]:
    """Yield numbers, and queue, proc and wait in microseconds, of the RECEIPT of number `last`.

    Raises PeerProtocolError.
    """
    if len(payload) % _TIMES.size:
        raise PeerProtocolError(f"a RECEIPT of {len(payload)} bytes")
    for low, queue_us, proc_us, wait_us in _TIMES.iter_unpack(payload):
        yield last - (last - low & _MOST_US), (queue_us, proc_us, wait_us)
