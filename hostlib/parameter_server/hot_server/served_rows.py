# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The rows that are hot: their keys, epochs and exponents, and the way from lanes to keys."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, Self, final

import numpy as np
from numpy.typing import NDArray

from ...errors import HotRowError, StorageDamagedError
from ...hot_rows import EMPTY, LaneLayout
from ...hot_rows.hot_cells import HotCells
from .rounds import MOST_ROWS, U32

SERVED_DTYPE: Final = np.dtype(
    [("row", "<u4"), ("table", "<u4"), ("epoch", "<u4"), ("exponent", "<i4")]
)
"""A row: its number in packets, its table's number, its epoch, and what a lane is worth."""
_NO_ROWS: Final = np.empty(0, SERVED_DTYPE)
_HEAD: Final = struct.Struct("<IIIII")
_TABLE: Final = struct.Struct("<II")
Indexes = NDArray[np.intp]
"""Positions in `ServedRows.rows`."""
Lanes = NDArray[np.int32]
Floats = NDArray[np.float32]


class TableGradients(NamedTuple):
    """Gradients of keys of a table, which may repeat."""

    table: int
    keys: NDArray[np.int64]
    gradients: Floats


class TablePart(NamedTuple):
    """A table's rows: those of `ServedRows.rows` from `first` on, in the order of its layout."""

    table: int
    first: int
    layout: LaneLayout
    cells: HotCells


@final
class ServedRows:
    """All hot rows of a server in one generation; it does not change."""

    def __init__(
        self,
        generation: int = 0,
        rows: NDArray[np.void] = _NO_ROWS,
        layouts: tuple[tuple[int, LaneLayout], ...] = (),
        *,
        number: int = 0,
        num_epochs: int = 0,
    ) -> None:
        """`rows`: of SERVED_DTYPE, one table's after the other's. Raises HotRowError."""
        self.generation = generation
        self.rows = rows
        self.number = number
        """Of this set of rows at the controller: one more at each change."""
        self.num_epochs = num_epochs
        """So many epochs have been used in this generation."""
        self.layouts = layouts
        parts: list[TablePart] = []
        first = 0
        for table, layout in layouts:
            parts.append(TablePart(table, first, layout, HotCells(table, layout, first)))
            if (rows["table"][first : first + layout.num_rows] != table).any():
                raise HotRowError(f"rows of another table than {table:#010x} in its layout")
            first += layout.num_rows
        if first != rows.size or len({part.table for part in parts}) != len(parts):
            raise HotRowError(f"{rows.size} rows, and layouts of {first}; or a table twice")
        if rows.size and (
            rows["row"].max() >= MOST_ROWS or np.unique(rows["row"]).size != rows.size
        ):
            raise HotRowError(f"row numbers that repeat, or are not below {MOST_ROWS}")
        self.parts = tuple(parts)
        self._by_table = {part.table: part for part in parts}
        self._index: NDArray[np.intp] = np.full(self.end, -1, np.intp)
        self._index[rows["row"]] = np.arange(rows.size)

    @property
    def end(self) -> int:
        """One more than the highest row number."""
        return int(self.rows["row"].max()) + 1 if self.rows.size else 0

    def part(self, table: int) -> TablePart | None:
        """Return a table's rows, None if it has none."""
        return self._by_table.get(table)

    def indexes(self, rows: U32) -> Indexes:
        """Return the positions of rows; -1 for rows that are not hot."""
        found = np.full(rows.size, -1, np.intp)
        is_known = rows < self._index.size
        found[is_known] = self._index[rows[is_known]]
        return found

    def has_epochs(self, rows: U32, epochs: U32) -> NDArray[np.bool_]:
        """Return which rows are hot and have these epochs."""
        indexes = self.indexes(rows)
        has_epoch = indexes >= 0
        has_epoch[has_epoch] = self.rows["epoch"][indexes[has_epoch]] == epochs[has_epoch]
        return has_epoch

    def touched(self, table: int, keys: NDArray[np.int64]) -> Indexes:
        """Return the positions of the rows that hold any of these keys; they rise."""
        part = self._by_table.get(table)
        if part is None:
            return np.empty(0, np.intp)
        return part.cells.touched(keys)

    def changed(self, other: ServedRows) -> U32:
        """Return the numbers of the rows with an epoch that `other` has not; they rise."""
        is_same = other.has_epochs(self.rows["row"], self.rows["epoch"])
        return np.sort(self.rows["row"][~is_same])

    def gradients(self, rows: U32, lanes: Lanes) -> Iterator[TableGradients]:
        """Yield, by table, what sums of rows mean; keys of which all lanes are 0 are left out."""
        indexes = self.indexes(rows)
        for part in self.parts:
            own = indexes - part.first
            is_own = (indexes >= 0) & (own >= 0) & (own < part.layout.num_rows)
            if not is_own.any():
                continue
            exponents = self.rows["exponent"][indexes[is_own]]
            keys, sums, scales = _keys_of(part.layout, own[is_own], lanes[is_own], exponents)
            is_touched = sums.any(axis=1) & (keys != EMPTY)
            # A float64 holds every product with a power of two, so there is one rounding.
            exact = sums[is_touched] * np.ldexp(1.0, scales[is_touched])
            found = TableGradients(part.table, keys[is_touched], exact.astype(np.float32))
            if found.keys.size:
                yield found

    def values(
        self, indexes: Indexes, pull: Callable[[int, NDArray[np.int64]], Floats], num_lanes: int
    ) -> Lanes:
        """Return the lanes of rows, which hold the bits of their keys' values.

        `pull` returns the values of keys of a table.
        """
        lanes = np.zeros((indexes.size, num_lanes), np.int32)
        for part in self.parts:
            own = indexes - part.first
            is_own = (own >= 0) & (own < part.layout.num_rows)
            if is_own.any():
                lanes[is_own] = _lanes_of(
                    part.layout, own[is_own], lambda keys, table=part.table: pull(table, keys)
                )
        return lanes

    def pack(self) -> bytes:
        """Return it as bytes for `unpack`."""
        head = _HEAD.pack(
            self.generation, self.number, self.num_epochs, self.rows.size, len(self.layouts)
        )
        parts = [head, self.rows.tobytes()]
        for table, layout in self.layouts:
            packed = layout.pack()
            parts += [_TABLE.pack(table, len(packed)), packed]
        return b"".join(parts)

    @classmethod
    def unpack(cls, data: memoryview) -> Self:
        """Return what `pack` packed. Raises StorageDamagedError."""
        try:
            generation, number, num_epochs, num_rows, num_tables = _HEAD.unpack_from(data)
            at = _HEAD.size
            rows = np.frombuffer(data[at : at + num_rows * SERVED_DTYPE.itemsize], SERVED_DTYPE)
            at += num_rows * SERVED_DTYPE.itemsize
            layouts: list[tuple[int, LaneLayout]] = []
            for _ in range(num_tables):
                table, size = _TABLE.unpack_from(data, at)
                at += _TABLE.size
                layouts.append((table, LaneLayout.unpack(bytes(data[at : at + size]))))
                at += size
            if at != len(data):
                raise HotRowError(f"{len(data)} bytes instead of {at}")
            return cls(
                generation, rows.copy(), tuple(layouts), number=number, num_epochs=num_epochs
            )
        except (struct.error, ValueError) as error:
            raise StorageDamagedError(f"hot rows in a server's log: {error}") from error


def _keys_of(
    layout: LaneLayout, own: Indexes, lanes: Lanes, exponents: NDArray[np.int32]
) -> tuple[NDArray[np.int64], Lanes, NDArray[np.int32]]:
    """Return keys, their lanes of shape (keys, width), and exponents that broadcast to these.

    A key that is wider than a row has only lanes of the rows that are there; the others are 0.
    """
    shape = layout.shape
    if shape.rows_per_key > 1:
        wide = np.zeros((own.size, shape.rows_per_key, shape.num_lanes), np.int32)
        wide[np.arange(own.size), own % shape.rows_per_key] = lanes
        wide = wide.reshape(own.size, -1)[:, : shape.width]
        return layout.keys[own // shape.rows_per_key], wide, exponents[:, None]
    used = shape.keys_per_row * shape.width
    keys = layout.keys.reshape(-1, shape.keys_per_row)[own].reshape(-1)
    spread = np.repeat(exponents, shape.keys_per_row)
    return keys, lanes[:, :used].reshape(-1, shape.width), spread[:, None]


def _lanes_of(
    layout: LaneLayout, own: Indexes, pull: Callable[[NDArray[np.int64]], Floats]
) -> Lanes:
    """Return the lanes of a layout's rows."""
    shape = layout.shape
    span, per_row = shape.rows_per_key, shape.keys_per_row
    firsts, position = np.unique(own // span, return_inverse=True)
    keys = layout.keys.reshape(-1, per_row)[firsts]
    values = np.zeros((firsts.size, per_row, shape.width), np.float32)
    is_there = keys != EMPTY
    values[is_there] = pull(keys[is_there])
    lanes = np.zeros((firsts.size, span * shape.num_lanes), np.float32)
    lanes[:, : per_row * shape.width] = values.reshape(firsts.size, -1)
    parts = lanes.reshape(firsts.size, span, shape.num_lanes)
    return parts[position, own % span].view(np.int32)
