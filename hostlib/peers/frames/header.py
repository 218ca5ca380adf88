# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The header of all frames: 36 bytes in network order, then the payload.

```text
  0       2   3   4         8          16     18      20      24      28      32    36
  | magic | v | k | payload | sequence | step | flags | first | lanes | total | tag |
```

The fields from `sequence` on belong to the kind: a class per kind names them.
"""

from __future__ import annotations

import enum
import struct
from typing import NamedTuple, Protocol

from ...errors import PeerProtocolError

MAGIC = 0x5346
FRAME_VERSION = 2
HEADER_BYTES = 36
NONCE_BYTES = 16
GREETING_BYTES = 46
PIECE_BYTES = 1 << 20
"""Results travel in pieces of at most this size."""
MAX_PAIR_BYTES = 1 << 26
"""Largest pair of a parameter server."""
MAX_FACTOR_BYTES = 1 << 30
"""Largest block of sufficient factors."""
MAX_BATCH_BYTES = 1 << 26
"""Largest batch of keys with their rows or gradients."""

_HEADER = struct.Struct("!HBBIQHHIIII")
_TLS_HANDSHAKE = 0x1603
"""Start of the first record of a TLS client, RFC 8446 section 5.1."""


class FrameKind(enum.IntEnum):
    """The kinds of frames; 6, 7, 17 and 46 to 59 are unused."""

    CHALLENGE = 1
    """The server's first frame: a nonce."""
    GREETING = 2
    """The client's first frame: who it is, what it wants, and a proof of the secret."""
    WELCOME = 3
    """The server has entered the view: frames of the purpose may come."""
    REFUSED = 4
    """A text with the reason; the connection closes."""
    HEARTBEAT = 5
    LANES = 8
    """One segment of a reduction."""
    LOST = 9
    """The sender lost a member."""
    FETCH = 10
    """Asks for the result of a tensor."""
    RESULT = 11
    """Describes a result as JSON; pieces follow."""
    PIECE = 12
    """The next bytes of a result, of an update after TRANSFER, or of a model after MODEL."""
    FORGOTTEN = 13
    NOT_COMPLETE = 14
    DECLARE = 15
    """Describes a worker's keys to a parameter server, as JSON."""
    UPDATE = 16
    """A worker's values of one pair of a key."""
    FACTORS = 18
    """Sufficient factors of a layer: rows of u, then as many of v."""
    ANSWER = 19
    """The sum or mean of a pair's updates from a parameter server."""
    FAILED = 20
    """Why an exchange will not complete, as JSON."""
    RATE = 21
    """A table's learning rate from now on: a float64 in the machines' byte order."""
    ENTER = 22
    """A worker's first frame to the tables of a parameter server: which process it is."""
    ENTERED = 23
    """The answer: how many requests of this process the server has taken, and its clock."""
    DEFINE = 24
    """Describes a sparse table, as JSON."""
    PUSH = 25
    """Keys of a table, then their gradients."""
    ADVANCE = 26
    """The worker has sent all pushes of its iteration."""
    RECEIPT = 27
    """All requests of the worker up to a number are applied, and durable if there is a log.

    The payload has the server's times of those pushes for which the worker wants them.
    """
    PULL = 28
    """Keys of a table whose rows the worker wants."""
    ROWS = 29
    """The answer: the keys' values, their numbers of updates, and the tables' version."""
    DENIED = 30
    """Why a request has no effect, as JSON."""
    START = 31
    """Keys of a table, then first values of rows that have none."""
    HOT_ROWS = 32
    """The hot rows of a server as one worker sees them."""
    DECISIONS = 33
    """Rounds of hot rows that the server has decided."""
    DECIDE = 34
    """Rounds of hot rows that the worker waits for."""
    SKETCH = 35
    """How often a worker has pushed to which keys of a table, in sampled mini-batches."""
    BATCHES = 36
    """The keys of some mini-batches of a table, which say which keys come together."""
    TRANSFER = 37
    """A worker begins to send an update that a scheduler may have granted; pieces follow."""
    COMMITTED = 38
    """The server has applied such an update."""
    SUM = 39
    """A worker begins to send the sum of several such updates; pieces follow."""
    SEND_AGAIN = 40
    """A sum with such an update has no effect: its worker sends the update by itself."""
    SEND_ON = 41
    """A worker is to send the answer to its pull on to another worker."""
    MODEL_COMING = 42
    """The answer to a pull comes from another worker."""
    MODEL_CAME = 43
    """What became of such an answer."""
    NOT_SENT_ON = 44
    """A worker does not send an answer on."""
    MODEL = 45
    """A worker begins to send an answer on to another one; pieces follow."""
    GROUP_LEASE = 60
    """The switch rows in which groups of a server's workers add up their updates."""
    GROUP_JOIN = 61
    """A worker would send an update in such a group."""
    GROUP_BEGIN = 62
    """The group is complete: its members send to the switch."""
    GROUP_PROGRESS = 63
    """The sums of a group that the server has."""
    GROUP_OVER = 64
    """An update is in no group."""


MAX_PAYLOAD_BYTES = {
    FrameKind.CHALLENGE: NONCE_BYTES,
    FrameKind.GREETING: GREETING_BYTES,
    FrameKind.WELCOME: 0,
    FrameKind.REFUSED: 1024,
    FrameKind.HEARTBEAT: 0,
    FrameKind.LANES: 1 << 20,
    FrameKind.LOST: 0,
    FrameKind.FETCH: 0,
    FrameKind.RESULT: 1 << 16,
    FrameKind.PIECE: PIECE_BYTES,
    FrameKind.FORGOTTEN: 0,
    FrameKind.NOT_COMPLETE: 0,
    FrameKind.DECLARE: 1 << 24,
    FrameKind.UPDATE: MAX_PAIR_BYTES,
    FrameKind.FACTORS: MAX_FACTOR_BYTES,
    FrameKind.ANSWER: MAX_PAIR_BYTES,
    FrameKind.FAILED: 1 << 16,
    FrameKind.RATE: 8,
    FrameKind.ENTER: 0,
    FrameKind.ENTERED: 0,
    FrameKind.DEFINE: 1 << 16,
    FrameKind.PUSH: MAX_BATCH_BYTES,
    FrameKind.ADVANCE: 0,
    FrameKind.RECEIPT: 1 << 20,
    FrameKind.PULL: MAX_BATCH_BYTES,
    FrameKind.ROWS: MAX_BATCH_BYTES,
    FrameKind.DENIED: 1 << 16,
    FrameKind.START: MAX_BATCH_BYTES,
    FrameKind.HOT_ROWS: MAX_BATCH_BYTES,
    FrameKind.DECISIONS: 1 << 20,
    FrameKind.DECIDE: 1 << 20,
    FrameKind.SKETCH: MAX_BATCH_BYTES,
    FrameKind.BATCHES: 1 << 20,
    FrameKind.TRANSFER: 64,
    FrameKind.COMMITTED: 0,
    FrameKind.SUM: 1 << 12,
    FrameKind.SEND_AGAIN: 0,
    FrameKind.SEND_ON: 64,
    FrameKind.MODEL_COMING: 64,
    FrameKind.MODEL_CAME: 0,
    FrameKind.NOT_SENT_ON: 0,
    FrameKind.MODEL: 64,
    FrameKind.GROUP_LEASE: 64,
    FrameKind.GROUP_JOIN: 1 << 22,
    FrameKind.GROUP_BEGIN: 1 << 22,
    FrameKind.GROUP_PROGRESS: 1 << 12,
    FrameKind.GROUP_OVER: 0,
}


_LIMITS = {kind.value: (kind, limit) for kind, limit in MAX_PAYLOAD_BYTES.items()}


class Packable(Protocol):
    """A header that can be sent."""

    def pack(self) -> bytes:
        """Return the header's bytes."""
        ...


class Frame(NamedTuple):
    """The header of a received frame, or of a kind without fields of its own."""

    kind: FrameKind
    payload_bytes: int = 0
    fields: tuple[int, ...] = (0, 0, 0, 0, 0, 0, 0)
    """All fields from `sequence` on; the class of the kind names them."""

    def pack(self) -> bytes:
        """Return the header's bytes."""
        return pack_header(self.kind, self.payload_bytes, *self.fields)

    @classmethod
    def unpack(cls, header: bytes | bytearray | memoryview) -> Frame:
        """Return the frame of a header's bytes; raise PeerProtocolError for any other bytes."""
        values = _HEADER.unpack(header)
        magic, version, number, payload_bytes = values[:4]
        if magic != MAGIC:
            hint = ""
            if magic == _TLS_HANDSHAKE:
                hint = ": the other end speaks TLS; give this end credentials, too"
            raise PeerProtocolError(f"the bytes are no frame: they start with 0x{magic:04x}{hint}")
        if version != FRAME_VERSION:
            raise PeerProtocolError(
                f"frame version {version}; this library has {FRAME_VERSION}: install the same"
                " release on all workers"
            )
        if number not in _LIMITS:
            raise PeerProtocolError(f"unknown frame kind {number}")
        kind, limit = _LIMITS[number]
        if payload_bytes > limit:
            raise PeerProtocolError(
                f"{kind.name} frame of {payload_bytes} bytes; at most {limit} are allowed"
            )
        return cls(kind, payload_bytes, values[4:])


def pack_header(  # noqa: PLR0913, PLR0917 - the header's fields, in their order
    kind: FrameKind,
    payload_bytes: int = 0,
    sequence: int = 0,
    step: int = 0,
    flags: int = 0,
    first_lane: int = 0,
    num_lanes: int = 0,
    total: int = 0,
    tag: int = 0,
) -> bytes:
    """Return the bytes of a header; for the classes of this package."""
    return _HEADER.pack(
        MAGIC,
        FRAME_VERSION,
        kind,
        payload_bytes,
        sequence,
        step,
        flags,
        first_lane,
        num_lanes,
        total,
        tag,
    )
