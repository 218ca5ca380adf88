# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Rows by heat and by co-occurrence, and lane layouts that follow a hot set."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from switchfold.controller.cli.workloads.key_stream import SEARCH, KeyPopularity, KeyStream
from switchfold.hostlib import HotRowError
from switchfold.hostlib.hot_rows import (
    EMPTY,
    FrequencySketch,
    HotSetOptions,
    HotSetTracker,
    LaneLayout,
    RowShape,
    plan_layout,
    refresh_layout,
)

NARROW = RowShape(num_lanes=32, width=16)
WIDE = RowShape(num_lanes=352, width=16)
Keys = NDArray[np.int64]


def mini_batches(stream: KeyStream, samples: int, count: int) -> list[Keys]:
    return [stream.draw(samples).ravel() for _ in range(count)]


def random_layout(keys: Keys, shape: RowShape) -> LaneLayout:
    return plan_layout(np.random.default_rng(0).permutation(keys), shape).layout


def ranks_down_the_rows(keys: Keys, shape: RowShape) -> LaneLayout:
    """Return the layout with consecutive ranks on the same lanes of consecutive rows."""
    rows = shape.num_rows(keys.size)
    cells = np.full(rows * shape.keys_per_row, EMPTY, np.int64)
    cells[: keys.size] = keys
    cells = cells.reshape(shape.keys_per_row, rows).T.ravel()
    return LaneLayout(shape, cells, np.ones(rows, np.uint32))


def packets_by_lane(layout: LaneLayout, batches: list[Keys]) -> int:
    """Return the packets if each took one key per place in a row, from any row."""
    packets = 0
    for batch in batches:
        row, lane = layout.places(np.unique(batch))
        packets += int(np.bincount(lane[row != EMPTY]).max(initial=0))
    return packets


@pytest.fixture(scope="module")
def zipf() -> tuple[Keys, list[Keys]]:
    """The hot keys of the study's larger model, and mini-batches that touch about 1,000 of them."""
    stream = KeyStream(SEARCH, seed=3)
    return stream.hottest(20_000), mini_batches(stream, 4096, 64)


def test_heat_doubles_the_fill_of_rows_by_key(zipf: tuple[Keys, list[Keys]]) -> None:
    keys, batches = zipf
    striped = plan_layout(keys, WIDE).layout.fill(batches)
    # Contiguous: a row holds 22 keys with consecutive numbers, as a table lies in memory.
    rows = sum(
        np.unique(np.intersect1d(batch, keys) // WIDE.keys_per_row).size for batch in batches
    )
    assert striped.ratio >= 2 * striped.values / (rows * WIDE.num_lanes)


def test_heat_beats_ranks_down_the_rows_and_random_rows(zipf: tuple[Keys, list[Keys]]) -> None:
    keys, batches = zipf
    striped = plan_layout(keys, WIDE).layout.fill(batches).ratio
    assert striped > 1.5 * ranks_down_the_rows(keys, WIDE).fill(batches).ratio
    assert striped > 1.5 * random_layout(keys, WIDE).fill(batches).ratio


def test_striping_needs_half_the_packets_if_a_packet_takes_one_key_per_lane() -> None:
    stream = KeyStream(KeyPopularity(num_keys=100_000, exponent=1.07), seed=3)
    keys, batches = stream.hottest(2048), mini_batches(stream, 1024, 64)
    shape = RowShape(num_lanes=32, width=1)
    striped = plan_layout(keys, shape).layout
    contiguous = ranks_down_the_rows(keys, shape)
    assert 2 * packets_by_lane(striped, batches) <= packets_by_lane(contiguous, batches)


def test_no_order_of_independent_keys_beats_heat() -> None:
    """Every other split of 6 keys into 2 rows needs at least as many packets on average."""
    probabilities = 0.6 ** np.arange(1, 7)
    untouched = 1 - probabilities
    by_heat = untouched[:3].prod() + untouched[3:].prod()
    generator = np.random.default_rng(1)
    for _ in range(100):
        shuffled = generator.permutation(untouched)
        assert shuffled[:3].prod() + shuffled[3:].prod() <= by_heat + 1e-12


def test_keys_that_come_together_share_rows() -> None:
    stream = KeyStream(
        KeyPopularity(
            num_keys=900_000, exponent=0.845, num_fields=26, num_topics=512, affinity=0.8
        ),
        seed=3,
    )
    keys, batches = stream.hottest(2048), mini_batches(stream, 64, 512)
    keys = np.random.default_rng(2).permutation(keys)  # the workload's ranks have topics in them
    planned = plan_layout(keys, WIDE, batches)
    assert planned.is_by_cooccurrence
    assert planned.fill.values == planned.heat_fill.values
    others = mini_batches(stream, 64, 64)
    by_heat = plan_layout(keys, WIDE).layout.fill(others).ratio
    assert planned.layout.fill(others).ratio > 1.3 * by_heat
    assert np.array_equal(np.sort(planned.layout.keys[planned.layout.keys != EMPTY]), np.sort(keys))
    assert np.array_equal(planned.layout.keys, plan_layout(keys, WIDE, batches).layout.keys)


@pytest.mark.parametrize("shape", [NARROW, WIDE], ids=["narrow", "wide"])
def test_independent_keys_lose_nothing(zipf: tuple[Keys, list[Keys]], shape: RowShape) -> None:
    keys, batches = zipf
    planned = plan_layout(keys[:4096], shape, batches[:48])
    by_heat = plan_layout(keys[:4096], shape).layout
    assert planned.layout.fill(batches[48:]).packets <= 1.01 * by_heat.fill(batches[48:]).packets


def test_pairs_are_put_together() -> None:
    # Keys 2 i and 2 i + 1 always come together, but their heat differs from other pairs' little.
    generator = np.random.default_rng(4)
    keys = generator.permutation(64)
    batches = [
        np.concatenate((2 * pairs, 2 * pairs + 1))
        for pairs in (generator.choice(32, 4, replace=False) for _ in range(200))
    ]
    planned = plan_layout(keys, NARROW, batches)
    assert planned.is_by_cooccurrence
    row = planned.layout.places(np.arange(64)).row
    assert np.array_equal(row[::2], row[1::2])
    assert planned.fill.ratio == 1.0


def order_by_jaccard(batches: list[set[int]], num_keys: int, keys_per_row: int) -> list[int]:
    """Return the ranks in the order that row_order.h describes, in rational numbers."""
    left, order = list(range(num_keys)), list[int]()
    own = [{n for n, batch in enumerate(batches) if rank in batch} for rank in left]
    in_row: set[int] = set()
    while left:
        if len(order) % keys_per_row == 0:
            rank, in_row = left[0], set()
        else:
            rank = max(
                left, key=lambda r: (Fraction(len(own[r] & in_row), len(own[r] | in_row) or 1), -r)
            )
        left.remove(rank)
        order.append(rank)
        in_row |= own[rank]
    return order


@given(
    batches=st.lists(st.sets(st.integers(0, 11), min_size=1), min_size=8, max_size=24),
    num_keys=st.integers(1, 12),
    keys_per_row=st.integers(2, 5),
)
def test_rows_take_the_most_similar_keys(
    batches: list[set[int]], num_keys: int, keys_per_row: int
) -> None:
    learning = [batch for number, batch in enumerate(batches) if number % 4]
    expected = order_by_jaccard(learning, num_keys, keys_per_row)
    shape = RowShape(num_lanes=keys_per_row, width=1)
    arrays = [np.array(sorted(batch)) for batch in batches]
    planned = plan_layout(np.arange(num_keys), shape, arrays)
    cells = planned.layout.keys[planned.layout.keys != EMPTY].tolist()
    assert cells == (expected if planned.is_by_cooccurrence else list(range(num_keys)))


def test_few_keys_and_wide_keys_go_by_heat() -> None:
    batches = [np.array([1, 2]), np.array([3])] * 8
    broad = plan_layout(np.array([3, 1, 2]), RowShape(num_lanes=32, width=64), batches)
    assert not broad.is_by_cooccurrence
    assert broad.layout.places(np.array([3, 1, 2])).row.tolist() == [0, 2, 4]
    empty = plan_layout(np.empty(0, np.int64), NARROW, batches)
    assert empty.layout.num_keys == 0
    assert empty.fill.ratio == 0
    for num_rows in (1, 3):
        with pytest.raises(HotRowError, match="rows"):
            plan_layout(np.arange(2), RowShape(num_lanes=32, width=64), num_rows=num_rows)
    with pytest.raises(HotRowError, match="two places"):
        plan_layout(np.array([4, 4]), NARROW)


def counted(keys: Keys, counts: list[int]) -> FrequencySketch:
    sketch = FrequencySketch(4096)
    sketch.update(np.repeat(keys, counts))
    return sketch


def test_kept_keys_keep_their_places_and_only_changed_rows_have_new_epochs() -> None:
    tracker = HotSetTracker(HotSetOptions(size=6, sketch_capacity=4096, decay=0.0))
    first = tracker.refresh([counted(np.arange(6), [600, 500, 400, 300, 200, 100])])
    layout = plan_layout(first.hot_set.keys, NARROW).layout
    assert layout.keys.tolist() == [0, 1, 2, 3, 4, 5]
    # 5 and 1 are replaced: the hotter newcomer goes to the row with the hotter key that stays.
    counts = [600, 10, 400, 300, 200, 10, 900, 800]
    change = tracker.refresh([counted(np.arange(8), counts)])
    refreshed = refresh_layout(layout, change)
    assert refreshed.layout.keys.tolist() == [0, 6, 2, 3, 4, 7]
    assert refreshed.changed_rows.tolist() == [0, 2]
    assert refreshed.layout.epochs.tolist() == [2, 1, 2]
    assert refreshed.layout.version == 2


def test_layout_follows_a_hot_set_through_shifts() -> None:
    stream = KeyStream(KeyPopularity(num_keys=50_000, exponent=1.0), seed=3)
    tracker = HotSetTracker(HotSetOptions(size=500, sketch_capacity=8192))
    sketch = FrequencySketch(8192)
    sketch.update(stream.draw(100_000))
    layout = plan_layout(tracker.refresh([sketch]).hot_set.keys, WIDE).layout
    changed_rows: list[int] = []
    for turn in range(4):
        if turn == 2:
            stream.permute(seed=8)
        sketch = FrequencySketch(8192)
        sketch.update(stream.draw(100_000))
        change = tracker.refresh([sketch])
        before, rows = layout, refresh_layout(layout, change).changed_rows
        layout = refresh_layout(layout, change).layout
        changed_rows.append(rows.size)
        for ours, theirs in zip(
            before.places(change.kept), layout.places(change.kept), strict=True
        ):
            assert np.array_equal(ours, theirs)
        assert (layout.places(change.added).row != EMPTY).all()
        assert (layout.places(change.removed).row == EMPTY).all()
        differs = before.keys.reshape(-1, 22) != layout.keys.reshape(-1, 22)
        assert np.array_equal(np.flatnonzero(differs.any(axis=1)), rows)
        assert np.array_equal(layout.epochs - before.epochs, differs.any(axis=1))
    assert max(changed_rows[:2]) < changed_rows[2]


def test_free_rows_take_a_growing_hot_set() -> None:
    tracker = HotSetTracker(HotSetOptions(size=6, sketch_capacity=4096))
    layout = plan_layout(tracker.refresh([]).hot_set.keys, NARROW, num_rows=3).layout
    change = tracker.refresh([counted(np.arange(3), [3, 2, 1])])
    refreshed = refresh_layout(layout, change)
    assert refreshed.layout.keys.tolist() == [0, 1, 2, EMPTY, EMPTY, EMPTY]
    assert refreshed.changed_rows.tolist() == [0, 1]


def test_change_of_another_layout_is_refused() -> None:
    tracker = HotSetTracker(HotSetOptions(size=2, sketch_capacity=4096, decay=0.0))
    first = tracker.refresh([counted(np.arange(2), [300, 200])])
    small = plan_layout(np.empty(0, np.int64), RowShape(num_lanes=16, width=16)).layout
    with pytest.raises(HotRowError, match="2 keys are added, but 1 cells are free"):
        refresh_layout(small, first)
    layout = plan_layout(first.hot_set.keys, NARROW).layout
    with pytest.raises(HotRowError, match="other keys"):
        refresh_layout(layout, first)
    change = tracker.refresh([counted(np.arange(3), [300, 1, 200])])
    assert refresh_layout(layout, change).layout.keys.tolist() == [0, 2]
    with pytest.raises(HotRowError, match="other keys"):
        refresh_layout(plan_layout(np.array([0, 7]), NARROW).layout, change)
