# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sums of scheduled updates in the tables: all of their updates count, or none; and in replays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
import pytest

from switchfold.hostlib.errors import ConfigurationError, StorageDamagedError
from switchfold.hostlib.parameter_server.rows.optimisers import Adagrad
from switchfold.hostlib.parameter_server.summed_updates import (
    SumMember,
    head_bytes,
    pack_members_into,
    unpack_members,
)
from switchfold.hostlib.parameter_server.tables import TensorDefinition
from switchfold.hostlib.parameter_server.tables.change import UPDATE_BYTES, TableChange
from switchfold.hostlib.parameter_server.tables.snapshot import capture, restore, row_chunks
from switchfold.hostlib.parameter_server.tables.state import TableState
from switchfold.hostlib.peers.frames import FrameKind

DEFINITION = TensorDefinition(name="w", num_values=200, block_values=100)
INCARNATION = 9
NUM_WORKERS = 3


def tables(definition: TensorDefinition = DEFINITION) -> TableState:
    state = TableState(NUM_WORKERS)
    for worker_id in range(NUM_WORKERS):
        enter = TableChange(FrameKind.ENTER, worker_id, INCARNATION, 0, 1)
        state.apply(enter, memoryview(b""), lsn=worker_id + 1)
    define = TableChange(FrameKind.DEFINE, 0, INCARNATION, 1)
    state.apply(define, memoryview(definition.table().pack()), lsn=NUM_WORKERS + 1)
    return state


def member(worker_id: int, number: int, open_from: int = 1) -> SumMember:
    return SumMember(worker_id, INCARNATION, number, open_from)


def total(
    members: Sequence[SumMember], value: float, definition: TensorDefinition = DEFINITION
) -> tuple[TableChange, memoryview]:
    """Return a sum of these updates whose values are all `value`."""
    table = definition.table()
    keys = np.arange(table.max_rows)
    head = memoryview(bytearray(head_bytes(len(members))))
    pack_members_into(head, members)
    values = np.full((keys.size, table.width), value, np.float32)
    payload = memoryview(bytes(head) + keys.tobytes() + values.tobytes())
    return TableChange(FrameKind.SUM, 2, INCARNATION, 7, table.number, keys.size), payload


def value_of(state: TableState) -> float:
    table = DEFINITION.table()
    rows = state.pull(table.number, np.arange(table.max_rows)).values
    assert (rows == rows[0, 0]).all()
    return float(rows[0, 0])


def test_a_sum_counts_as_each_of_its_updates() -> None:
    state = tables()
    state.apply(*total([member(0, 4, open_from=3), member(1, 1), member(0, 5, open_from=3)], 6.0))
    assert value_of(state) == 6.0
    assert [worker.num_commits for worker in state.workers] == [2, 1, 0]
    assert [worker.updates for worker in state.workers] == [[4, 5], [1], []]
    assert (state.counters["commits"], state.counters["sums"]) == (3, 1)


@pytest.mark.parametrize(
    "members",
    [
        [member(0, 4), member(1, 2)],
        [member(1, 1), member(1, 2)],
        [member(1, 2), member(1, 2)],
        [member(1, 2), member(2, 1)._replace(incarnation=8)],
        [member(1, 2), member(NUM_WORKERS, 1)],
        [member(1, 2), member(0, 6, open_from=7)],
    ],
    ids=["applied", "applied of one worker", "twice in it", "replaced", "no worker", "forgotten"],
)
def test_a_sum_has_no_effect_if_one_of_its_updates_must_not_count(
    members: list[SumMember],
) -> None:
    state = tables()
    state.apply(*total([member(0, 4), member(1, 1)], 6.0))
    before = [(worker.num_commits, list(worker.updates)) for worker in state.workers]
    state.apply(*total(members, 100.0))
    assert value_of(state) == 6.0
    assert [(worker.num_commits, worker.updates) for worker in state.workers] == before


def test_an_update_that_a_sum_contained_has_no_effect_alone() -> None:
    state = tables()
    state.apply(*total([member(0, 4), member(1, 1)], 6.0))
    change, payload = total([member(0, 4)], 100.0)
    alone = memoryview(bytearray(UPDATE_BYTES) + payload[head_bytes(1) :])
    state.apply(change._replace(kind=FrameKind.TRANSFER, worker_id=0, number=4), alone)
    assert value_of(state) == 6.0
    assert state.num_commits == 2


def test_a_snapshot_and_a_replay_know_the_updates_of_a_sum() -> None:
    state, again = tables(), TableState(NUM_WORKERS)
    state.apply(*total([member(0, 1), member(1, 1)], 6.0), lsn=5)
    chunks = chain(capture(state), row_chunks([*state.tables.items()]))
    restore(again, [(name, bytes(payload)) for name, payload in chunks])
    assert again.workers == state.workers
    for tail in total([member(0, 1), member(2, 1)], 100.0), total([member(2, 1)], 1.0):
        for each in state, again:
            each.apply(*tail, lsn=6, is_replay=each is again)
    assert value_of(state) == value_of(again) == 7.0
    assert again.num_commits == 3


def test_a_sum_is_refused_where_it_has_not_the_effect_of_each() -> None:
    definition = TensorDefinition(
        name="w", num_values=200, block_values=100, optimiser=Adagrad(learning_rate=0.1)
    )
    state = tables(definition)
    change, payload = total([member(0, 1), member(1, 1)], 6.0, definition)
    for use in state.check, state.apply:
        with pytest.raises(ConfigurationError, match="Adagrad has a state"):
            use(change, payload)
    assert state.num_commits == 0


@pytest.mark.parametrize("size", [0, 7, 8, 8 + 31])
def test_a_damaged_record_is_named(size: int) -> None:
    payload = memoryview(bytes([1]) + bytes(7) + bytes(64))[:size]
    with pytest.raises(StorageDamagedError, match=f"a SUM of {size} bytes"):
        unpack_members(payload)
