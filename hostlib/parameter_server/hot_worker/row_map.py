# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The hot rows of a server as its last HOT_ROWS describes them."""

from __future__ import annotations

import ctypes
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from ...errors import HotRowError, PeerProtocolError
from ...hot_rows import LaneLayout
from ...hot_rows.hot_cells import HotCells, Indices
from ...native.hot_row_library import RowMapStruct, hot_library
from ...native.library import address
from ...peers.frames import HOT_ROW_DTYPE, HotRowsState

UNKNOWN: Final = -1
"""Index of a row that HOT_ROWS does not name."""

_MOST_NUMBERS: Final = 1 << 24
"""From the lowest number of a row to the highest."""


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
