# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Rows of a table as bytes, whose format is in hostlib/native/rows/row_chunks.h and slabs.h."""

from __future__ import annotations

from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from ...errors import RowFormatError

_HEADER_BYTES: Final = 40
_NUM_ROWS_AT: Final = 16
_WORD_BYTES: Final = 8
_VALUES_AT: Final = 24
"""Bytes of a row before its values: key, log sequence number, updates, and whether it started."""
_FIRST_FACTOR: Final = 0x9E3779B97F4A7C15
_SECOND_FACTOR: Final = 0xD6E8FEB86659FD93
_MODULUS: Final = 1 << 64


@final
class StoredRows:
    """The rows of a chunk that RowTable.export has made. Raises RowFormatError."""

    def __init__(self, data: NDArray[np.uint8]) -> None:
        self._header = data[:_HEADER_BYTES]
        num_rows = self._header[_NUM_ROWS_AT : _NUM_ROWS_AT + 4]
        self.count = int(num_rows.view(np.uint32)[0]) if num_rows.size == 4 else -1
        """How many rows it has."""
        size = data.size - _HEADER_BYTES
        if self.count < 0 or size % (_WORD_BYTES * self.count or _HEADER_BYTES + size):
            raise RowFormatError(f"{data.size} bytes are no rows of a table")
        self._rows = data[_HEADER_BYTES:].reshape(self.count, -1 if size else 0)

    @property
    def keys(self) -> NDArray[np.int64]:
        """The keys of the rows."""
        return np.ascontiguousarray(self._rows[:, :8]).view(np.int64).reshape(-1)

    @property
    def updates(self) -> NDArray[np.uint32]:
        """Their numbers of updates."""
        return np.ascontiguousarray(self._rows[:, 16:20]).view(np.uint32).reshape(-1)

    @property
    def checksum(self) -> int:
        """A 64-bit sum over the rows, which their order does not change.

        It finds rows that are lost, doubled or mixed up, but no forgery.
        """
        return _checksum(self._rows.view(np.uint64))

    @property
    def model_checksum(self) -> int:
        """The same of keys, values and the optimiser's state alone.

        It does not depend on how often rows were touched, and on what is in the log.
        """
        words = self._rows.view(np.uint64)
        model = np.concatenate([words[:, :1], words[:, _VALUES_AT // _WORD_BYTES :]], axis=1)
        return _checksum(model)

    @property
    def are_started(self) -> bool:
        """Whether first values can change none of the rows any more."""
        is_started = np.ascontiguousarray(self._rows[:, 20:24]).view(np.uint32).reshape(-1)
        return bool(((is_started != 0) | (self.updates != 0)).all())

    def sum_of_squares(self, first: int, end: int) -> float:
        """Return the sum of squares of all rows' float32 numbers from `first` to before `end`.

        A row has its values first, and then the optimiser's state.
        """
        numbers = self._rows[:, _VALUES_AT + 4 * first : _VALUES_AT + 4 * end]
        values = np.ascontiguousarray(numbers).view(np.float32)
        return float(np.square(values, dtype=np.float64).sum())

    def take(self, places: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return a chunk of the rows at some places."""
        header = self._header.copy()
        header[_NUM_ROWS_AT : _NUM_ROWS_AT + 4] = np.array([places.size], np.uint32).view(np.uint8)
        return np.concatenate([header, self._rows[places].reshape(-1)])


def _checksum(words: NDArray[np.uint64]) -> int:
    factors = np.arange(1, 2 * words.shape[1], 2, dtype=np.uint64)
    factors *= np.uint64(_FIRST_FACTOR)  # odd, and all modulo 2^64
    mixed = words @ factors
    mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(_SECOND_FACTOR)
    mixed ^= mixed >> np.uint64(29)
    return int(mixed.sum(dtype=np.uint64))


def add_checksums(first: int, second: int) -> int:
    """Return the checksum of all rows of two chunks."""
    return (first + second) % _MODULUS
