# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The lane layout: in which hot row and on which lanes of it the values of each hot key lie."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, Self, final

import numpy as np
from numpy.typing import NDArray

from ..errors import ConfigurationError, HotRowError
from .sketch import Keys
from .stored_arrays import StoredArrays, StoredKind, pack_arrays

EMPTY: Final = -1
"""The key of a cell without one; the row and the lane of a cold key."""
MAX_LANES: Final = 1 << 12
MAX_WIDTH: Final = 1 << 16
MAX_CELLS: Final = 1 << 24
Rows = NDArray[np.int32]
_FIELDS: Final = struct.Struct("<IIII")


@dataclass(frozen=True, kw_only=True)
class RowShape:
    """How the values of keys fill rows. A row is what one packet carries.

    Keys of up to `num_lanes` values share rows: a cell is a key's lanes in a row. A wider key takes
    consecutive rows, which are one cell together. Lanes that are left over stay empty.
    """

    num_lanes: int
    """Lanes of a packet: 32 in the narrow program, 352 in the wide one."""
    width: int
    """Values of a key."""

    def __post_init__(self) -> None:
        if not 1 <= self.num_lanes <= MAX_LANES or not 1 <= self.width <= MAX_WIDTH:
            raise ConfigurationError(
                f"keys of {self.width} values in rows of {self.num_lanes} lanes; give 1 to"
                f" {MAX_WIDTH} and 1 to {MAX_LANES}"
            )

    @property
    def keys_per_row(self) -> int:
        """Keys that share a row; 1 if a key takes several rows."""
        return max(1, self.num_lanes // self.width)

    @property
    def rows_per_key(self) -> int:
        """Rows of a key; 1 if several keys share a row."""
        return -(-self.width // self.num_lanes)

    def num_rows(self, num_keys: int) -> int:
        """Return the rows that so many keys need."""
        return -(-num_keys // self.keys_per_row) * self.rows_per_key


class RowPlaces(NamedTuple):
    """Where keys lie; -1 twice for a cold key."""

    row: Rows
    """First row of each key."""
    lane: NDArray[np.int32]
    """First lane of each key."""


@dataclass(frozen=True)
class RowFill:
    """How full the packets are that carry the touched rows of mini-batches."""

    values: int
    """Values of hot keys that the mini-batches touch, each once per mini-batch."""
    packets: int
    """Rows that hold any of them."""
    num_lanes: int

    @property
    def ratio(self) -> float:
        """Values per lane that is sent; 0 without packets."""
        return self.values / (self.packets * self.num_lanes) if self.packets else 0.0


@final
class LaneLayout:
    """The cells of all rows with their keys, and an epoch of each row. It does not change.

    `keys[c]` is the key of cell c, or -1. Cell c lies in row c // keys_per_row * rows_per_key, from
    lane c % keys_per_row * width on. So no two values share a lane of a row.
    """

    def __init__(
        self, shape: RowShape, keys: Keys, epochs: NDArray[np.uint32], *, version: int = 1
    ) -> None:
        """Raise HotRowError unless keys differ, cells fill rows, and each row has an epoch."""
        self.shape = shape
        self.keys = keys
        self.epochs = epochs
        """Number of the row's content, from 1; it rises when the content changes."""
        self.version = version
        """Number from 1; a refresh makes the next one."""
        if not 1 <= keys.size <= MAX_CELLS or keys.size % shape.keys_per_row:
            raise HotRowError(f"{keys.size} cells do not fill rows of {shape.keys_per_row} keys")
        if epochs.size != shape.num_rows(keys.size):
            raise HotRowError(f"{epochs.size} epochs for {shape.num_rows(keys.size)} rows")
        if version < 1 or not epochs.all():
            raise HotRowError(f"version {version}, or the epoch of a row, is not above 0")
        if keys.min() < EMPTY:
            raise HotRowError(f"key {keys.min()} is negative")
        cells = np.flatnonzero(keys != EMPTY)
        cells = cells[np.argsort(keys[cells])]
        self._sorted = keys[cells]
        if (self._sorted[1:] == self._sorted[:-1]).any():
            raise HotRowError("a key has two places in the lane layout")
        self._rows = (cells // shape.keys_per_row * shape.rows_per_key).astype(np.int32)
        self._lanes = (cells % shape.keys_per_row * shape.width).astype(np.int32)

    @property
    def num_keys(self) -> int:
        """Keys that have a place."""
        return self._sorted.size

    @property
    def num_rows(self) -> int:
        """Rows, empty ones too."""
        return self.epochs.size

    def places(self, keys: Keys) -> RowPlaces:
        """Return the first row and lane of each key."""
        if not self._sorted.size:
            cold = np.full(keys.shape, EMPTY, np.int32)
            return RowPlaces(cold, cold.copy())
        at = np.searchsorted(self._sorted, keys)
        np.minimum(at, self._sorted.size - 1, out=at)
        is_cold = self._sorted[at] != keys
        row, lane = self._rows[at], self._lanes[at]
        row[is_cold] = EMPTY
        lane[is_cold] = EMPTY
        return RowPlaces(row, lane)

    def fill(self, batches: Iterable[Keys]) -> RowFill:
        """Return how full the packets are if each mini-batch's touched rows are sent once."""
        values = packets = 0
        for batch in batches:
            rows = self.places(np.unique(batch)).row
            rows = rows[rows != EMPTY]
            values += rows.size * self.shape.width
            packets += np.unique(rows).size * self.shape.rows_per_key
        return RowFill(values, packets, self.shape.num_lanes)

    def replace(self, cells: NDArray[np.int64], keys: Keys) -> tuple[LaneLayout, Rows]:
        """Return the next version, with other keys (-1: none) in some cells, and the changed rows.

        A row of which no key changes keeps its epoch.
        """
        replaced = self.keys.copy()
        replaced[cells] = keys
        span = self.shape.rows_per_key
        firsts = np.unique(np.flatnonzero(replaced != self.keys) // self.shape.keys_per_row) * span
        rows = (firsts[:, None] + np.arange(span)).ravel().astype(np.int32)
        epochs = self.epochs.copy()
        epochs[rows] += np.uint32(1)
        return LaneLayout(self.shape, replaced, epochs, version=self.version + 1), rows

    def pack(self) -> bytes:
        """Return the lane layout as bytes for `unpack`."""
        shape = self.shape
        fields = _FIELDS.pack(shape.num_lanes, shape.width, self.keys.size, self.version)
        return pack_arrays(StoredKind.LANE_LAYOUT, fields, self.keys, self.epochs)

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """Return the lane layout that `pack` wrote. Raises HotRowError for all other bytes."""
        stored = StoredArrays(data, StoredKind.LANE_LAYOUT, _FIELDS)
        num_lanes, width, num_cells, version = stored.fields
        try:
            shape = RowShape(num_lanes=num_lanes, width=width)
        except ConfigurationError as error:
            raise HotRowError(f"a lane layout of impossible rows: {error}") from error
        keys = stored.take(np.int64, num_cells)
        epochs = stored.take(np.uint32, shape.num_rows(num_cells))
        stored.finish()
        return cls(shape, keys, epochs, version=version)
