# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Which keys are to be hot, in which rows of a view, and what their lanes are worth."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ...control.row_server_link import MAX_ROW_SERVERS, RowView
from ...errors import HotRowError
from ...hot_rows import (
    FrequencySketch,
    KeyBatches,
    KeyPlaces,
    LaneLayout,
    PlannedTable,
    RowShape,
)
from .rounds import MOST_ROWS, U32, count_workers
from .served_rows import SERVED_DTYPE, Floats, Lanes, ServedRows

LANE_BITS: Final = 25
"""A worker's lane is at most 2^25, so that the sum of 32 workers is an int32."""
_HEADROOM_BITS: Final = 3
"""Gradients may become so many times two larger before the exponent has to rise."""
_SLACK_BITS: Final = 6
"""An exponent falls only if gradients have become so much smaller."""
_OVERFLOW_BITS: Final = 3
_EXPONENTS: Final = (-120, 90)
"""Sums of int32 with these exponents are float32 numbers that are finite."""
_SAMPLED: Final = 256
"""Keys of a push whose gradients are looked at."""
_MOST_EPOCHS: Final = (1 << 32) // MAX_ROW_SERVERS - 1


@dataclass
class _TablePlan:
    """What is known of a table's keys and gradients."""

    places: KeyPlaces = field(default_factory=KeyPlaces)
    largest: float = 0.0
    """Of the gradients since the last refresh."""
    exponent: int | None = None
    """The last one, None before the first."""
    before: float = 0.0
    """Of the gradients between the two refreshes before."""


class _Block(NamedTuple):
    """A table's rows; an epoch of 0 is to be replaced by a new one."""

    table: int
    layout: LaneLayout
    rows: NDArray[np.void]


_Scene = tuple[RowView, ServedRows, int]
"""What a plan is made for: the view, the present rows, and the number of tables."""


@final
class HotPlanner:
    """Makes the next set of hot rows out of sketches and the sizes of gradients."""

    def __init__(self, server_id: int) -> None:
        self._server_id = server_id
        self._plans: defaultdict[int, _TablePlan] = defaultdict(_TablePlan)
        self._overflowed: set[int] = set()
        self._has_news = False  # of gradients and sums, for the next plan
        self._settled: _Scene | None = None  # for which the last plan has changed nothing

    def add_sketch(self, table: int, sketch: FrequencySketch) -> None:
        """Take what a worker has counted. Raises HotRowError if others count otherwise."""
        self._plans[table].places.add_sketch(sketch)

    def add_batches(self, table: int, batches: KeyBatches) -> None:
        """Take the keys of some mini-batches of a worker."""
        self._plans[table].places.add_batches(batches)

    def note_gradients(self, table: int, gradients: Floats) -> None:
        """Learn of gradients that a worker has pushed."""
        if gradients.size:
            step = -(-len(gradients) // _SAMPLED)
            sample = gradients[::step]
            largest = max(float(sample.max()), -float(sample.min()))
            self._note_size(table, largest)

    def note_sums(self, served: ServedRows, rows: U32, bitmaps: U32, lanes: Lanes) -> None:
        """Learn of sums: on average, a push is as large as its share of them."""
        indexes = served.indexes(rows)
        sizes = np.maximum(lanes.max(axis=1), -lanes.min(axis=1).astype(np.float64))
        sizes = np.ldexp(sizes / count_workers(bitmaps), served.rows["exponent"][indexes])
        for part in served.parts:
            own = sizes[(indexes >= part.first) & (indexes < part.first + part.layout.num_rows)]
            self._note_size(part.table, float(own.max(initial=0.0)))

    def _note_size(self, table: int, largest: float) -> None:
        plan = self._plans[table]
        if largest > plan.largest:
            plan.largest, self._has_news = largest, True

    def note_overflows(self, rows: U32) -> None:
        """Learn of rows whose sums were too large."""
        self._overflowed |= set(rows.tolist())
        self._has_news |= rows.size > 0

    def empty(self, generation: int, served: ServedRows) -> ServedRows:
        """Return a set without rows; the layouts are kept for the next one."""
        self._keep(served)
        same = served.generation == generation
        return ServedRows(
            generation,
            number=served.number + 1,
            num_epochs=served.num_epochs if same else 0,
        )

    def plan(
        self,
        view: RowView,
        served: ServedRows,
        tables: Mapping[int, PlannedTable],
        *,
        is_refresh: bool,
    ) -> ServedRows | None:
        """Return the next set of rows, None if the present one stays.

        `is_refresh`: choose the hot keys again, where workers have sent sketches.
        """
        scene = view, served, len(tables)
        if scene == self._settled and not (is_refresh or self._has_news):
            return None
        self._settled, self._has_news = None, False
        end = view.first_row + view.num_rows
        in_view = (served.rows["row"] >= view.first_row) & (served.rows["row"] < end)
        is_same = served.generation == view.generation and bool(in_view.all())
        if not is_same:
            self._keep(served)
        is_free = np.ones(max(0, min(end, MOST_ROWS) - view.first_row), np.bool_)
        if is_same:
            is_free[served.rows["row"] - np.uint32(view.first_row)] = False
        free = (np.flatnonzero(is_free) + view.first_row).astype(np.uint32)
        blocks: list[_Block] = []
        for number, table in tables.items():
            if not table.definition.hot_keys:
                continue
            part = served.part(number) if is_same else None
            if part is not None:
                rows = served.rows[part.first : part.first + part.layout.num_rows].copy()
                block = _Block(number, part.layout, rows)
                block = self._refreshed(block, table) if is_refresh else block
            else:
                shape = RowShape(num_lanes=view.values_per_packet, width=table.definition.width)
                block = self._new_block(number, table, shape, free, is_refresh=is_refresh)
                if block is None:
                    continue
                free = free[block.rows.size :]
            self._scale(block, is_new=part is None, may_fall=is_refresh)
            blocks.append(block)
        if is_refresh:
            self._age()
        self._overflowed.clear()
        has_new = any((block.rows["epoch"] == 0).any() for block in blocks)
        if is_same and not has_new and len(blocks) == len(served.parts):
            self._settled = scene
            return None
        return self._assemble(view.generation, served, blocks)

    def _keep(self, served: ServedRows) -> None:
        for part in served.parts:
            plan = self._plans[part.table]
            plan.places.last_layout = part.layout
            exponents = served.rows["exponent"][part.first : part.first + part.layout.num_rows]
            plan.exponent = int(exponents.max())

    def _age(self) -> None:
        for plan in self._plans.values():
            plan.before, plan.largest = plan.largest, 0.0

    def _new_block(
        self, number: int, table: PlannedTable, shape: RowShape, free: U32, *, is_refresh: bool
    ) -> _Block | None:
        """Return rows with the table's last layout, or with the keys that workers have counted."""
        places = self._plans[number].places
        layout = places.last_layout
        if layout is None or layout.shape != shape or layout.num_rows > free.size:
            layout = places.plan(table, shape, free.size) if is_refresh else None
        if layout is None:
            return None
        rows = np.zeros(layout.num_rows, SERVED_DTYPE)
        rows["row"], rows["table"] = free[: layout.num_rows], number
        return _Block(number, layout, rows)

    def _refreshed(self, block: _Block, table: PlannedTable) -> _Block:
        """Return a table's rows with the keys that are hot now."""
        layout = self._plans[block.table].places.refresh(table, block.layout)
        block.rows["epoch"][layout.epochs != block.layout.epochs] = 0
        return block._replace(layout=layout)

    def _scale(self, block: _Block, *, is_new: bool, may_fall: bool) -> None:
        """Set the exponents of rows that need another one, which takes a new epoch."""
        plan, exponents = self._plans[block.table], block.rows["exponent"]
        seen = max(plan.largest, plan.before)
        most_bits = math.frexp(seen)[1] if seen else 0
        wanted = min(max(most_bits + _HEADROOM_BITS - LANE_BITS, _EXPONENTS[0]), _EXPONENTS[1])
        if not seen and plan.exponent is not None:
            wanted = plan.exponent
        is_small = (most_bits + 1 > exponents + LANE_BITS) & (seen > 0)
        is_large = (wanted < exponents - _SLACK_BITS) & (seen > 0 and may_fall)
        is_over = np.isin(block.rows["row"], np.array([*self._overflowed], np.uint32))
        raised = np.minimum(exponents + _OVERFLOW_BITS, _EXPONENTS[1])
        scaled = np.where(is_small | is_large | is_new, wanted, exponents)
        scaled = np.where(is_over, np.maximum(scaled, raised), scaled)
        block.rows["epoch"][scaled != exponents] = 0
        block.rows["exponent"] = scaled

    def _assemble(self, generation: int, served: ServedRows, blocks: list[_Block]) -> ServedRows:
        rows = np.concatenate([np.empty(0, SERVED_DTYPE), *(block.rows for block in blocks)])
        new = np.flatnonzero(rows["epoch"] == 0)
        used = served.num_epochs if served.generation == generation else 0
        if used + new.size > _MOST_EPOCHS:
            raise HotRowError(f"generation {generation} has no epochs left; restart the job")
        # Counted from 1, so that epochs of all servers are above 31.
        numbers = np.arange(used + 1, used + 1 + new.size, dtype=np.uint32)
        rows["epoch"][new] = numbers * np.uint32(MAX_ROW_SERVERS) + np.uint32(self._server_id)
        return ServedRows(
            generation,
            rows,
            tuple((block.table, block.layout) for block in blocks),
            number=served.number + 1,
            num_epochs=used + new.size,
        )
