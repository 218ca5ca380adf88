# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Format of a log segment: a header, then records. All numbers are little-endian.

```text
segment header, 48 bytes              record, a multiple of 8 bytes
  0  magic "SFLOGSEG"                   0  marker, u32
  8  format version, u32                4  length of the payload, u32
 12  identity of the log, UUID          8  lsn, u64
 28  first lsn, u64                    16  lsn of the record before, u64
 36  lsn of the record before, u64     24  last lsn that was durable then, u64
 44  CRC-32 of bytes 0 to 43, u32      32  CRC-32 of the payload, u32
                                       36  CRC-32 of bytes 0 to 35, u32
                                       40  payload, then zeros up to a multiple of 8
```

The CRCs of a record start from the CRC of the identity, so a record of another log is not valid
here. Each record names the one before it, so a missing record shows. "Durable then" is the last
lsn that was durable before the record was written. It tells a record that a loss of power left
incomplete from a durable one that was damaged later: only the second has a successor that was
written after it was durable.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

FORMAT_VERSION: Final = 1
MARKER: Final = 0xD1A75EED
MAX_PAYLOAD_BYTES: Final = 1 << 30
_MAGIC: Final = b"SFLOGSEG"
_SEGMENT: Final = struct.Struct("<8sI16sQQ")
_RECORD: Final = struct.Struct("<IIQQQI")
_CRC: Final = struct.Struct("<I")
SEGMENT_HEADER_BYTES: Final = _SEGMENT.size + _CRC.size
RECORD_HEADER_BYTES: Final = _RECORD.size + _CRC.size


class SegmentHeader(NamedTuple):
    """What the head of a segment's file says."""

    identity: UUID
    first_lsn: int
    """Least lsn that a record of the segment may have; also the file's name."""
    previous_lsn: int
    """Lsn of the record before the segment, 0 if there is none."""

    def pack(self) -> bytes:
        """Return the header's bytes."""
        head = _SEGMENT.pack(
            _MAGIC, FORMAT_VERSION, self.identity.bytes, self.first_lsn, self.previous_lsn
        )
        return head + _CRC.pack(zlib.crc32(head))


class RecordHeader(NamedTuple):
    """What the head of a record says."""

    length: int
    lsn: int
    previous_lsn: int
    durable_lsn: int
    payload_crc: int

    def pack(self, seed: int) -> bytes:
        """Return the header's bytes; `seed` is the log's, from `crc_seed`."""
        head = _RECORD.pack(
            MARKER, self.length, self.lsn, self.previous_lsn, self.durable_lsn, self.payload_crc
        )
        return head + _CRC.pack(zlib.crc32(head, seed))


def unpack_segment_header(data: bytes) -> SegmentHeader:
    """Parse a segment's header. Raises ValueError with the reason."""
    if len(data) < SEGMENT_HEADER_BYTES:
        raise ValueError(f"the header has {len(data)} of {SEGMENT_HEADER_BYTES} bytes")
    magic, version, identity, first_lsn, previous_lsn = _SEGMENT.unpack_from(data)
    if magic != _MAGIC:
        raise ValueError("it is no segment of a log")
    if version != FORMAT_VERSION:
        raise ValueError(f"it has format version {version}, this software reads {FORMAT_VERSION}")
    if zlib.crc32(data[: _SEGMENT.size]) != _CRC.unpack_from(data, _SEGMENT.size)[0]:
        raise ValueError("the header's checksum is wrong")
    return SegmentHeader(UUID(bytes=identity), first_lsn, previous_lsn)


def unpack_record_header(data: bytes | memoryview, seed: int) -> RecordHeader | None:
    """Parse a record's header; None if it is none, or a damaged one."""
    if len(data) < RECORD_HEADER_BYTES:
        return None
    marker, length, lsn, previous_lsn, durable_lsn, payload_crc = _RECORD.unpack_from(data)
    if marker != MARKER or length > MAX_PAYLOAD_BYTES:
        return None
    if zlib.crc32(data[: _RECORD.size], seed) != _CRC.unpack_from(data, _RECORD.size)[0]:
        return None
    return RecordHeader(length, lsn, previous_lsn, durable_lsn, payload_crc)


def crc_seed(identity: UUID) -> int:
    """Return the start value of all records' checksums in a log."""
    return zlib.crc32(identity.bytes)


def payload_crc(parts: Sequence[bytes | memoryview], seed: int) -> int:
    """Return the checksum of a payload in parts."""
    for part in parts:
        seed = zlib.crc32(part, seed)
    return seed


def padding_bytes(length: int) -> int:
    """Return how many zeros follow a payload of this length."""
    return -length % 8


def record_bytes(length: int) -> int:
    """Return the size of a record with a payload of this length."""
    return RECORD_HEADER_BYTES + length + padding_bytes(length)
