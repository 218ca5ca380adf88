# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Which keys become hot, where they lie, their epochs, and exponents that fit their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hot_schedule import u32
from switchfold.hostlib.control.row_server_link import RowView
from switchfold.hostlib.control.view import Endpoint
from switchfold.hostlib.errors import HotRowError
from switchfold.hostlib.hot_rows import EMPTY, FrequencySketch, KeyBatches
from switchfold.hostlib.parameter_server.hot_server.planning import LANE_BITS, HotPlanner
from switchfold.hostlib.parameter_server.hot_server.served_rows import ServedRows
from switchfold.hostlib.parameter_server.tables import TableDefinition
from switchfold.hostlib.parameter_server.tables.defined_table import DefinedTable

SERVER_ID = 3


def view_of(generation: int = 5, **fields: Any) -> RowView:
    known: dict[str, Any] = {
        "generation": generation,
        "tree_id": 7,
        "first_row": 10,
        "num_rows": 8,
        "values_per_packet": 32,
        "worker_id": 32 + SERVER_ID,
        "switch": Endpoint(address="127.0.0.1"),
        "num_workers": 2,
        "members": (),
        "reason": "",
    }
    return RowView(**known | fields)


def tables_of(*definitions: TableDefinition) -> dict[int, DefinedTable]:
    return {one.number: DefinedTable(one, one.new_rows()) for one in definitions}


def sketch_of(*keys: int) -> FrequencySketch:
    """The first key is the hottest."""
    sketch = FrequencySketch(64)
    for rank, key in enumerate(keys):
        sketch.update(np.full(1000 - 20 * rank, key))
    return sketch


def counted(updates: dict[int, int]) -> FrequencySketch:
    sketch = FrequencySketch(64)
    sketch.update(np.repeat(list(updates), list(updates.values())))
    return sketch


def hot_keys(served: ServedRows, table: int) -> set[int]:
    part = served.part(table)
    assert part is not None
    return set(part.layout.keys.tolist()) - {EMPTY}


NARROW = TableDefinition(name="narrow", width=8, hot_keys=10)
WIDE = TableDefinition(name="wide", width=40, hot_keys=9)
PAIRS = TableDefinition(name="pairs", width=16, hot_keys=8)
"""Two keys in a row."""
COLD = TableDefinition(name="cold", width=8)


def test_tables_share_the_rows_of_a_view() -> None:
    tables, planner = tables_of(COLD, NARROW, WIDE), HotPlanner(SERVER_ID)
    empty = planner.plan(view_of(), ServedRows(), tables, is_refresh=True)
    assert empty is not None
    assert (empty.generation, empty.rows.size) == (5, 0)
    assert planner.plan(view_of(), empty, tables, is_refresh=True) is None
    planner.add_sketch(NARROW.number, sketch_of(*range(100, 120)))
    planner.add_sketch(WIDE.number, sketch_of(*range(9)))
    assert planner.plan(view_of(), empty, tables, is_refresh=False) is None
    served = planner.plan(view_of(), empty, tables, is_refresh=True)
    assert served is not None
    assert served.rows["row"].tolist() == list(range(10, 17))
    assert served.rows["epoch"].tolist() == [32 * n + SERVER_ID for n in range(1, 8)]
    assert hot_keys(served, NARROW.number) == set(range(100, 110))
    assert hot_keys(served, WIDE.number) == {0, 1}
    assert len(tables[NARROW.number].rows) == 10
    assert planner.plan(view_of(), served, tables, is_refresh=True) is None


def test_a_refresh_changes_the_rows_of_changed_keys() -> None:
    tables, planner = tables_of(NARROW), HotPlanner(SERVER_ID)
    planner.add_sketch(NARROW.number, sketch_of(*range(10)))
    first = planner.plan(view_of(), ServedRows(), tables, is_refresh=True)
    assert first is not None
    planner.add_sketch(NARROW.number, sketch_of(*range(10)))
    assert planner.plan(view_of(), first, tables, is_refresh=True) is None
    for _ in range(3):
        planner.add_sketch(NARROW.number, sketch_of(99, *range(9)))
    second = planner.plan(view_of(), first, tables, is_refresh=True)
    assert second is not None
    assert hot_keys(second, NARROW.number) == {99, *range(9)}
    changed = second.changed(first)
    assert changed.size == 1
    (at,) = np.flatnonzero(second.rows["row"] == changed[0])
    assert second.rows["epoch"][at] == 4 * 32 + SERVER_ID
    assert second.number == first.number + 1


def test_keys_that_are_hardly_hotter_wait_for_more() -> None:
    tables, planner = tables_of(NARROW), HotPlanner(SERVER_ID)
    planner.add_sketch(NARROW.number, counted({9: 100, **dict.fromkeys(range(9), 1000)}))
    first = planner.plan(view_of(), ServedRows(), tables, is_refresh=True)
    assert first is not None
    # Clearly more updates than key 9 has, but hardly more of all.
    planner.add_sketch(NARROW.number, counted({99: 150, **dict.fromkeys(range(9), 1000)}))
    assert planner.plan(view_of(), first, tables, is_refresh=True) is None
    planner.add_sketch(NARROW.number, counted({99: 1000, **dict.fromkeys(range(9), 1000)}))
    second = planner.plan(view_of(), first, tables, is_refresh=True)
    assert second is not None
    assert hot_keys(second, NARROW.number) == {99, *range(9)}


def test_a_new_process_goes_on_with_the_layout_of_the_log() -> None:
    tables, planner = tables_of(NARROW), HotPlanner(SERVER_ID)
    planner.add_sketch(NARROW.number, sketch_of(*range(10)))
    first = planner.plan(view_of(), ServedRows(), tables, is_refresh=True)
    assert first is not None
    other = HotPlanner(SERVER_ID)
    assert other.plan(view_of(), first, tables, is_refresh=True) is None
    other.add_sketch(NARROW.number, sketch_of(99, *range(1, 10)))
    second = other.plan(view_of(), first, tables, is_refresh=True)
    assert second is not None
    assert hot_keys(second, NARROW.number) == {99, *range(1, 10)}


def test_a_new_view_takes_the_layouts_over() -> None:
    tables, planner = tables_of(NARROW), HotPlanner(SERVER_ID)
    planner.add_sketch(NARROW.number, sketch_of(*range(10)))
    first = planner.plan(view_of(), ServedRows(), tables, is_refresh=True)
    assert first is not None
    second = planner.plan(view_of(6, first_row=2), first, tables, is_refresh=False)
    assert second is not None
    assert second.rows["row"].tolist() == [2, 3, 4]
    assert second.rows["epoch"].tolist() == [32 * n + SERVER_ID for n in (1, 2, 3)]
    assert hot_keys(second, NARROW.number) == set(range(10))
    parked = planner.empty(6, second)
    assert (parked.rows.size, parked.num_epochs) == (0, 3)
    third = planner.plan(view_of(6, first_row=2), parked, tables, is_refresh=False)
    assert third is not None
    assert third.rows["epoch"].tolist() == [32 * n + SERVER_ID for n in (4, 5, 6)]
    crowded = planner.plan(view_of(7, num_rows=2), third, tables, is_refresh=False)
    assert crowded is not None
    assert not crowded.rows.size


def pairs(distance: int, count: int = 64) -> KeyBatches:
    """Mini-batches in which key k comes with key k + distance, both below 8, and with no other."""
    batches = KeyBatches(1024)
    for first in np.random.default_rng(distance).integers(8, size=count):
        batches.add(np.array([first, first ^ distance]))
    return batches


def test_keys_that_come_together_share_rows_from_the_first_refresh_on() -> None:
    tables, planner = tables_of(PAIRS), HotPlanner(SERVER_ID)
    planner.add_sketch(PAIRS.number, sketch_of(*range(8)))
    planner.add_batches(PAIRS.number, pairs(4))
    served = planner.plan(view_of(), ServedRows(), tables, is_refresh=True)
    assert served is not None
    part = served.part(PAIRS.number)
    assert part is not None
    rows = part.layout.places(np.arange(8)).row
    assert rows[:4].tolist() == rows[4:].tolist()
    assert np.unique(rows).size == 4


def test_rows_are_arranged_again_if_that_saves_packets() -> None:
    tables, planner = tables_of(PAIRS), HotPlanner(SERVER_ID)
    planner.add_sketch(PAIRS.number, sketch_of(*range(8)))
    first = planner.plan(view_of(), ServedRows(), tables, is_refresh=True)
    assert first is not None
    planner.add_sketch(PAIRS.number, sketch_of(*range(8)))
    planner.add_batches(PAIRS.number, pairs(4))
    second = planner.plan(view_of(), first, tables, is_refresh=True)
    assert second is not None
    part = second.part(PAIRS.number)
    assert part is not None
    rows = part.layout.places(np.arange(8)).row
    assert rows[:4].tolist() == rows[4:].tolist()
    assert second.changed(first).size == 4
    assert hot_keys(second, PAIRS.number) == set(range(8))
    for distance, count in (4, 64), (2, 512):  # nothing to save, then not looked for
        planner.add_sketch(PAIRS.number, sketch_of(*range(8)))
        planner.add_batches(PAIRS.number, pairs(distance, count))
        assert planner.plan(view_of(), second, tables, is_refresh=True) is None
    planner.add_sketch(PAIRS.number, sketch_of(*range(8)))
    third = planner.plan(view_of(), second, tables, is_refresh=True)
    assert third is not None
    assert third.changed(second).size == 4


def test_exponents_follow_the_gradients() -> None:
    tables, planner = tables_of(NARROW), HotPlanner(SERVER_ID)
    planner.add_sketch(NARROW.number, sketch_of(*range(10)))
    planner.note_gradients(NARROW.number, np.array([[0.5, -0.9]], np.float32))
    served = planner.plan(view_of(), ServedRows(), tables, is_refresh=True)
    assert served is not None
    assert set(served.rows["exponent"].tolist()) == {3 - LANE_BITS}
    for largest, exponent in ((3.0, None), (7.0, 6 - LANE_BITS), (1.0, None)):
        planner.note_gradients(NARROW.number, np.array([[largest]], np.float32))
        planned = planner.plan(view_of(), served, tables, is_refresh=True)
        assert (planned is None) == (exponent is None)
        if planned is not None:
            assert set(planned.rows["exponent"].tolist()) == {exponent}
            assert planned.changed(served).size == 3
            served = planned
    for _ in range(2):
        lanes = np.full((1, 32), 2 << (LANE_BITS - 20), np.int32)
        planner.note_sums(served, u32(10), u32(3), lanes)
        planned = planner.plan(view_of(), served, tables, is_refresh=True)
    assert planned is not None
    assert set(planned.rows["exponent"].tolist()) == {6 - 20 + 1 + 3 - LANE_BITS}
    for _ in range(2):
        assert planner.plan(view_of(), planned, tables, is_refresh=True) is None
    planner.note_sums(planned, u32(10), u32(3), np.ones((1, 32), np.int32))
    assert planner.plan(view_of(), planned, tables, is_refresh=False) is None
    planned = planner.plan(view_of(), planned, tables, is_refresh=True)
    assert planned is not None
    planner.note_overflows(u32(11))
    raised = planner.plan(view_of(), planned, tables, is_refresh=False)
    assert raised is not None
    assert raised.changed(planned).tolist() == [11]
    planner.note_gradients(NARROW.number, np.array([[3e38]], np.float32))
    most = planner.plan(view_of(), raised, tables, is_refresh=False)
    assert most is not None
    assert set(most.rows["exponent"].tolist()) == {90}


def test_a_plan_is_made_again_only_for_a_reason() -> None:
    tables, planner = tables_of(NARROW), HotPlanner(SERVER_ID)
    planner.add_sketch(NARROW.number, sketch_of(*range(10)))
    planner.note_gradients(NARROW.number, np.ones((1, 8), np.float32))
    served = planner.plan(view_of(), ServedRows(), tables, is_refresh=True)
    assert served is not None
    reasons = (
        lambda: planner.note_gradients(NARROW.number, np.full((1, 8), 100.0, np.float32)),
        lambda: planner.note_overflows(u32(11)),
        lambda: planner.note_sums(
            served, u32(10), u32(1), np.full((1, 32), 1 << LANE_BITS + 4, np.int32)
        ),
    )
    for reason in reasons:
        for _ in range(3):
            assert planner.plan(view_of(), served, tables, is_refresh=False) is None
            planner.note_gradients(NARROW.number, np.ones((1, 8), np.float32))
        reason()
        changed = planner.plan(view_of(), served, tables, is_refresh=False)
        assert changed is not None
        assert planner.plan(view_of(), changed, tables, is_refresh=False) is None
        served = changed
    planner.note_gradients(NARROW.number, np.full((1, 8), 2.0**60, np.float32))
    for _ in range(2):  # the log has not taken the first one
        assert planner.plan(view_of(), served, tables, is_refresh=False) is not None
    moved = planner.plan(view_of(first_row=20), served, tables, is_refresh=False)
    assert moved is not None
    assert moved.rows["row"].min() == 20


def test_keys_without_room_stay_cold() -> None:
    small = TableDefinition(name="small", width=8, hot_keys=10, max_rows=12)
    tables, planner = tables_of(small), HotPlanner(SERVER_ID)
    tables[small.number].pull(np.arange(100, 105))
    planner.add_sketch(small.number, sketch_of(*range(10)))
    served = planner.plan(view_of(), ServedRows(), tables, is_refresh=True)
    assert served is not None
    assert not served.rows.size


def test_sketches_of_another_size_are_refused() -> None:
    planner = HotPlanner(SERVER_ID)
    planner.add_sketch(1, sketch_of(1))
    with pytest.raises(HotRowError, match="cannot be added"):
        planner.add_sketch(1, FrequencySketch(32))
