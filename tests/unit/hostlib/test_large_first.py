# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Large values first: what is lost of large chunks is sent again, and small ones are let go.

In simulated time, with what the switch has added up as the oracle: `slot_simulation.py`. Random
schedules of `test_loss_tolerance.py` have large chunks, too, and a ledger checks their packets.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from fake_switch import FakeSwitch
from native_recovery import Recovery
from slot_simulation import Simulation
from switchfold.hostlib.errors import ConfigurationError
from switchfold.hostlib.loss_tolerance import LossTolerance
from switchfold.hostlib.native.library import library
from switchfold.hostlib.options import SessionOptions
from switchfold.hostlib.session import Session
from switchfold.hostlib.slots.wire import HEADER_BYTES, HEADER_DTYPE, Operation
from switchfold.hostlib.straggler import StragglerPolicy
from switchfold.hostlib.summation.quantization import ZERO_EXPONENT, large_chunks

TENTH = LossTolerance(loss=0.1)
NUM_WORKERS = 4


def scales(num_chunks: int, seed: int = 1) -> NDArray[np.float32]:
    """Return powers of 2 whose logarithms are spread like those of a small model's packets."""
    exponents = np.random.default_rng(seed).normal(0, 2, num_chunks).round()
    return np.exp2(exponents).astype(np.float32)


def lose_contributions(simulation: Simulation, share: float) -> None:
    simulation.losses = lambda worker, to, row: to is None and simulation.random.random() < share


def missing(simulation: Simulation) -> NDArray[np.int64]:
    """Return how many contributions each chunk of the last tensor lacks."""
    return NUM_WORKERS - np.bitwise_count(simulation.bitmaps).astype(np.int64)


@given(hnp.arrays(np.int32, st.integers(1, 200), elements=st.integers(-300, 300)))
def test_large_chunks_are_above_the_median(exponents: NDArray[np.int32]) -> None:
    found = large_chunks(exponents)
    is_large = np.zeros(len(exponents), bool) if found is None else found
    ordered = sorted(exponents.tolist())
    median = ordered[(len(ordered) - 1) // 2]
    assert is_large.tolist() == [each > median for each in exponents.tolist()]
    assert 2 * is_large.sum() <= len(exponents)


@pytest.mark.parametrize("exponents", [[5], [3, 3, 3, 3], [ZERO_EXPONENT] * 3])
def test_no_chunk_is_large_where_all_are_alike(exponents: list[int]) -> None:
    assert large_chunks(np.array(exponents, np.int32)) is None


@pytest.mark.parametrize("share", [0.05, 0.3])
def test_large_chunks_lack_nothing_and_the_bound_holds(share: float) -> None:
    """With 30 %, more is lost of the small half alone than the tensor may lack."""
    simulation = Simulation(NUM_WORKERS, tolerance=TENTH)
    simulation.sum(200)
    lose_contributions(simulation, share)
    for seed in range(2):
        of_chunk = scales(400, seed)
        simulation.sum_floats(of_chunk, large_first=True)
        lacking = missing(simulation)
        assert 0 < lacking.sum() <= TENTH.lost(NUM_WORKERS, 400)
        is_large = of_chunk > np.sort(of_chunk)[199]
        assert lacking[is_large].sum() == 0
        assert lacking[~is_large].sum() > 0


def test_less_energy_is_missing_at_the_same_loss() -> None:
    """Also for as many contributions: what is let go is smaller."""
    energy: list[float] = []
    number: list[int] = []
    for large_first in (False, True):
        simulation = Simulation(NUM_WORKERS, tolerance=TENTH)
        simulation.sum(200)
        lose_contributions(simulation, 0.05)
        lost = total = 0.0
        num_missing = 0
        for seed in range(2):
            of_chunk = scales(400, seed)
            simulation.sum_floats(of_chunk, large_first=large_first)
            lacking, squares = missing(simulation), of_chunk.astype(np.float64) ** 2
            lost += float(lacking @ squares)
            total += NUM_WORKERS * float(squares.sum())
            num_missing += int(lacking.sum())
        energy.append(lost / total)
        number.append(num_missing)
    assert energy[1] < energy[0] / 10
    assert energy[1] / number[1] < energy[0] / number[0] / 5


def test_nothing_of_large_chunks_is_let_go_for_being_late() -> None:
    """A worker begins a second late: with the adaptive wait, too, small chunks go without it."""
    options = SessionOptions(late_wait="adaptive")
    tolerance = LossTolerance(loss=0.4, worker_floor=0)
    simulation = Simulation(NUM_WORKERS, tolerance=tolerance, options=options)
    for _ in range(3):
        simulation.sum(200)
    is_large = np.arange(200) % 2 == 1
    simulation.sum(200, late_s=1.0, large=is_large)
    lacking = missing(simulation)
    assert lacking[is_large].sum() == 0
    assert lacking[~is_large].sum() > 0


def test_packets_of_large_values_have_the_next_higher_priority() -> None:
    """First and sent again; flushes keep the highest."""
    simulation = Simulation(NUM_WORKERS, tolerance=TENTH, max_priority=6)
    simulation.sum(200)
    seen: Counter[tuple[Operation, bool, int]] = Counter()
    of_chunk = scales(400)
    is_large = of_chunk > np.sort(of_chunk)[199]

    def losses(_: int, to: int | None, row: NDArray[Any]) -> bool:
        header = row[:HEADER_BYTES].view(HEADER_DTYPE)[0]
        operation = Operation(int(header["operation"]))
        if to is None and operation is not Operation.AGGREGATE_MAX:
            chunk_is_large = bool(is_large[int(header["chunk_index"])])
            seen[operation, chunk_is_large, int(header["priority"])] += 1
        return to is None and simulation.random.random() < 0.05

    simulation.losses = losses
    simulation.sum_floats(of_chunk, large_first=True, priority=2)
    assert set(seen) == {
        (Operation.AGGREGATE_ADD, True, 3),
        (Operation.AGGREGATE_ADD, False, 2),
        (Operation.FLUSH, False, 6),
    }
    num_large = int(is_large.sum())
    assert seen[Operation.AGGREGATE_ADD, True, 3] > NUM_WORKERS * num_large, "some were lost"


def test_results_of_chunks_that_may_overtake_show_no_loss_of_others() -> None:
    """Slots 0 and 4 wait in a lower queue while later chunks of the higher one have results."""
    rtt = library.rtt_new(0.1, 0.02, 1.0)
    recovery = Recovery([0] * 8, rtt)
    recovery.mark_ahead([1, 2, 3, 5, 6, 7])
    recovery.start(range(8), 0.0)
    recovery.finish([1, 2, 3], 0.01)
    assert recovery.lost(0.01) == []
    recovery.finish([5, 6, 7], 0.011)
    assert recovery.lost(0.02) == []
    recovery.start([1, 2, 3, 5], 0.021)
    recovery.finish([2, 3, 5], 0.03)
    assert recovery.lost(0.03) == [1], "of its own queue"


class WatchedSwitch(FakeSwitch):
    """Keeps the priorities of values by chunk."""

    def __init__(self, num_workers: int, **options: Any) -> None:
        super().__init__(num_workers, **options)
        self.seen: dict[int, set[int]] = {}

    def process(self, worker_id: int, packet: NDArray[np.void]) -> Any:
        header = packet["header"][0]
        if int(header["operation"]) == Operation.AGGREGATE_ADD:
            self.seen.setdefault(int(header["chunk_index"]), set()).add(int(header["priority"]))
        return super().process(worker_id, packet)


def sessions(switch: FakeSwitch, options: SessionOptions, stack: ExitStack) -> list[Session]:
    return [
        stack.enter_context(Session.direct(switch.view(i), switch.transport(i), options))
        for i in range(switch.num_workers)
    ]


@pytest.mark.parametrize(
    ("granted", "priority", "expected"),
    [(7, 0, (0, 1)), (7, 3, (3, 4)), (4, 3, (3, 3)), (0, 0, (0, 0))],
)
def test_sessions_send_large_values_first_as_far_as_it_is_granted(
    granted: int, priority: int, expected: tuple[int, int]
) -> None:
    """Of the workers' maximum: worker 1 alone has large values in chunk 2."""
    switch = WatchedSwitch(2)
    switch.max_priority = granted
    array = np.ones(128, np.float32)
    other = array.copy()
    other[64:96] = 64.0
    with ExitStack() as stack:
        workers = sessions(switch, SessionOptions(max_priority=7), stack)
        futures = [
            worker.allreduce(values, precision="block", priority=priority, large_first=True)
            for worker, values in zip(workers, (array, other), strict=True)
        ]
        for future in futures:
            np.testing.assert_array_equal(future.result(60), array + other)
    small, large = expected
    assert switch.seen == {0: {small}, 1: {small}, 2: {large}, 3: {small}}


def test_sums_of_large_first_are_whole_and_alike_with_loss() -> None:
    """Through sessions, over a switch that loses a tenth: what a delivery lacks is small."""
    tolerance = LossTolerance(loss=0.3, worker_floor=0)
    switch = FakeSwitch(3, loss=0.1, slot_count=16, straggler=StragglerPolicy(tolerance=tolerance))
    of_chunk = scales(128)
    array = np.repeat(of_chunk, 32)
    quick = SessionOptions(min_rto_s=0.01, initial_rto_s=0.02, max_rto_s=0.1, coalesce_s=0)
    lacking = number = 0
    with ExitStack() as stack:
        workers = sessions(switch, quick, stack)
        while not lacking:
            assert (number := number + 1) < 50, "a tenth is lost of each"
            futures = [
                worker.allreduce(array, precision="block", large_first=True) for worker in workers
            ]
            results = [future.result(60) for future in futures]
            for result in results[1:]:
                np.testing.assert_array_equal(result, results[0])
            delivery = futures[0].delivery
            assert delivery is not None
            elements, _ = delivery.lacking()
            lacking += delivery.num_missing
            assert array[elements].max(initial=0) <= np.sort(of_chunk)[63]


@pytest.mark.parametrize(
    ("array", "precision", "what"),
    [
        (np.ones(4, np.int32), "block", "sums of int32 have no scale"),
        (np.ones(4, np.float32), "exact", "exact sums of float32 lack nothing"),
    ],
)
def test_sums_without_scales_are_refused(array: NDArray[Any], precision: Any, what: str) -> None:
    switch = FakeSwitch(1, straggler=StragglerPolicy(tolerance=TENTH))
    with ExitStack() as stack:
        (worker,) = sessions(switch, SessionOptions(), stack)
        with pytest.raises(ConfigurationError, match=f"large_first: {what}"):
            worker.allreduce(array, precision=precision, large_first=True)
        assert worker.allreduce(np.ones(4, np.int32)).tensor_id == 1, "it took no place"


@pytest.mark.parametrize("max_priority", [0, 1])
def test_job_where_nothing_could_come_first_is_refused(max_priority: int) -> None:
    with ExitStack() as stack:
        (worker,) = sessions(FakeSwitch(1), SessionOptions(max_priority=max_priority), stack)
        with pytest.raises(ConfigurationError, match="large_first would change nothing"):
            worker.allreduce(np.ones(4, np.float32), precision="block", large_first=True)
