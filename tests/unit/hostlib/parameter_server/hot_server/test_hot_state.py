# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The state machine of hot rows beside dicts: random sums, fences, layouts, lost records."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from hot_schedule import NUM_LANES, NUM_WORKERS, Schedule, digest, one, u32
from switchfold.hostlib.errors import HotRowError, StorageDamagedError
from switchfold.hostlib.hot_rows import LaneLayout, RowShape
from switchfold.hostlib.parameter_server.hot_server.changes import HotFence, HotSums, unpack
from switchfold.hostlib.parameter_server.hot_server.rounds import RowRounds, RowsOfRounds
from switchfold.hostlib.parameter_server.hot_server.served_rows import SERVED_DTYPE, ServedRows
from switchfold.hostlib.parameter_server.rows import RowTable


@pytest.mark.parametrize("seed", range(6))
def test_random_schedules(seed: int) -> None:
    schedule = Schedule(seed)
    rng = schedule.rng
    events: list[tuple[Callable[[], None], float]] = [
        (schedule.sums, 0.4),
        (schedule.fence, 0.05),
        (schedule.fence_lost, 0.05),
        (lambda: schedule.layout(is_new_view=False), 0.04),
        (lambda: schedule.layout(is_new_view=True), 0.01),
        (lambda: schedule.enter(int(rng.integers(0, NUM_WORKERS))), 0.03),
        (lambda: schedule.settle(int(rng.integers(1, 5))), 0.4),
        (schedule.keep_snapshot, 0.02),
    ]
    schedule.layout(is_new_view=True)
    schedule.settle()
    for choice in rng.choice(len(events), 500, p=[share for _, share in events]):
        events[choice][0]()
    schedule.settle()
    for has_snapshot in (False, True):
        found = schedule.replay(has_snapshot=has_snapshot)
        assert digest(found) == digest(schedule.state)
        assert found.workers == schedule.state.workers
    assert sum(map(bool, schedule.model.decided.values())) > 40


def test_a_batch_claims_each_round_once() -> None:
    rounds = RowRounds(2)
    rounds.make_rows(3)
    asked = RowsOfRounds(u32(1, 1, 1, 1, 9, 2), u32(1, 2, 1, 3, 1, 0))
    assert rounds.claim(asked).tolist() == [True, True, False, False, False, False]
    assert not rounds.claim(asked).any()
    assert rounds.decide(one(1, 2), u32(3)).all()
    assert (rounds.next[1], rounds.is_ahead[1]) == (1, True)
    assert not rounds.decide(one(1, 2), u32(1)).any()
    assert rounds.decide(one(1, 1), u32(2)).all()
    assert (rounds.next[1], rounds.is_ahead[1]) == (3, False)
    assert rounds.counted[1].tolist() == [[0, 2], [1, 2]]
    assert rounds.counts(RowsOfRounds(u32(1, 1), u32(1, 2)), 0, 0).tolist() == [False, True]
    assert rounds.claim(RowsOfRounds(u32(1, 1, 1), u32(4, 3, 5))).tolist() == [True, True, False]


def test_a_lower_generation_forgets_what_was_counted() -> None:
    rounds = RowRounds(1)
    rounds.make_rows(1)
    rounds.start_generation(5)
    rounds.decide(one(0, 1), u32(1))
    rounds.start_generation(2)
    rounds.decide(one(0, 1), u32(1))
    assert rounds.counted[0, 0].tolist() == [0, 2 << 32 | 1]


def test_a_sum_of_another_generation_is_left_out() -> None:
    schedule = Schedule(0)
    schedule.layout(is_new_view=True)
    schedule.settle()
    row = int(schedule.state.hot.served.rows["row"][0])
    lanes = np.ones((1, NUM_LANES), np.int32)
    change = HotSums(schedule.state.hot.generation + 1, one(row, 1), u32(1), lanes)
    assert not schedule.state.apply_hot(change, lsn=100).rounds.size


@pytest.mark.parametrize("exponent", [-120, 90])
def test_sums_are_finite(exponent: int) -> None:
    """Whatever 32 bits a lane has, and however often a key comes in a batch."""
    rows = np.zeros(2, SERVED_DTYPE)
    rows["row"], rows["epoch"], rows["exponent"] = [3, 4], 32, exponent
    shape = RowShape(num_lanes=8, width=3)
    layout = LaneLayout(shape, np.arange(4), np.ones(2, np.uint32))
    served = ServedRows(1, rows, ((0, layout),))
    lanes = np.full((3, 8), -(2**31), np.int32)
    lanes[:, 3:] = 2**31 - 1
    (found,) = served.gradients(u32(3, 4, 4), lanes)
    assert found.keys.tolist() == [0, 1, 2, 3, 2, 3]
    assert np.isfinite(found.gradients.sum(axis=0)).all()
    table = RowTable(width=3, max_rows=10)
    table.push(found.keys, found.gradients)
    assert np.isfinite(table.pull(np.arange(4)).values).all()


def test_damaged_records_are_refused() -> None:
    record = b"".join(HotFence(1, one(2, 3)).pack())
    with pytest.raises(StorageDamagedError, match="bytes of 1 rounds"):
        unpack(memoryview(record + b"1234"))
    packed = ServedRows().pack()
    with pytest.raises(StorageDamagedError, match="hot rows in a server's log"):
        ServedRows.unpack(memoryview(packed + b"1"))
    with pytest.raises(StorageDamagedError, match="rounds of hot rows"):
        RowRounds(3).restore(memoryview(RowRounds(2).pack()))
    rows = np.zeros(2, SERVED_DTYPE)
    with pytest.raises(HotRowError, match="rows, and layouts of 0"):
        ServedRows(1, rows)
