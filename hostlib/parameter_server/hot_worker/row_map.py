# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The hot rows of a server as its last HOT_ROWS describes them, and where keys lie in them."""

from __future__ import annotations

from typing import Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ...errors import HotRowError, PeerProtocolError
from ...hot_rows import EMPTY, LaneLayout
from ...peers.frames import HOT_ROW_DTYPE, HotRowsState

Keys = NDArray[np.int64]
Floats = NDArray[np.float32]
Indices = NDArray[np.int64]
UNKNOWN: Final = -1
"""Index of a row that HOT_ROWS does not name."""

_MOST_NUMBERS: Final = 1 << 24
"""From the lowest number of a row to the highest."""


class KeyedGradients(NamedTuple):
    """Keys of a table with their gradients, as a PUSH has them."""

    table: int
    keys: Keys
    gradients: Floats


@final
class HotCells:
    """The rows of a table. The indices of its rows follow each other, from `first_row` on.

    A unit is what a cell or several cells of the lane layout take: one row, or the rows of a wide
    key.
    """

    def __init__(self, number: int, layout: LaneLayout, first_row: int) -> None:
        self.number = number
        self.layout = layout
        self.first_row = first_row
        shape = layout.shape
        self.width = shape.width
        self.rows_per_unit = shape.rows_per_key
        self.keys_per_unit = shape.keys_per_row
        self.num_lanes = shape.num_lanes
        self.end_row = first_row + layout.num_rows
        self._unit_lanes = self.rows_per_unit * self.num_lanes
        self._unit_keys = layout.keys.reshape(-1, self.keys_per_unit)
        self._is_touched = np.zeros(len(self._unit_keys), np.bool_)
        self._place = np.empty(len(self._unit_keys), np.int64)
        self._last = np.empty(layout.keys.size, np.int64)

    def first_row_of(self, cells: Indices) -> Indices:
        """Return the first row of each cell."""
        return cells // self.keys_per_unit * self.rows_per_unit + self.first_row

    def rows_of(self, units: Indices) -> Indices:
        """Return the rows of units, in their order."""
        if self.rows_per_unit == 1:
            return units + self.first_row
        firsts = units * self.rows_per_unit + self.first_row
        return (firsts[:, None] + np.arange(self.rows_per_unit)).ravel()

    def spread(self, cells: Indices, gradients: Floats) -> tuple[Indices, Floats]:
        """Return the rows of cells, which rise, and their lanes; cells that repeat are added up."""
        cells, gradients = self._add_repeated(cells, gradients)
        units = cells // self.keys_per_unit if self.keys_per_unit > 1 else cells
        touched = self.touched(units)
        self._place[touched] = np.arange(touched.size)
        lanes = np.zeros((touched.size, self._unit_lanes), np.float32)
        values = lanes[:, : self.keys_per_unit * self.width]
        by_cell = values.reshape(touched.size, self.keys_per_unit, self.width)
        by_cell[self._place[units], cells - units * self.keys_per_unit] = gradients
        return self.rows_of(touched), lanes.reshape(-1, self.num_lanes)

    def touched(self, units: Indices) -> Indices:
        """Return the units, each once, in rising order."""
        self._is_touched[units] = True
        touched = np.flatnonzero(self._is_touched)
        self._is_touched[touched] = False
        return touched

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

    def pick(self, cells: Indices, lanes: NDArray[np.float32]) -> Floats:
        """Return the values of cells, from the lanes of all of the map's rows."""
        units, cell = np.divmod(cells, self.keys_per_unit)
        own = lanes[self.first_row : self.end_row].reshape(-1, self._unit_lanes)
        values = own[:, : self.keys_per_unit * self.width]
        return values.reshape(len(own), self.keys_per_unit, self.width)[units, cell]

    def _add_repeated(self, cells: Indices, gradients: Floats) -> tuple[Indices, Floats]:
        order = np.arange(cells.size)
        self._last[cells] = order
        if np.array_equal(self._last[cells], order):
            return cells, gradients
        order = np.argsort(cells, kind="stable")
        cells = cells[order]
        firsts = np.flatnonzero(np.concatenate(([True], cells[1:] != cells[:-1])))
        return cells[firsts], np.add.reduceat(gradients[order], firsts, axis=0)


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
        self._first_number = int(self.numbers.min()) if self.size else 0
        span = int(self.numbers.max()) - self._first_number + 1 if self.size else 0
        if span > _MOST_NUMBERS:
            raise PeerProtocolError(f"HOT_ROWS with row numbers that are {span} apart")
        self._index = np.full(span + 1, UNKNOWN)
        self._index[self.numbers.astype(np.int64) - self._first_number] = np.arange(self.size)

    def find(self, numbers: NDArray[np.uint32]) -> Indices:
        """Return the indices of rows by their numbers, or UNKNOWN."""
        at = numbers.astype(np.int64) - self._first_number
        last = self._index.size - 1  # unknown
        return self._index[np.where((at < 0) | (at > last), last, at)]

    def find_current(self, header: NDArray[np.void]) -> Indices:
        """Return the indices of the rows of packets, or UNKNOWN if they are of another epoch."""
        rows = self.find(header["slot_index"].astype(np.uint32))
        is_known = rows >= 0
        is_known[is_known] = self.epochs[rows[is_known]] == header["tensor_id"][is_known]
        return np.where(is_known, rows, UNKNOWN)
