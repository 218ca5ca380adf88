# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Arrays as bytes that workers and servers exchange: a head, the arrays, a checksum.

All numbers are little-endian: magic (4 bytes), version (1), kind (1), the fields of the kind, the
arrays without gaps, and the CRC-32 of all that precedes it (4). CRC-32 finds damage, not malice.

The arrays of version 2, which samples have, are one stream of RFC 1950 (zlib). In it an array has
the lowest bytes of all its elements first, then the second lowest, and so on; integers are the
differences to the elements before them. So keys that rise take two or three bytes each.
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
MOST_BYTES: Final = 1 << 26
"""Of compressed arrays."""
_HEAD: Final = struct.Struct("<4sBB")
_CHECKSUM: Final = struct.Struct("<I")


class StoredKind(enum.IntEnum):
    """What the arrays are."""

    SKETCH = 1
    LANE_LAYOUT = 2
    BATCHES = 3


_VERSIONS: Final = {StoredKind.SKETCH: 2, StoredKind.LANE_LAYOUT: 1, StoredKind.BATCHES: 2}
_FASTEST: Final = 1


def pack_arrays(kind: StoredKind, fields: bytes, *arrays: NDArray[Any]) -> bytes:
    """Return the bytes of a kind's fields and arrays."""
    version = _VERSIONS[kind]
    little = [array.astype(array.dtype.newbyteorder("<"), copy=False) for array in arrays]
    if version == 1:
        data = b"".join(array.tobytes() for array in little)
    else:
        data = zlib.compress(b"".join(map(_planes, little)), _FASTEST)
    body = _HEAD.pack(_MAGIC, version, kind) + fields + data
    return body + _CHECKSUM.pack(zlib.crc32(body))


def _planes(array: NDArray[Any]) -> bytes:
    """Return the lowest bytes of all elements, then the second lowest ..."""
    if array.dtype.kind in "iu":
        array = np.diff(array, prepend=array.dtype.type(0))  # modulo 2^bits
    return array.view(np.uint8).reshape(array.size, array.itemsize).T.tobytes()


def _from_planes(planes: bytes, stored: np.dtype[Any]) -> NDArray[Any]:
    raw = np.frombuffer(planes, np.uint8).reshape(stored.itemsize, -1).T
    array = np.ascontiguousarray(raw).view(stored).ravel()
    return np.cumsum(array, dtype=stored) if stored.kind in "iu" else array


@final
class StoredArrays:
    """Reads what `pack_arrays` wrote. Everything raises HotRowError for bytes that do not fit."""

    def __init__(self, data: bytes, kind: StoredKind, fields: struct.Struct) -> None:
        shortest = _HEAD.size + fields.size + _CHECKSUM.size
        if len(data) < shortest:
            raise HotRowError(f"{len(data)} bytes are no {kind.name}, which has {shortest} or more")
        magic, version, found = _HEAD.unpack_from(data)
        if (magic, version, found) != (_MAGIC, _VERSIONS[kind], kind):
            raise HotRowError(
                f"no {kind.name} of version {_VERSIONS[kind]}: magic {magic!r}, version {version},"
                f" kind {found}"
            )
        (checksum,) = _CHECKSUM.unpack_from(data, len(data) - _CHECKSUM.size)
        body = memoryview(data)[: -_CHECKSUM.size]
        if zlib.crc32(body) != checksum:
            raise HotRowError(f"damaged {kind.name}: the checksum of its {len(data)} bytes differs")
        self._kind = kind
        self.fields: tuple[Any, ...] = fields.unpack_from(data, _HEAD.size)
        """The kind's fields."""
        self._rest = body[_HEAD.size + fields.size :]
        self._inflate = zlib.decompressobj() if version > 1 else None
        self._num_bytes = 0

    def take(self, dtype: type[np.generic], count: int) -> NDArray[Any]:
        """Return a copy of the next array, in native byte order."""
        stored = np.dtype(dtype).newbyteorder("<")
        taken = self._take(count * stored.itemsize)
        array = np.frombuffer(taken, stored) if not self._inflate else _from_planes(taken, stored)
        return array.astype(dtype)

    def finish(self) -> None:
        """Make sure that nothing follows the last array."""
        if self._inflate is None:
            more = len(self._rest)
        else:
            more = len(self._inflated(1)) or (0 if self._inflate.eof else 1)
            more += len(self._inflate.unused_data)
        if more:
            raise HotRowError(f"the {self._kind.name} has {more} bytes more")

    def _take(self, num_bytes: int) -> bytes:
        if self._inflate is None:
            taken, self._rest = bytes(self._rest[:num_bytes]), self._rest[num_bytes:]
        else:
            self._num_bytes += num_bytes
            if self._num_bytes > MOST_BYTES:
                raise HotRowError(
                    f"{self._kind.name} with {self._num_bytes} bytes of arrays; at most"
                    f" {MOST_BYTES} are taken"
                )
            taken = self._inflated(num_bytes)
        if len(taken) < num_bytes:
            raise HotRowError(f"the {self._kind.name} ends inside an array of {num_bytes} bytes")
        return taken

    def _inflated(self, most: int) -> bytes:
        """Return the next bytes of the stream, fewer if it ends before."""
        if self._inflate is None or not most:  # 0 would mean all
            return b""
        try:
            taken = self._inflate.decompress(self._rest, most)
        except zlib.error as error:
            raise HotRowError(f"damaged {self._kind.name}: {error}") from error
        self._rest = memoryview(self._inflate.unconsumed_tail)
        return taken
