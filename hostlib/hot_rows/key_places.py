# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Which keys of one table are to be hot, and in which cells of its rows they lie."""

from __future__ import annotations

import logging
from typing import Final, Protocol, final

import numpy as np
from numpy.typing import NDArray

from ..errors import HotRowError, RowTableError
from .hot_set import HotSet, HotSetChange, HotSetOptions, HotSetTracker
from .key_batches import KeyBatches
from .lane_layout import EMPTY, LaneLayout, RowShape
from .row_planning import PlannedLayout, plan_layout, refresh_layout
from .sketch import FrequencySketch

_BATCH_KEYS: Final = 1 << 16
"""Keys of all mini-batches that are kept: a layout is planned with them in about 0.2 s."""
_GAIN: Final = 1.25
"""A new layout of the same keys must save a fifth of the packets: it moves most keys."""
_LEAST_GAIN: Final = 0.02
"""Other keys must take so many more of the updates: a change takes the rows out of use."""
_logger = logging.getLogger(__name__)


class HotDefinition(Protocol):
    """What the planner needs of a TableDefinition."""

    @property
    def name(self) -> str:
        """For messages."""
        ...

    @property
    def width(self) -> int:
        """Values of a key."""
        ...

    @property
    def hot_keys(self) -> int:
        """Most hot keys."""
        ...

    @property
    def sketch_capacity(self) -> int:
        """Counters of the workers' sketches."""
        ...


class PlannedTable(Protocol):
    """What the planner needs of a table."""

    @property
    def definition(self) -> HotDefinition:
        """What the table is."""
        ...

    def prepare(self, keys: NDArray[np.int64], gradients: NDArray[np.float32]) -> None:
        """Make rows. Raises RowTableError."""
        ...


@final
class KeyPlaces:
    """Learns from workers' samples; each refresh chooses keys, and moves as few as it can."""

    def __init__(self) -> None:
        self.last_layout: LaneLayout | None = None
        """Of the rows before; another view begins with it."""
        self._sketch: FrequencySketch | None = None
        """Of the workers, since the last refresh."""
        self._batches = KeyBatches(_BATCH_KEYS)
        self._tracker: HotSetTracker | None = None
        self._size = 0, 0
        """Hot keys and counters of the tracker."""
        self._num_refreshes = 0

    def add_sketch(self, sketch: FrequencySketch) -> None:
        """Take what a worker has counted. Raises HotRowError if others count otherwise."""
        if self._sketch is None:
            self._sketch = FrequencySketch(sketch.capacity)
        self._sketch.merge(sketch)

    def add_batches(self, batches: KeyBatches) -> None:
        """Take the keys of some mini-batches of a worker."""
        self._batches.merge(batches)

    def plan(self, table: PlannedTable, shape: RowShape, num_free: int) -> LaneLayout | None:
        """Return a first layout in some of the free rows, None if too little is known."""
        span = shape.rows_per_key
        num_rows = min(shape.num_rows(table.definition.hot_keys), num_free // span * span)
        if not num_rows:
            return None
        hot_set = self._choose(table, num_rows // span * shape.keys_per_row)
        if hot_set is None or not hot_set.keys.size or not _has_room(table, hot_set.keys):
            return None
        planned = plan_layout(hot_set.keys, shape, self._batches.batches, num_rows=num_rows)
        _log(table, planned)
        return planned.layout

    def refresh(self, table: PlannedTable, layout: LaneLayout) -> LaneLayout:
        """Return a layout with the keys that are hot now; the given one if they gain little.

        Rows of which no key changes keep their epochs; those of the others rise.
        """
        hot_set = self._choose(table, layout.keys.size)
        if hot_set is None or self._tracker is None:
            return layout
        before = np.sort(layout.keys[layout.keys != EMPTY])
        now = np.sort(hot_set.keys)
        change = HotSetChange(
            kept=np.intersect1d(before, now, assume_unique=True),
            added=np.setdiff1d(now, before, assume_unique=True),
            removed=np.setdiff1d(before, now, assume_unique=True),
            is_shift=False,
            hot_set=hot_set,
        )
        if self._gain(change, self._tracker) >= _LEAST_GAIN:
            if not _has_room(table, change.added):
                return layout
            layout = refresh_layout(layout, change).layout
        return self._rearranged(table, layout, self._tracker)

    @staticmethod
    def _gain(change: HotSetChange, tracker: HotSetTracker) -> float:
        """Return how many more updates the set takes after a change, as a share of them."""
        updates = float(change.hot_set.counts.sum())
        kept = float(tracker.counts(np.concatenate((change.kept, change.removed))).sum())
        return 1 - kept / updates if updates else 0.0

    def _rearranged(
        self, table: PlannedTable, layout: LaneLayout, tracker: HotSetTracker
    ) -> LaneLayout:
        """Return a new layout of the same keys, if it saves enough packets; else the given one.

        The search is made at every refresh whose number is a power of two: its time grows with the
        square of the number of keys, and what it finds changes little.
        """
        self._num_refreshes += 1
        batches = self._batches.batches
        if self._num_refreshes & (self._num_refreshes - 1) or not batches:
            return layout
        keys = layout.keys[layout.keys != EMPTY]
        hottest_first = np.lexsort((keys, -tracker.counts(keys)))
        planned = plan_layout(keys[hottest_first], layout.shape, batches, num_rows=layout.num_rows)
        if layout.fill(batches).packets < _GAIN * planned.layout.fill(batches).packets:
            return layout
        _log(table, planned)
        return layout.replace(np.arange(layout.keys.size), planned.layout.keys)[0]

    def _choose(self, table: PlannedTable, num_cells: int) -> HotSet | None:
        """Return the hot set by the sketches since the last refresh, None without any."""
        sketch, self._sketch = self._sketch, None
        if sketch is None or not sketch.total:
            return None
        size = min(table.definition.hot_keys, num_cells, sketch.capacity)
        if self._tracker is None or self._size != (size, sketch.capacity):
            self._size = (size, sketch.capacity)
            self._tracker = HotSetTracker(HotSetOptions(size=size, sketch_capacity=sketch.capacity))
        try:
            return self._tracker.refresh([sketch]).hot_set
        except HotRowError as error:
            _logger.warning("table %r: %s", table.definition.name, error)
            return None


def _log(table: PlannedTable, planned: PlannedLayout) -> None:
    by = "keys that come together" if planned.is_by_cooccurrence else "equally hot keys"
    _logger.info(
        "table %r: %d hot keys in %d rows, of %s each; mini-batches use %.1f %% of a packet's"
        " lanes (%.1f %% if by heat)",
        table.definition.name,
        planned.layout.num_keys,
        planned.layout.num_rows,
        by,
        100 * planned.fill.ratio,
        100 * planned.heat_fill.ratio,
    )


def _has_room(table: PlannedTable, keys: NDArray[np.int64]) -> bool:
    """Make the rows of keys; return whether there is room for them."""
    try:
        table.prepare(keys, np.zeros((keys.size, table.definition.width), np.float32))
    except RowTableError as error:
        _logger.warning("hot keys stay as they were: %s", error)
        return False
    return True
