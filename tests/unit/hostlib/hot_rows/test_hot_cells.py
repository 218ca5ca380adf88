# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The rows of keys, as the C library finds them: by comparison with the lane layout."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from switchfold.hostlib.hot_rows import EMPTY, LaneLayout, RowShape
from switchfold.hostlib.hot_rows.hot_cells import HotCells

KEYS = st.integers(-3, 60) | st.integers(-(1 << 63), (1 << 63) - 1)


@given(
    hot=st.sets(st.integers(0, 60), min_size=1, max_size=30),
    asked=st.lists(KEYS, max_size=40),
    width=st.sampled_from([1, 3, 8, 20]),
    first_row=st.integers(0, 9),
)
def test_touched_rows_are_those_of_the_layout(
    hot: set[int], asked: list[int], width: int, first_row: int
) -> None:
    shape = RowShape(num_lanes=8, width=width)
    num_rows = shape.num_rows(len(hot))
    cells = np.full(num_rows // shape.rows_per_key * shape.keys_per_row, EMPTY)
    cells[: len(hot)] = list(hot)
    layout = LaneLayout(shape, cells, np.ones(num_rows, np.uint32))
    keys = np.array(asked, np.int64)
    firsts = np.unique(layout.places(keys).row)
    firsts = firsts[firsts != EMPTY]
    rows = [row for first in firsts for row in range(first, first + shape.rows_per_key)]
    found = HotCells(7, layout, first_row).touched(keys)
    assert found.tolist() == [first_row + row for row in rows]
