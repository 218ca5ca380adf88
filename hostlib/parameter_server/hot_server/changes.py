# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Changes of hot rows as they are logged, in the same log as those that workers ask for."""

from __future__ import annotations

import enum
import struct
from typing import Final, NamedTuple

import numpy as np

from ...errors import StorageDamagedError
from .rounds import U32, RowsOfRounds
from .served_rows import Lanes, ServedRows

_HEAD: Final = struct.Struct("<BxxxIII")
Parts = list[bytes | memoryview]


class HotKind(enum.IntEnum):
    """First byte of a record; kinds of frames are below it."""

    SUMS = 128
    """First sums of rounds."""
    FENCE = 129
    """Rounds that count no worker."""
    LAYOUT = 130
    """All hot rows from now on. It decides the open rounds of changed rows, as a FENCE does."""


class HotSums(NamedTuple):
    """Sums of rounds, which are claimed."""

    generation: int
    decided: RowsOfRounds
    bitmaps: U32
    lanes: Lanes
    """Shape (rounds, lanes of a row)."""

    def pack(self) -> Parts:
        """Return the record in parts."""
        head = _HEAD.pack(HotKind.SUMS, self.generation, *self.lanes.shape)
        arrays = (*self.decided, self.bitmaps, self.lanes)
        return [head, *(np.ascontiguousarray(array).data for array in arrays)]


class HotFence(NamedTuple):
    """Claimed rounds."""

    generation: int
    decided: RowsOfRounds

    def pack(self) -> Parts:
        """Return the record in parts."""
        head = _HEAD.pack(HotKind.FENCE, self.generation, self.decided.rows.size, 0)
        return [head, *(np.ascontiguousarray(array).data for array in self.decided)]


class HotLayout(NamedTuple):
    """The hot rows."""

    served: ServedRows

    def pack(self) -> Parts:
        """Return the record in parts."""
        return [_HEAD.pack(HotKind.LAYOUT, 0, 0, 0), self.served.pack()]


HotChange = HotSums | HotFence | HotLayout


def is_hot(record: memoryview) -> bool:
    """Return whether a record is a change of hot rows."""
    return len(record) >= _HEAD.size and record[0] in set(HotKind)


def unpack(record: memoryview) -> HotChange:
    """Return a record's change. Raises StorageDamagedError."""
    kind, generation, count, num_lanes = _HEAD.unpack_from(record)
    payload = record[_HEAD.size :]
    if kind == HotKind.LAYOUT:
        return HotLayout(ServedRows.unpack(payload))
    num_columns = 3 + num_lanes if kind == HotKind.SUMS else 2
    if len(payload) != 4 * count * num_columns:
        raise StorageDamagedError(
            f"{len(payload)} bytes of {count} rounds of hot rows with {num_lanes} lanes"
        )
    numbers = np.frombuffer(payload, np.uint32)
    decided = RowsOfRounds(numbers[:count], numbers[count : 2 * count])
    if kind == HotKind.FENCE:
        return HotFence(generation, decided)
    bitmaps, lanes = numbers[2 * count : 3 * count], numbers[3 * count :].view(np.int32)
    return HotSums(generation, decided, bitmaps, lanes.reshape(count, num_lanes))
