# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The cells of a lane layout by key: which keys of a push or pull are hot, and in which rows."""

from __future__ import annotations

import ctypes
from typing import Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ..native.hot_row_library import HotCellsStruct, hot_library
from ..native.library import address
from .lane_layout import EMPTY, LaneLayout
from .sketch import Keys

Floats = NDArray[np.float32]
Indices = NDArray[np.int64]
KEY_BYTES: Final = 8


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

    def touched(self, keys: Keys) -> Indices:
        """Return the rows that hold any of some keys; they rise."""
        keys = np.ascontiguousarray(keys, np.int64)
        is_touched = np.zeros(len(self._unit_keys), np.bool_)
        hot_library.hot_cells_touch(self.at, address(keys), keys.size, address(is_touched))
        units = np.flatnonzero(is_touched)
        if self.rows_per_unit == 1:
            return units + self.first_row
        firsts = units * self.rows_per_unit + self.first_row
        return (firsts[:, None] + np.arange(self.rows_per_unit)).ravel()

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
