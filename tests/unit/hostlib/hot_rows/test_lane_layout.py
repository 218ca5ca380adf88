# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Places of hot keys: distinct lanes, cold keys, bytes, and other keys in some cells."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchfold.hostlib import ConfigurationError, HotRowError
from switchfold.hostlib.hot_rows import EMPTY, LaneLayout, RowShape, plan_layout

NARROW = RowShape(num_lanes=32, width=16)
WIDE = RowShape(num_lanes=352, width=16)


def layout_of(shape: RowShape, keys: list[int]) -> LaneLayout:
    epochs = np.ones(shape.num_rows(len(keys)), np.uint32)
    return LaneLayout(shape, np.array(keys, np.int64), epochs)


def lanes_of(layout: LaneLayout, keys: np.ndarray) -> np.ndarray:
    """Return the number of each value's lane, counted over all rows."""
    row, lane = layout.places(keys)
    first = row.astype(np.int64) * layout.shape.num_lanes + lane
    return (first[:, None] + np.arange(layout.shape.width)).ravel()


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.lists(st.integers(0, 2**62), min_size=1, max_size=80, unique=True),
    st.integers(1, 40),
    st.integers(1, 100),
    st.integers(0, 5),
)
def test_no_two_values_share_a_lane(
    keys: list[int], num_lanes: int, width: int, free_groups: int
) -> None:
    shape = RowShape(num_lanes=num_lanes, width=width)
    rows = shape.num_rows(len(keys)) + free_groups * shape.rows_per_key
    layout = plan_layout(np.array(keys), shape, num_rows=rows).layout
    lanes = lanes_of(layout, np.array(keys))
    assert np.unique(lanes).size == len(keys) * width
    assert 0 <= lanes.min() <= lanes.max() < rows * num_lanes
    if width <= num_lanes:
        # All values of a key are in one row.
        assert (layout.places(np.array(keys)).lane + width <= num_lanes).all()
    else:
        assert (layout.places(np.array(keys)).lane == 0).all()
    assert layout.num_keys == len(keys)
    assert layout.num_rows == rows


def test_shapes_of_both_programs() -> None:
    assert (WIDE.keys_per_row, WIDE.rows_per_key, WIDE.num_rows(20_000)) == (22, 1, 910)
    assert (NARROW.keys_per_row, NARROW.rows_per_key, NARROW.num_rows(20_000)) == (2, 1, 10_000)
    broad = RowShape(num_lanes=32, width=100)
    assert (broad.keys_per_row, broad.rows_per_key, broad.num_rows(3)) == (1, 4, 12)
    for num_lanes, width in ((0, 1), (1, 0), (4097, 1), (1, 65537)):
        with pytest.raises(ConfigurationError, match="lanes"):
            RowShape(num_lanes=num_lanes, width=width)


def test_rank_chooses_row_and_lanes() -> None:
    keys = np.random.default_rng(1).permutation(1000)[:100]
    row, lane = plan_layout(keys, WIDE).layout.places(keys)
    assert row.dtype == lane.dtype == np.int32
    assert np.array_equal(row, np.arange(100) // 22)
    assert np.array_equal(lane, np.arange(100) % 22 * 16)


def test_wide_key_takes_consecutive_rows() -> None:
    row, lane = layout_of(RowShape(num_lanes=32, width=100), [9, 5, EMPTY, 7]).places(
        np.array([5, 7, 9])
    )
    assert row.tolist() == [4, 12, 0]
    assert lane.tolist() == [0, 0, 0]


def test_cold_keys_have_no_place() -> None:
    layout = layout_of(NARROW, [50, EMPTY, 7, 90])
    keys = np.array([[7, 8, -1], [90, 91, 2**62], [50, 0, 90]])
    row, lane = layout.places(keys)
    assert row.tolist() == [[1, -1, -1], [1, -1, -1], [0, -1, 1]]
    assert lane.tolist() == [[0, -1, -1], [16, -1, -1], [0, -1, 16]]
    empty = layout_of(NARROW, [EMPTY, EMPTY])
    assert empty.places(keys).row.tolist() == [[-1] * 3] * 3
    assert empty.places(keys[:0]).lane.size == 0


def test_fill_counts_each_touched_row_once() -> None:
    layout = layout_of(NARROW, [1, 2, 3, 4, 5, EMPTY])
    fill = layout.fill([np.array([1, 1, 2, 99]), np.array([1, 3, 5]), np.array([99])])
    assert (fill.values, fill.packets, fill.num_lanes) == (5 * 16, 4, 32)
    assert fill.ratio == 5 * 16 / (4 * 32)
    assert layout.fill([]).ratio == 0
    broad = layout_of(RowShape(num_lanes=32, width=40), [1, 2])
    assert broad.fill([np.array([2])]).ratio == 40 / 64


def test_replaced_cells_change_their_rows_alone() -> None:
    layout = layout_of(NARROW, [1, 2, 3, 4, 5, EMPTY])
    changed, rows = layout.replace(np.array([1, 4, 5]), np.array([7, 5, 8]))
    assert changed.keys.tolist() == [1, 7, 3, 4, 5, 8]
    assert rows.tolist() == [0, 2]
    assert changed.epochs.tolist() == [2, 1, 2]
    assert (layout.version, changed.version) == (1, 2)
    assert layout.keys.tolist() == [1, 2, 3, 4, 5, EMPTY]
    assert layout.epochs.tolist() == [1, 1, 1]
    same, rows = changed.replace(np.array([0]), np.array([1]))
    assert rows.tolist() == []
    assert same.epochs.tolist() == [2, 1, 2]


def test_wide_key_changes_all_of_its_rows() -> None:
    layout = layout_of(RowShape(num_lanes=32, width=80), [1, 2])
    changed, rows = layout.replace(np.array([1]), np.array([EMPTY]))
    assert rows.tolist() == [3, 4, 5]
    assert changed.epochs.tolist() == [1, 1, 1, 2, 2, 2]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.lists(st.integers(0, 2**63 - 1), max_size=40, unique=True),
    st.integers(1, 400),
    st.integers(1, 100),
    st.integers(1, 2**32 - 1),
)
def test_bytes_restore_the_layout(
    keys: list[int], num_lanes: int, width: int, version: int
) -> None:
    shape = RowShape(num_lanes=num_lanes, width=width)
    planned = plan_layout(np.array(keys, np.int64), shape).layout
    epochs = np.arange(1, planned.num_rows + 1, dtype=np.uint32)
    layout = LaneLayout(shape, planned.keys, epochs, version=version)
    restored = LaneLayout.unpack(layout.pack())
    assert restored.shape == shape
    assert restored.version == version
    assert np.array_equal(restored.epochs, epochs)
    assert np.array_equal(restored.keys, layout.keys)
    asked = np.array([*keys, 1, 2, 3], np.int64)
    for ours, theirs in zip(layout.places(asked), restored.places(asked), strict=True):
        assert np.array_equal(ours, theirs)


def test_damaged_bytes_are_refused() -> None:
    data = layout_of(NARROW, [50, EMPTY, 7, 90]).pack()
    for length in range(len(data)):
        with pytest.raises(HotRowError):
            LaneLayout.unpack(data[:length])
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 0x41
        with pytest.raises(HotRowError):
            LaneLayout.unpack(bytes(damaged))
    with pytest.raises(HotRowError):
        LaneLayout.unpack(data + b"\0")


def test_wrong_fields_are_refused_behind_a_right_checksum() -> None:
    def packed(
        shape: tuple[int, int] = (32, 16),
        keys: tuple[int, ...] = (50, -1),
        epochs: tuple[int, ...] = (1,),
        *,
        version: int = 1,
        num_cells: int | None = None,
    ) -> bytes:
        cells = len(keys) if num_cells is None else num_cells
        body = b"SFHR\x01\x02" + struct.pack("<IIII", *shape, cells, version)
        body += struct.pack(f"<{len(keys)}q", *keys) + struct.pack(f"<{len(epochs)}I", *epochs)
        return body + struct.pack("<I", zlib.crc32(body))

    assert LaneLayout.unpack(packed()).places(np.array([50])).row.tolist() == [0]
    for damaged in (
        packed(shape=(0, 16)),
        packed(shape=(32, 0)),
        packed(shape=(1 << 13, 16)),
        packed(keys=(50, -2)),
        packed(keys=(50, 50)),
        packed(keys=(50,)),
        packed(keys=()),
        packed(keys=(), epochs=()),
        packed(epochs=(1, 2)),
        packed(epochs=(0,)),
        packed(epochs=()),
        packed(version=0),
        packed(num_cells=1 << 31),
    ):
        with pytest.raises(HotRowError):
            LaneLayout.unpack(damaged)
