# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Frames between workers: a header of 36 bytes in network order, then the payload.

```text
  0       2   3   4         8          16     18      20      24      28      32    36
  | magic | v | k | payload | sequence | step | flags | first | lanes | total | tag |
```

Lanes in payloads are little-endian; a worker of another byte order is refused at the handshake.
"""

from __future__ import annotations

import enum
import hashlib
import hmac
import struct
import sys
from typing import NamedTuple

from ..errors import PeerProtocolError, PeerRefusedError

MAGIC = 0x5346
FRAME_VERSION = 2
HEADER_BYTES = 36
NONCE_BYTES = 16
PIECE_BYTES = 1 << 20
"""Results travel in pieces of at most this size."""

MAX_PAIR_BYTES = 1 << 26
"""Largest pair of a parameter server."""
MAX_FACTOR_BYTES = 1 << 30
"""Largest block of sufficient factors."""

_HEADER = struct.Struct("!HBBIQHHIIII")
_GREETING = struct.Struct("!IIHHBB32s")


class FrameKind(enum.IntEnum):
    """What a frame is."""

    CHALLENGE = 1
    """Server's first frame: a nonce."""
    GREETING = 2
    """Client's first frame: who, for what, and a proof of the secret."""
    WELCOME = 3
    """The server has entered the view: lanes may come."""
    REFUSED = 4
    """A text with the reason; the connection closes."""
    HEARTBEAT = 5
    LANES = 8
    """One segment of a reduction."""
    LOST = 9
    """The sender lost the member whose worker id is in `sequence`."""
    FETCH = 10
    """Asks for the tensor in `sequence`, within `total` milliseconds."""
    RESULT = 11
    """Describes a result as JSON; pieces follow."""
    PIECE = 12
    FORGOTTEN = 13
    NOT_COMPLETE = 14
    DECLARE = 15
    """Describes a worker's keys to a parameter server, as JSON."""
    UPDATE = 16
    """A worker's values of one pair of a key."""
    INITIAL = 17
    """Values that a pair has before the first update."""
    FACTORS = 18
    """Sufficient factors of a layer: `num_lanes` rows of u, then as many of v."""
    ANSWER = 19
    """What a parameter server makes of a pair's updates."""
    FAILED = 20
    """Why an exchange will not complete, as JSON."""
    RESTORE = 21
    """Asks a parameter server for its checkpoints, or to go back to one."""


class Purpose(enum.IntEnum):
    """What a connection is for. Each operation has connections of its own, as on the switch."""

    REDUCE_ADD = 1
    REDUCE_MAX = 2
    FETCH = 3
    PARAMETERS = 4
    FACTORS = 5


class LaneFlag(enum.IntFlag):
    """Flags of LANES frames."""

    WIDE = 1
    """Lanes are int64: a partial sum left the int32 range."""
    OVERFLOW = 2
    """A final sum left the int32 range and was saturated."""


MAX_PAYLOAD_BYTES = {
    FrameKind.CHALLENGE: NONCE_BYTES,
    FrameKind.GREETING: _GREETING.size,
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
    FrameKind.INITIAL: MAX_PAIR_BYTES,
    FrameKind.FACTORS: MAX_FACTOR_BYTES,
    FrameKind.ANSWER: MAX_PAIR_BYTES,
    FrameKind.FAILED: 1 << 16,
    FrameKind.RESTORE: 1 << 12,
}


class Frame(NamedTuple):
    """The header of a frame; fields that a kind does not name are 0."""

    kind: FrameKind
    payload_bytes: int = 0
    sequence: int = 0
    """LANES: position of the reduction among those of its operation in this view, from 0.
    UPDATE, FACTORS, ANSWER: the iteration."""
    step: int = 0
    flags: int = 0
    first_lane: int = 0
    num_lanes: int = 0
    total: int = 0
    """LANES: lanes of the whole reduction."""
    tag: int = 0
    """LANES: what is reduced; all members must say the same."""

    def pack(self) -> bytes:
        """Return the header's bytes."""
        return _HEADER.pack(
            MAGIC,
            FRAME_VERSION,
            self.kind,
            self.payload_bytes,
            self.sequence,
            self.step,
            self.flags,
            self.first_lane,
            self.num_lanes,
            self.total,
            self.tag,
        )

    @classmethod
    def unpack(cls, header: bytes | bytearray | memoryview) -> Frame:
        """Return the frame of a header's bytes; raise PeerProtocolError for others."""
        magic, version, kind, payload_bytes, *rest = _HEADER.unpack(header)
        if magic != MAGIC:
            raise PeerProtocolError(f"no frame: it starts with 0x{magic:04x}")
        if version != FRAME_VERSION:
            raise PeerProtocolError(
                f"frame version {version}; this library speaks {FRAME_VERSION}, install one"
                " release everywhere"
            )
        if kind not in MAX_PAYLOAD_BYTES:
            raise PeerProtocolError(f"unknown frame kind {kind}")
        limit = MAX_PAYLOAD_BYTES[FrameKind(kind)]
        if payload_bytes > limit:
            raise PeerProtocolError(
                f"{FrameKind(kind).name} frame of {payload_bytes} bytes; at most {limit} may come"
            )
        return cls(FrameKind(kind), payload_bytes, *rest)


class Greeting(NamedTuple):
    """Who connects, to whom and for what."""

    job: int
    generation: int
    sender: int
    """Worker id of the connecting end."""
    receiver: int
    """Worker id of the listening end."""
    purpose: Purpose

    def pack(self, token: str, nonce: bytes) -> bytes:
        """Return the payload: the fields and a proof that the sender knows the token."""
        fields = _GREETING.pack(*self, sys.byteorder == "little", b"")
        proof = _proof(token, nonce, fields)
        return fields[: -len(proof)] + proof

    @classmethod
    def unpack(cls, payload: bytes, token: str, nonce: bytes) -> Greeting:
        """Return the greeting.

        Raises PeerProtocolError if it is malformed, PeerRefusedError if the secret is wrong.
        """
        if len(payload) != _GREETING.size:
            raise PeerProtocolError(f"greeting of {len(payload)} bytes")
        job, generation, sender, receiver, purpose, is_little, proof = _GREETING.unpack(payload)
        fields = payload[: -len(proof)] + bytes(len(proof))
        if not hmac.compare_digest(proof, _proof(token, nonce, fields)):
            raise PeerRefusedError("wrong secret; give all workers of the job the same token")
        if is_little != (sys.byteorder == "little"):
            raise PeerRefusedError("the workers' byte orders differ; run them on like machines")
        if purpose not in list(Purpose):
            raise PeerProtocolError(f"unknown purpose {purpose}")
        return cls(job, generation, sender, receiver, Purpose(purpose))


def _proof(token: str, nonce: bytes, fields: bytes) -> bytes:
    return hmac.digest(token.encode(), nonce + fields, hashlib.sha256)
