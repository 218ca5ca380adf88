# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sums that may lack a bounded share: what is let go, and what results say of it.

In simulated time, with what the switch has added up as the oracle: `slot_simulation.py`. Random
schedules run over the reference of the slot protocol, and a ledger checks each of their packets.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fake_switch import FakeSwitch
from loss_ledger import LossLedger
from loss_schedules import run_schedule
from slot_simulation import Simulation
from switchfold.hostlib import ConfigurationError
from switchfold.hostlib.control.view import JobView
from switchfold.hostlib.engine.allreduce_task import AllreduceTask
from switchfold.hostlib.loss_tolerance import CompletionReason, Delivery, LossTolerance
from switchfold.hostlib.options import Summation
from switchfold.hostlib.slots.switch_reducer import split_slots
from switchfold.hostlib.slots.wire import HEADER_BYTES, HEADER_DTYPE, Operation
from switchfold.hostlib.straggler import StragglerPolicy
from switchfold.hostlib.summation.native_source import NativeSource

TENTH = LossTolerance(loss=0.1)
SCHEDULES = int(os.environ.get("SWITCHFOLD_SCHEDULES", "100"))
"""Random schedules; `make loss-schedules` runs more."""
SEED = int(os.environ.get("SWITCHFOLD_SEED", "1"))


def lose_contributions(simulation: Simulation, share: float) -> None:
    """Lose this share of what workers send, and no result."""
    simulation.losses = lambda worker, to, row: to is None and simulation.random.random() < share


def coverage(bitmaps: NDArray[np.uint32], num_workers: int) -> float:
    return sum(int(each).bit_count() for each in bitmaps) / (num_workers * len(bitmaps))


@pytest.mark.parametrize("loss", [-0.1, 1.0, float("nan")])
def test_loss_must_be_a_share(loss: float) -> None:
    with pytest.raises(ConfigurationError, match=r"loss is .*; it is a share"):
        LossTolerance(loss=loss)


def test_floor_must_be_a_share() -> None:
    with pytest.raises(ConfigurationError, match=r"worker_floor is 1\.5; it is a share"):
        LossTolerance(loss=0.1, worker_floor=1.5)


@pytest.mark.parametrize("policy", [{"quorum": 2}, {"deadline_s": 0.1}])
def test_tolerance_is_refused_beside_a_quorum_or_a_deadline(policy: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="give one or the other"):
        StragglerPolicy(tolerance=TENTH, **policy)


@given(
    loss=st.floats(0, 0.99),
    floor=st.floats(0, 1),
    num_workers=st.integers(1, 32),
    num_chunks=st.integers(1, 10_000),
)
def test_budgets_add_up_to_what_a_tensor_may_lack(
    loss: float, floor: float, num_workers: int, num_chunks: int
) -> None:
    tolerance = LossTolerance(loss=loss, worker_floor=floor)
    parts = [tolerance.budget(num_workers, num_chunks, place) for place in range(num_workers)]
    assert sum(part[0] for part in parts) == tolerance.lost(num_workers, num_chunks)
    assert sum(part[0] for part in parts) <= loss * num_workers * num_chunks
    assert sum(part[1] for part in parts) <= (1 - floor) * num_chunks


@given(
    bitmaps=st.lists(st.integers(0, 7), min_size=1, max_size=20),
    last=st.integers(1, 4),
)
def test_delivery_tells_what_is_missing(bitmaps: list[int], last: int) -> None:
    """Compared with the same by element: 4 elements a chunk, fewer in the last one."""
    num_elements = 4 * (len(bitmaps) - 1) + last
    is_in = np.array([[b >> w & 1 for w in range(3)] for b in bitmaps]).repeat(4, axis=0)
    is_in = is_in[:num_elements]
    counts = np.array([b.bit_count() for b in bitmaps], np.uint16)
    delivery = Delivery(
        (0, 1, 2), num_elements, 4, counts, np.array(bitmaps, np.uint32), tolerance=TENTH
    )
    covered = [
        each.contributors for each in delivery.contributors for _ in range(each.start, each.end)
    ]
    assert covered == is_in.sum(axis=1).tolist()
    for worker in range(3):
        missing = [e for s, end in delivery.missing.get(worker, ()) for e in range(s, end)]
        assert missing == np.flatnonzero(is_in[:, worker] == 0).tolist()
        assert delivery.delivered[worker] == pytest.approx(is_in[:, worker].mean())
    assert delivery.coverage == pytest.approx(is_in.mean())
    assert (delivery.reason is CompletionReason.ALL) == bool(is_in.all())
    assert delivery.num_missing == sum(3 - b.bit_count() for b in bitmaps)
    assert delivery.num_tolerated == 3 * len(bitmaps) // 10


def test_worker_that_fetched_a_result_is_told_the_same() -> None:
    """It decides like the others by what is missing, though it has missed the results."""
    switch = FakeSwitch(3, straggler=StragglerPolicy(tolerance=TENTH))
    summation = Summation(operation="sum", precision="block", tolerance=LossTolerance(loss=0.2))
    tasks = [
        AllreduceTask(5, np.ones(150, np.int32), summation, deadline_s=9.0, timeout_s=9.0)
        for _ in range(2)
    ]
    for worker, task in enumerate(tasks):
        task.begin(switch.view(worker), retains=True)
    source = tasks[0].source
    assert source is not None
    assert source.bitmaps is not None
    source.bitmaps[:] = [7, 5, 7, 3, 7]
    counts = np.array([3, 2, 3, 2, 3], np.uint16)
    sums = counts.astype(np.int32).repeat(32).reshape(5, 32)
    source.keep(sums, counts)
    NativeSource(source).take(0, sums)
    tasks[1].load(tasks[0].retained_result())
    deliveries: list[Delivery] = []
    for task in tasks:
        task.finish()
        delivery = task.future.delivery
        assert delivery is not None
        deliveries.append(delivery)
    assert [each.missing for each in deliveries] == [{1: ((32, 64),), 2: ((96, 128),)}] * 2
    assert [each.num_missing for each in deliveries] == [2, 2]
    assert [each.num_tolerated for each in deliveries] == [3, 3]
    assert deliveries[0].tolerance == deliveries[1].tolerance == LossTolerance(loss=0.2)


def test_nothing_is_let_go_without_loss() -> None:
    simulation = Simulation(4, tolerance=TENTH)
    simulation.sum(400)
    assert coverage(simulation.bitmaps, 4) == 1
    assert [w.values.counters.flushed for w in simulation.workers] == [0] * 4


def test_lost_contributions_are_let_go_instead_of_sent_again() -> None:
    """It takes less time, and fewer packets, than to repair all: simulated time."""
    seconds: list[float] = []
    again: list[int] = []
    for tolerance in (None, TENTH):
        simulation = Simulation(4, tolerance=tolerance)
        simulation.sum(400)
        lose_contributions(simulation, 0.05)
        seconds.append(simulation.sum(2000))
        again.append(sum(w.values.counters.retransmitted for w in simulation.workers))
    assert 0.9 <= coverage(simulation.bitmaps, 4) < 0.97
    assert again[1] < again[0] / 3
    assert seconds[1] < seconds[0]


def test_bound_holds_where_more_is_lost() -> None:
    simulation = Simulation(4, tolerance=LossTolerance(loss=0.05))
    simulation.sum(400)
    lose_contributions(simulation, 0.2)
    for _ in range(3):
        simulation.sum(400)
        assert coverage(simulation.bitmaps, 4) >= 0.95
    assert sum(w.values.counters.retransmitted for w in simulation.workers) > 0


def test_floor_of_a_worker_holds_where_its_link_alone_loses() -> None:
    """The share of all would allow that one worker lacks 60 %."""
    simulation = Simulation(4, tolerance=LossTolerance(loss=0.15, worker_floor=0.8))
    simulation.sum(400)
    simulation.losses = lambda worker, to, _: (
        worker == 2 and to is None and simulation.random.random() < 0.4
    )
    for _ in range(3):
        simulation.sum(400)
        share = (simulation.bitmaps >> np.uint32(2) & 1).mean()
        assert 0.8 <= share < 0.95


def test_every_chunk_has_somebody_whatever_is_tolerated() -> None:
    """Optimisers need that: nobody's gradient is no zero."""
    simulation = Simulation(4, tolerance=LossTolerance(loss=0.99, worker_floor=0))
    simulation.sum(400)
    lose_contributions(simulation, 0.6)
    counts: set[int] = set()
    for _ in range(3):
        simulation.sum(200)
        counts |= {int(each).bit_count() for each in simulation.bitmaps}
    assert min(counts) == 1, "as little as there can be"


def test_no_tolerance_is_a_sum_of_all() -> None:
    simulation = Simulation(3, loss=0.1, tolerance=LossTolerance(loss=0))
    simulation.sum(300)
    assert coverage(simulation.bitmaps, 3) == 1
    assert [w.values.counters.flushed for w in simulation.workers] == [0] * 3


def test_one_worker_has_all_results_of_a_tensor() -> None:
    """Two workers that each missed a result that the other one has would wait for each other.

    Each worker in turn gets no result of one chunk for a second. With three slots for values, it
    cannot contribute to the third chunk behind that one, which the other worker closes. Worker 1
    is two rounds ahead then. Worker 0 must not be afterwards.
    """
    simulation = Simulation(2, slot_count=4, tolerance=LossTolerance(loss=0.2))
    simulation.sum(21)
    began_s: dict[int, float] = {}

    def losses(worker: int, to: int | None, row: NDArray[Any]) -> bool:
        chunk = int(row[:HEADER_BYTES].view(HEADER_DTYPE)["chunk_index"][0])
        if to is None or (worker, chunk) not in ((0, 0), (1, 9)):
            return False
        return simulation.now_s < began_s.setdefault(worker, simulation.now_s) + 1

    simulation.losses = losses
    simulation.sum(18)
    assert sorted(began_s) == [0, 1]
    assert [worker.has_missed for worker in simulation.workers] == [True, False]
    assert simulation.bitmaps[9:].tolist() == [3] * 9


def lose_exponents(simulation: Simulation, share: float) -> None:
    """Lose this share of the packets with exponents, and of their results."""
    exponent_slots, _ = split_slots(simulation.switch.trees[simulation.switch.job_id].slot_count)

    def losses(worker: int, to: int | None, row: NDArray[Any]) -> bool:
        slot = int(row[:HEADER_BYTES].view(HEADER_DTYPE)["slot_index"][0])
        return slot < exponent_slots and simulation.random.random() < share

    simulation.losses = losses


def test_loss_of_exponents_is_repaired_and_lowers_no_coverage() -> None:
    """A fifth of their packets: no sum of exponents lacks any, and no sum of values."""
    simulation = Simulation(4, tolerance=TENTH)
    simulation.sum(400)
    lose_exponents(simulation, 0.2)
    for _ in range(3):
        simulation.sum_floats(np.ones(400, np.float32))
        assert coverage(simulation.bitmaps, 4) == 1
    exponents = [worker.path.exponents.counters for worker in simulation.workers]
    assert min(each.retransmitted for each in exponents) > 0
    assert [each.flushed for each in exponents] == [0] * 4
    assert [worker.values.counters.flushed for worker in simulation.workers] == [0] * 4


def test_random_schedules_agree_with_a_ledger() -> None:
    """Sizes, losses and tolerances at random; `SWITCHFOLD_SCHEDULES` many."""
    counts: Counter[str] = Counter()
    for number in range(SCHEDULES):
        counts += run_schedule(number, SEED)
    assert counts["flushes"] > 0
    assert counts["lacking"] > 0


def test_ledger_finds_workers_that_let_go_too_much() -> None:
    """The workers' tolerance is that of another job."""
    ledger = LossLedger(4, split_slots(128)[1], loss=0.02, worker_floor=0)
    simulation = Simulation(4, tolerance=LossTolerance(loss=0.3, worker_floor=0), ledger=ledger)
    simulation.sum(40)
    lose_contributions(simulation, 0.3)
    with pytest.raises(AssertionError, match="with nothing left"):
        simulation.sum(100)


@pytest.mark.parametrize("members", [0b1111, 0b0111, 0b0011])
def test_flushes_below_the_root_expect_no_number(
    members: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A switch passes the number on to its parent, as if the root were to close with so few."""
    whole = FakeSwitch.view

    def below(switch: FakeSwitch, worker_id: int) -> JobView:
        view = whole(switch, worker_id)
        return replace(view, trees=tuple(replace(tree, members=members) for tree in view.trees))

    monkeypatch.setattr(FakeSwitch, "view", below)
    simulation = Simulation(4, tolerance=LossTolerance(loss=0.2))
    expected: Counter[int] = Counter()

    def is_lost(_: int, to: int | None, row: NDArray[Any]) -> bool:
        header = row[:HEADER_BYTES].view(HEADER_DTYPE)[0]
        if to is None and header["operation"] == Operation.FLUSH:
            expected[int(header["expected"])] += 1
        return to is None and simulation.random.random() < 0.2

    simulation.losses = is_lost
    simulation.sum(300)
    if members == 0b1111:
        assert min(expected) >= 1
        assert expected[3] > 0
    else:
        assert set(expected) == {0}
