# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Which hot keys share a row: the hottest together, or those that come together.

A worker sends a row if its mini-batch touches any key of it. With keys that come independently of
each other, rows of equally hot keys need the fewest packets: a row stays unsent with the product of
its keys' probabilities of no touch, and the sum of these products over all rows is largest if the
large factors share rows. So rank r lies in row r // n, on lanes r % n, for n keys per row.

Keys that depend on each other can do better. `plan_layout` tries that on some mini-batches, and
keeps the result if it needs fewer packets for others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ..errors import HotRowError, RowMemoryError
from ..native.library import address, library
from ..native.row_library import RowStatus
from .hot_set import HotSetChange
from .lane_layout import EMPTY, LaneLayout, RowFill, Rows, RowShape
from .sketch import Keys

_JUDGING: Final = 4
"""Every fourth mini-batch is kept for the comparison."""
_MOST_TOUCHED: Final = 1 << 20
"""So many touched keys are enough to learn from."""
Order = NDArray[np.int64]
"""Ranks in the order of their cells."""


@dataclass(frozen=True, eq=False)
class PlannedLayout:
    """A lane layout, and the reason for it."""

    layout: LaneLayout
    is_by_cooccurrence: bool
    """Whether keys that come together share rows; else equally hot keys do."""
    fill: RowFill
    """Of the mini-batches that were kept for the comparison."""
    heat_fill: RowFill
    """Of the same mini-batches with equally hot keys in a row."""


@dataclass(frozen=True, eq=False)
class RefreshedLayout:
    """A lane layout after a change of the hot set."""

    layout: LaneLayout
    changed_rows: Rows
    """Rows with other keys than before, which have a new epoch. They rise."""


def plan_layout(
    keys: Keys, shape: RowShape, batches: Sequence[Keys] = (), *, num_rows: int | None = None
) -> PlannedLayout:
    """Give every hot key a place, all rows being new.

    Args:
        keys: the hot set's keys, the hottest first.
        shape: lanes of a row, and values of a key.
        batches: sampled mini-batches; without any, heat alone decides.
        num_rows: rows of the layout, if some are to stay free; as many as needed by default.

    Raises:
        HotRowError: the rows have too few cells, or keys repeat.
    """
    heat = _layout(keys, np.arange(keys.size), shape, num_rows)
    judging = batches[::_JUDGING]
    heat_fill = heat.fill(judging)
    learning = [batch for number, batch in enumerate(batches) if number % _JUDGING]
    if shape.keys_per_row > 1 and learning and keys.size:
        order = _order_by_cooccurrence(_touched_ranks(keys, learning), keys.size, shape)
        together = _layout(keys, order, shape, num_rows)
        fill = together.fill(judging)
        if fill.packets < heat_fill.packets:
            return PlannedLayout(together, True, fill, heat_fill)
    return PlannedLayout(heat, False, heat_fill, heat_fill)


def refresh_layout(layout: LaneLayout, change: HotSetChange) -> RefreshedLayout:
    """Put the added keys into the cells of removed keys and into free ones.

    Kept keys stay where they are. The hottest added key goes to the row that has the hottest kept
    keys, and so on. A layout that was refreshed often fits the heat less well than a new one.

    Raises HotRowError if the change does not fit the layout.
    """
    per_row = layout.shape.keys_per_row
    is_free = (layout.keys == EMPTY) | np.isin(layout.keys, change.removed)
    kept = layout.keys[~is_free]
    if (
        not np.array_equal(np.sort(kept), change.kept)
        or layout.num_keys != change.kept.size + change.removed.size
    ):
        raise HotRowError("the hot set changes from other keys than those of the lane layout")
    free = np.flatnonzero(is_free)
    if change.added.size > free.size:
        raise HotRowError(f"{change.added.size} keys are added, but {free.size} cells are free")
    by_key = np.argsort(change.hot_set.keys)
    counts = np.zeros(layout.keys.size)
    counts[~is_free] = change.hot_set.counts[by_key][
        np.searchsorted(change.hot_set.keys[by_key], kept)
    ]
    row_heat = counts.reshape(-1, per_row).sum(axis=1)
    free = free[np.argsort(-row_heat[free // per_row], kind="stable")]
    hottest_first = change.hot_set.keys[np.isin(change.hot_set.keys, change.added)]
    keys = np.full(free.size, EMPTY, np.int64)
    keys[: hottest_first.size] = hottest_first
    return RefreshedLayout(*layout.replace(free, keys))


def _layout(keys: Keys, order: Order, shape: RowShape, num_rows: int | None) -> LaneLayout:
    needed = max(shape.num_rows(keys.size), shape.rows_per_key)
    rows = needed if num_rows is None else num_rows
    if rows < needed or rows % shape.rows_per_key:
        raise HotRowError(f"{keys.size} keys need {needed} rows, not {rows}")
    cells = np.full(rows // shape.rows_per_key * shape.keys_per_row, EMPTY, np.int64)
    cells[: keys.size] = keys[order]
    return LaneLayout(shape, cells, np.ones(rows, np.uint32))


def _order_by_cooccurrence(touched: Sequence[Order], num_keys: int, shape: RowShape) -> Order:
    """Return ranks such that those of a row come together in the mini-batches, as row_order.h says.

    With 20,000 keys, that takes about 0.2 s of one core.
    """
    ranks = np.concatenate(touched).astype(np.int32)
    ends = np.cumsum([each.size for each in touched], dtype=np.uint64)
    order = np.empty(num_keys, np.int32)
    status = library.row_order(
        address(ranks), address(ends), len(touched), num_keys, shape.keys_per_row, address(order)
    )
    if status != RowStatus.DONE:
        raise RowMemoryError(f"no memory for an order of {num_keys} hot keys")
    return order.astype(np.int64)


def _touched_ranks(keys: Keys, batches: Sequence[Keys]) -> list[Order]:
    """Return the distinct hot ranks of each mini-batch, of the first ones if they are many."""
    by_key = np.argsort(keys)
    rising = keys[by_key]
    touched: list[Order] = []
    num_touched = 0
    for batch in batches:
        if num_touched > _MOST_TOUCHED:
            break
        distinct = np.unique(batch)
        at = np.minimum(np.searchsorted(rising, distinct), rising.size - 1)
        touched.append(by_key[at[rising[at] == distinct]])
        num_touched += touched[-1].size
    return touched
