# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The hot rows of a server as its last HOT_ROWS describes them, and where keys lie in them."""

from __future__ import annotations

import ctypes
from typing import Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ...errors import HotRowError, PeerProtocolError
from ...hot_rows import EMPTY, LaneLayout
from ...native.hot_row_library import HotCellsStruct, RowMapStruct, hot_library
from ...native.library import address
from ...peers.frames import HOT_ROW_DTYPE, HotRowsState

Keys = NDArray[np.int64]
Floats = NDArray[np.float32]
Indices = NDArray[np.int64]
KEY_BYTES: Final = 8
UNKNOWN: Final = -1
"""Index of a row that HOT_ROWS does not name."""

_MOST_NUMBERS: Final = 1 << 24
"""From the lowest number of a row to the highest."""


class KeyedGradients(NamedTuple):
    """Keys of a table with their gradients, as a PUSH has them."""

    table: int
    keys: Keys
    gradients: Floats


class SplitKeys(NamedTuple):
    """Keys of a push or pull, by the way they take."""

    keys: Keys
    cells: Indices
    """Of the hot keys."""
    hot: Indices
    """Positions of the hot keys, which rise."""
    cold: Indices
    """Positions of the others, which rise."""
    keys_at: int
    """Where the keys begin in memory, for the C library; and so on."""
    cells_at: int
    hot_at: int
    cold_at: int


@final
class HotCells:
    """The rows of a table. The indices of its rows follow each other, from `first_row` on.

    A unit is what a cell or several cells of the lane layout take: one row, or the rows of a wide
    key. The C library finds keys, and reads and writes their lanes: hot_cells.h.
    """

    def __init__(self, number: int, layout: LaneLayout, first_row: int) -> None:
        self.number = number
        self.first_row = first_row
        shape = layout.shape
        self.width = shape.width
        self.rows_per_unit = shape.rows_per_key
        self.keys_per_unit = shape.keys_per_row
        self.num_lanes = shape.num_lanes
        self.end_row = first_row + layout.num_rows
        self._unit_lanes = self.rows_per_unit * self.num_lanes
        self._keys = np.ascontiguousarray(layout.keys)
        self._unit_keys = self._keys.reshape(-1, self.keys_per_unit)
        self._slots = np.zeros(1 << (2 * self._keys.size - 1).bit_length(), np.uint32)
        self._native = HotCellsStruct(
            keys=address(self._keys),
            slots=address(self._slots),
            mask=self._slots.size - 1,
            num_cells=self._keys.size,
            width=self.width,
            num_lanes=self.num_lanes,
            keys_per_unit=self.keys_per_unit,
            rows_per_unit=self.rows_per_unit,
            first_row=first_row,
        )
        self.at: int = ctypes.addressof(self._native)
        """Of its `hot_cells_t`."""
        hot_library.hot_cells_index(self.at)

    def split(self, keys: Keys, cold_until_s: int, now_s: float) -> SplitKeys:
        """Tell hot keys from cold ones; `cold_until_s` is where that array of the pushes begins."""
        keys = np.ascontiguousarray(keys, np.int64)
        found = np.empty((3, keys.size), np.int64)
        first, stride = address(found), found.strides[0]
        places = address(keys), first, first + stride, first + 2 * stride
        num_hot: int = hot_library.hot_cells_split(
            self.at, cold_until_s, now_s, places[0], keys.size, *places[1:]
        )
        cells, hot, cold = found[0, :num_hot], found[1, :num_hot], found[2, : keys.size - num_hot]
        return SplitKeys(keys, cells, hot, cold, *places)

    def gather_cold(self, split: SplitKeys) -> memoryview:
        """Return the payload of a PUSH of the cold keys; the gradients come after all keys."""
        num_cold, num_keys = split.cold.size, split.keys.size
        part = np.empty(num_cold * (KEY_BYTES + 4 * self.width), np.uint8)
        hot_library.hot_cells_gather(
            split.keys_at, num_keys, self.width, split.cold_at, num_cold, address(part)
        )
        return part.data

    def collect(self, rows: Indices, lanes: Floats) -> KeyedGradients:
        """Return the keys of rows, and their lanes as gradients; keys whose lanes are 0 are not.

        A row may be there several times: so may its keys then.
        """
        units, part = np.divmod(rows - self.first_row, self.rows_per_unit)
        if self.rows_per_unit > 1:
            units, place = np.unique(units, return_inverse=True)
            whole = np.zeros((units.size, self.rows_per_unit, self.num_lanes), np.float32)
            np.add.at(whole, (place, part), lanes)
            lanes = whole.reshape(units.size, self._unit_lanes)
        keys = self._unit_keys[units]
        values = lanes[:, : self.keys_per_unit * self.width]
        values = values.reshape(units.size, self.keys_per_unit, self.width)
        is_there = values.any(axis=2) & (keys != EMPTY)
        return KeyedGradients(self.number, keys[is_there], values[is_there])

    def whole_keys(self, which: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the lanes, by row, of keys of which some lane is given."""
        width = min(self.width, self.num_lanes)
        used = self.keys_per_unit * width
        has_any = which[:, :used].reshape(len(which), self.keys_per_unit, width).any(axis=2)
        lanes = np.zeros_like(which)
        lanes[:, :used] = np.repeat(has_any, width, axis=1)
        return lanes


@final
class RowMap:
    """Indices of rows, from 0: those of the first table, of the second ..., then of no table."""

    def __init__(self, state: HotRowsState) -> None:
        """Raise PeerProtocolError for a state that contradicts itself."""
        self.state = state
        self.generation = state.generation
        self.tables: dict[int, HotCells] = {}
        parts: list[NDArray[np.void]] = []
        table_of, num_rows = state.rows["table"], 0
        is_placed = np.zeros(state.rows.size, np.bool_)
        for number, packed in state.tables:
            try:
                layout = LaneLayout.unpack(packed)
            except HotRowError as error:
                raise PeerProtocolError(f"HOT_ROWS with a damaged layout: {error}") from error
            is_own = table_of == number
            rows = state.rows[is_own]
            if rows.size != layout.num_rows or layout.shape.num_lanes != state.values_per_packet:
                raise PeerProtocolError(
                    f"HOT_ROWS has {rows.size} rows of {state.values_per_packet} values for table"
                    f" {number}; its layout has {layout.num_rows} of {layout.shape.num_lanes}"
                )
            is_placed |= is_own
            self.tables[number] = HotCells(number, layout, num_rows)
            num_rows += rows.size
            parts.append(rows)
        self.num_table_rows = num_rows
        self.rows: NDArray[np.void] = np.concatenate(
            (np.empty(0, HOT_ROW_DTYPE), *parts, state.rows[~is_placed])
        )
        self.size = self.rows.size
        self.numbers = self.rows["row"].copy()
        self.epochs = self.rows["epoch"].copy()
        self.scales = np.ldexp(np.float32(1), -self.rows["exponent"])
        first_number = int(self.numbers.min()) if self.size else 0
        span = int(self.numbers.max()) - first_number + 1 if self.size else 0
        if span > _MOST_NUMBERS:
            raise PeerProtocolError(f"HOT_ROWS with row numbers that are {span} apart")
        self._index = np.full(span, UNKNOWN)
        self._index[self.numbers.astype(np.int64) - first_number] = np.arange(self.size)
        self._native = RowMapStruct(
            size=self.size,
            num_lanes=state.values_per_packet,
            first_number=first_number,
            span=span,
            index=address(self._index),
            numbers=address(self.numbers),
            epochs=address(self.epochs),
            scales=address(self.scales),
        )
        self.at: int = ctypes.addressof(self._native)
        """Of its `row_map_t`."""

    def find(self, numbers: NDArray[np.uint32]) -> Indices:
        """Return the indices of rows by their numbers, or UNKNOWN."""
        numbers = np.ascontiguousarray(numbers, np.uint32)
        rows = np.empty(numbers.size, np.int64)
        hot_library.row_map_find_all(self.at, address(numbers), numbers.size, address(rows))
        return rows
