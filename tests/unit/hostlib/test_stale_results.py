# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Results that a worker does without, as old values are kept in their place.

In simulated time: `slot_simulation.py`. Random schedules run over the reference of the slot
protocol, and a ledger checks each of their packets.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Set
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fake_switch import FakeSwitch
from loss_ledger import Packet
from slot_simulation import Simulation
from stale_ledger import StaleLedger
from stale_schedules import run_schedule
from switchfold.hostlib import ConfigurationError
from switchfold.hostlib.engine.allreduce_task import AllreduceTask, wire_id
from switchfold.hostlib.loss_tolerance import CompletionReason, Delivery, LossTolerance, strictest
from switchfold.hostlib.options import SessionOptions, Summation
from switchfold.hostlib.session import Session
from switchfold.hostlib.slots.switch_reducer import split_slots
from switchfold.hostlib.slots.wire import HEADER_BYTES, HEADER_DTYPE, Flag, Operation
from switchfold.hostlib.straggler import StragglerPolicy
from switchfold.hostlib.summation.native_source import NativeSource

TENTH = LossTolerance(loss=0, stale=0.1)
POLICY = StragglerPolicy(tolerance=TENTH)
NUM_WORKERS = 4
SCHEDULES = int(os.environ.get("SWITCHFOLD_SCHEDULES", "13"))
SEED = int(os.environ.get("SWITCHFOLD_SEED", "1"))
Loses = Callable[[int, int], bool]
"""Whether the first result of a chunk to a worker is lost."""


def header_of(row: NDArray[Any]) -> NDArray[np.void]:
    header: NDArray[np.void] = row[:HEADER_BYTES].view(HEADER_DTYPE)[0]
    return header


def lose_results(simulation: Simulation, loses: Loses) -> list[set[int]]:
    """Lose results that are sent to all workers; return the lost chunks by worker, a log."""
    lost: list[set[int]] = [set() for _ in simulation.workers]

    def losses(_: int, to: int | None, row: NDArray[Any]) -> bool:
        if to is None or header_of(row)["flags"] & Flag.REPLAY:
            return False
        chunk = int(header_of(row)["chunk_index"])
        if loses(to, chunk):
            lost[to].add(chunk)
            return True
        return False

    simulation.losses = losses
    return lost


def num_again(simulation: Simulation) -> int:
    return sum(worker.values.counters.retransmitted for worker in simulation.workers)


def stale_chunks(simulation: Simulation) -> list[Set[int]]:
    return [set(np.flatnonzero(row).tolist()) for row in simulation.stale]


def warm(tolerance: LossTolerance = TENTH, **options: Any) -> Simulation:
    """Return a simulation that has summed a tensor without loss."""
    simulation = Simulation(NUM_WORKERS, tolerance=tolerance, **options)
    simulation.sum(200)
    assert not simulation.stale.any()
    assert num_again(simulation) == 0
    return simulation


@pytest.mark.parametrize("stale", [-0.1, 1.0, float("nan")])
def test_stale_must_be_a_share(stale: float) -> None:
    with pytest.raises(ConfigurationError, match=r"stale is .*; it is a share"):
        LossTolerance(loss=0, stale=stale)


def test_stale_is_refused_beside_loss() -> None:
    with pytest.raises(ConfigurationError, match=r"loss is 0\.1 and stale is 0\.05: .*give one"):
        LossTolerance(loss=0.1, stale=0.05)


@pytest.mark.parametrize("policy", [{"quorum": 2}, {"deadline_s": 0.1}])
def test_stale_is_refused_beside_a_quorum_or_a_deadline(policy: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="give one or the other"):
        StragglerPolicy(tolerance=TENTH, **policy)


def test_rounds_wait_for_all_workers() -> None:
    assert not POLICY.allow_partial
    assert StragglerPolicy(tolerance=LossTolerance(loss=0.1)).allow_partial


def test_strictest_has_the_least_share() -> None:
    assert strictest([TENTH, LossTolerance(loss=0, stale=0.02)]).stale == 0.02
    assert strictest([TENTH, LossTolerance(loss=0.2)]) == LossTolerance(loss=0, worker_floor=1.0)
    assert strictest([TENTH, None]).stale == 0


def test_workers_that_differ_in_it_are_not_added_up() -> None:
    ids = {wire_id(3, Summation(tolerance=LossTolerance(loss=0, stale=s))) for s in (0, 0.1, 0.2)}
    assert len(ids) == 3


def test_lost_results_are_not_asked_for_again() -> None:
    """Every 40th of worker 2, and others of worker 0: what is stale is what was lost."""
    simulation = warm()
    lost = lose_results(simulation, lambda to, k: k < 500 and k % 40 == {2: 7, 0: 23}.get(to, -1))
    simulation.sum(600)
    assert [len(each) for each in lost] == [12, 0, 13, 0]
    assert stale_chunks(simulation) == lost
    assert num_again(simulation) == 0
    assert [worker.values.counters.kept for worker in simulation.workers] == [12, 0, 13, 0]


def test_random_losses_are_kept_or_repaired() -> None:
    simulation, repaired = warm(), Simulation(NUM_WORKERS)
    repaired.sum(200)
    for each in (simulation, repaired):
        lost = lose_results(each, lambda *_, e=each: e.random.random() < 0.05)
        each.sum(600)
        if each is simulation:
            stale = stale_chunks(simulation)
            assert all(kept <= log for kept, log in zip(stale, lost, strict=True))
            assert sum(map(len, stale)) > 0.6 * sum(map(len, lost))
    assert num_again(simulation) < num_again(repaired) / 2


def test_beyond_the_bound_all_is_repaired() -> None:
    simulation = warm(LossTolerance(loss=0, stale=0.01))
    lost = lose_results(simulation, lambda to, _: to == 1 and simulation.random.random() < 0.1)
    simulation.sum(600)
    assert len(lost[1]) > 30
    counts = simulation.stale.sum(axis=1).tolist()
    assert 0 < counts[1] <= 6, counts
    assert sum(counts) == counts[1]
    assert num_again(simulation) > 0


def test_lost_contributions_are_repaired_and_leave_nothing_stale() -> None:
    """Later results look the same; only statements tell that a round is over."""
    simulation = warm()
    simulation.losses = lambda _, to, row: to is None and simulation.random.random() < 0.05
    simulation.sum(400)
    assert not simulation.stale.any()
    assert num_again(simulation) > 0


def test_small_tensors_are_repaired() -> None:
    """A tenth of nine results is none."""
    simulation = warm()
    lost = lose_results(simulation, lambda to, k: to == 0 and k == 2)
    simulation.sum(9)
    assert lost[0] == {2}
    assert not simulation.stale.any()


def test_exponents_are_repaired() -> None:
    """All their first results of one worker are lost; those of values are not."""
    simulation = warm()
    exponent_slots, _ = split_slots(simulation.switch.trees[simulation.switch.job_id].slot_count)
    num_lost = 0

    def losses(_: int, to: int | None, row: NDArray[Any]) -> bool:
        nonlocal num_lost
        header = header_of(row)
        is_first = to == 1 and not header["flags"] & Flag.REPLAY
        is_lost = bool(is_first and header["slot_index"] < exponent_slots)
        num_lost += is_lost
        return is_lost

    simulation.losses = losses
    simulation.sum_floats(np.ones(400, np.float32))
    assert num_lost > 0
    assert not simulation.stale.any()
    assert simulation.workers[1].path.exponents.counters.kept == 0


def test_late_result_changes_nothing() -> None:
    """It comes when the worker has done without it, and its slot is in use again."""
    simulation = warm()
    late: list[NDArray[Any]] = []

    def loses(to: int, chunk: int) -> bool:
        return to == 3 and chunk == 100

    lost = lose_results(simulation, loses)
    drop = simulation.losses

    def losses(worker: int, to: int | None, row: NDArray[Any]) -> bool:
        is_lost = drop(worker, to, row)
        if is_lost:
            late.append(row.copy())
        elif late and to == 3 and header_of(row)["chunk_index"] in (215, 250, 390):
            simulation.workers[3].take(late[0])
        return is_lost

    simulation.losses = losses
    simulation.sum(400)  # checks all sums but those that are stale
    assert stale_chunks(simulation)[3] == lost[3] == {100}


def test_random_schedules_agree_with_a_ledger() -> None:
    """Sizes, losses and bounds at random; `SWITCHFOLD_SCHEDULES` many."""
    counts: Counter[str] = Counter()
    for number in range(11, 11 + SCHEDULES):
        counts += run_schedule(number, SEED)
    assert set(counts) == {"stale", "statements", "again", "old"}
    assert min(counts.values()) > 0


def test_ledger_finds_a_worker_that_goes_on_too_early() -> None:
    """Worker 0 takes a round for over that waits for worker 1: so would later results alone."""
    num_slots = 3
    ledger = StaleLedger(2, num_slots, stale=0.5)
    values = np.arange(2 * 8).reshape(2, 8, 1)
    ledger.begin(1, values)
    packet = np.zeros((), [("header", HEADER_DTYPE), ("values", "i4", (1,))])
    packet["header"]["operation"], packet["header"]["tensor_id"] = Operation.AGGREGATE_ADD, 1

    def send(chunk: int, exponent: int = 0) -> None:
        packet["header"]["chunk_index"], packet["header"]["exponent"] = chunk, exponent
        packet["header"]["round"] = chunk // num_slots + 1
        packet["values"] = values[0, chunk]
        ledger.note_sent(0, Packet.of(packet))

    send(0)
    send(1)
    with pytest.raises(AssertionError, match="states that an open round is over"):
        send(2, exponent=1)
    with pytest.raises(AssertionError, match="the round before in its slot is open"):
        send(3)


@given(kept=st.lists(st.booleans(), min_size=1, max_size=20), last=st.integers(1, 4))
def test_delivery_tells_stale_ranges_apart(kept: list[bool], last: int) -> None:
    num_elements = 4 * (len(kept) - 1) + last
    by_element = np.repeat(kept, 4)[:num_elements]
    counts = np.full(len(kept), 3, np.uint16)
    delivery = Delivery(
        (0, 1, 2), num_elements, 4, counts, None, tolerance=TENTH, kept=np.array(kept)
    )
    told = [element for start, end in delivery.stale for element in range(start, end)]
    assert told == np.flatnonzero(by_element).tolist()
    assert delivery.num_stale == by_element.sum()
    assert delivery.reason is (CompletionReason.STALE if any(kept) else CompletionReason.ALL)
    assert (delivery.coverage, delivery.num_missing, delivery.missing) == (1, 0, {})
    assert set(delivery.delivered.values()) == {1.0}
    result, previous = np.ones(num_elements), np.arange(num_elements) + 5.0
    delivery.keep_previous(result, previous)
    np.testing.assert_array_equal(result, np.where(by_element, previous, 1))
    delivery.keep_previous(result, None)
    np.testing.assert_array_equal(result, np.where(by_element, 0, 1))


def task_on(switch: FakeSwitch, worker: int, **options: Any) -> AllreduceTask:
    summation = Summation(operation="sum", precision="block", **options)
    task = AllreduceTask(5, np.ones(150, np.int32), summation, deadline_s=9.0, timeout_s=9.0)
    task.begin(switch.view(worker), retains=True)
    return task


def test_worker_that_fetches_a_result_is_told_what_is_stale_there() -> None:
    """And has its own old values there; more than the bound is refused."""
    switch = FakeSwitch(3, straggler=StragglerPolicy(tolerance=LossTolerance(loss=0, stale=0.2)))
    switch.is_on_host = True
    task, other, third = (
        task_on(switch, worker, previous=np.full(150, -worker, np.int32)) for worker in range(3)
    )
    source = task.source
    assert source is not None
    assert source.may_lose == 1
    counts = np.array([3, 0, 3, 3, 3], np.uint16)
    sums = counts.astype(np.int32).repeat(32).reshape(5, 32)
    source.keep(sums.copy(), counts)
    NativeSource(source).take(0, sums)
    other.load(task.retained_result())
    for each, value in ((task, 0), (other, -1)):
        each.finish()
        assert each.future.delivery is not None
        assert each.future.delivery.stale == ((32, 64),)
        expected = np.full(150, 3)
        expected[32:64] = value
        np.testing.assert_array_equal(each.future.result(0), expected)
    result = replace(task.retained_result(), contributors=np.array([3, 0, 0, 3, 3], np.uint16))
    with pytest.raises(Exception, match="which is not the shape submitted here"):
        third.load(result)


def test_retained_result_holds_nothing_where_it_is_stale() -> None:
    switch = FakeSwitch(2, straggler=StragglerPolicy(tolerance=LossTolerance(loss=0, stale=0.5)))
    switch.is_on_host = True
    task = task_on(switch, 0, previous=np.full(150, 77, np.int32))
    source = task.source
    assert source is not None
    source.results[...] = 99
    source.contributors[...] = [2, 2, 0, 2, 2]
    task.finish()
    retained = task.retained_result().values.reshape(5, 32)
    assert set(retained[2]) == {0}
    assert set(retained[[0, 1, 3, 4]].reshape(-1)) == {99}


def test_stale_is_refused_over_switches_of_the_network() -> None:
    switch = FakeSwitch(1, straggler=POLICY)
    with pytest.raises(ConfigurationError, match=r"stale is 0\.1, .* on_host in"):
        Session.direct(switch.view(0), switch.transport(0))


def test_session_checks_what_goes_with_stale_results() -> None:
    switch = FakeSwitch(1, straggler=POLICY)
    switch.is_on_host = True
    with Session.direct(switch.view(0), switch.transport(0), SessionOptions()) as session:
        array = np.arange(100, dtype=np.int32)
        future = session.allreduce(array, previous=array, tolerance=LossTolerance(loss=0))
        np.testing.assert_array_equal(future.result(30), array)
        with pytest.raises(ConfigurationError, match="give the same shapes and dtypes"):
            session.allreduce(array, previous=array[1:])
        with pytest.raises(ConfigurationError, match="not both"):
            session.allreduce(array, tolerance=LossTolerance(loss=0.1))
        with pytest.raises(ConfigurationError, match="an exact sum of float32 lacks nothing"):
            session.allreduce(array.astype(np.float32), tolerance=TENTH)
        with pytest.raises(ConfigurationError, match=r"large_first in a job with .*stale=0\.1"):
            session.allreduce(array.astype(np.float32), precision="block", large_first=True)


def test_previous_needs_a_job_with_stale_results() -> None:
    switch = FakeSwitch(1)
    with Session.direct(switch.view(0), switch.transport(0)) as session:
        array = np.ones(9, np.int32)
        with pytest.raises(ConfigurationError, match="no result of this job is stale"):
            session.allreduce(array, previous=array)
        with pytest.raises(ConfigurationError, match="this job waits for all contributions"):
            session.allreduce(array, tolerance=TENTH)
