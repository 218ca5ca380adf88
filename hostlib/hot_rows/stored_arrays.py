# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Arrays as bytes that workers and servers exchange: a head, the arrays, a checksum.

All numbers are little-endian: magic (4 bytes), version (1), kind (1), the fields of the kind, the
arrays without gaps, and the CRC-32 of all that precedes it (4). CRC-32 finds damage, not malice.
"""

from __future__ import annotations

import enum
import struct
import zlib
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from ..errors import HotRowError

_MAGIC: Final = b"SFHR"
_VERSION: Final = 1
_HEAD: Final = struct.Struct("<4sBB")
_CHECKSUM: Final = struct.Struct("<I")


class StoredKind(enum.IntEnum):
    """What the arrays are."""

    SKETCH = 1
    LANE_LAYOUT = 2
    BATCHES = 3


def pack_arrays(kind: StoredKind, fields: bytes, *arrays: NDArray[Any]) -> bytes:
    """Return the bytes of a kind's fields and arrays."""
    parts = [_HEAD.pack(_MAGIC, _VERSION, kind), fields]
    parts += [array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes() for array in arrays]
    body = b"".join(parts)
    return body + _CHECKSUM.pack(zlib.crc32(body))


@final
class StoredArrays:
    """Reads what `pack_arrays` wrote. Everything raises HotRowError for bytes that do not fit."""

    def __init__(self, data: bytes, kind: StoredKind, fields: struct.Struct) -> None:
        shortest = _HEAD.size + fields.size + _CHECKSUM.size
        if len(data) < shortest:
            raise HotRowError(f"{len(data)} bytes are no {kind.name}, which has {shortest} or more")
        magic, version, found = _HEAD.unpack_from(data)
        if (magic, version, found) != (_MAGIC, _VERSION, kind):
            raise HotRowError(
                f"no {kind.name} of version {_VERSION}: magic {magic!r}, version {version},"
                f" kind {found}"
            )
        (checksum,) = _CHECKSUM.unpack_from(data, len(data) - _CHECKSUM.size)
        self._body = memoryview(data)[: -_CHECKSUM.size]
        if zlib.crc32(self._body) != checksum:
            raise HotRowError(f"damaged {kind.name}: the checksum of its {len(data)} bytes differs")
        self._kind = kind
        self.fields: tuple[Any, ...] = fields.unpack_from(data, _HEAD.size)
        """The kind's fields."""
        self._at = _HEAD.size + fields.size

    def take(self, dtype: type[np.generic], count: int) -> NDArray[Any]:
        """Return a copy of the next array, in native byte order."""
        stored = np.dtype(dtype).newbyteorder("<")
        if count * stored.itemsize > len(self._body) - self._at:
            raise HotRowError(f"the {self._kind.name} ends inside an array of {count} elements")
        array = np.frombuffer(self._body, stored, count, self._at)
        self._at += array.nbytes
        return array.astype(dtype)

    def finish(self) -> None:
        """Make sure that nothing follows the last array."""
        if self._at != len(self._body):
            raise HotRowError(f"the {self._kind.name} has {len(self._body) - self._at} bytes more")
