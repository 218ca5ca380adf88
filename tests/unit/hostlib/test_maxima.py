# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Maxima and minima: the numbers' order in int32 values, and sessions' results to the bit."""

from __future__ import annotations

import itertools
from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fake_switch import FakeSwitch
from loopback import LOOPBACK
from maximum_oracle import all_pairs, largest, random_floats, special_floats, special_integers
from switchfold.hostlib.control.submitted_tensor import SubmittedTensor
from switchfold.hostlib.engine.allreduce_task import AllreduceTask, wire_id
from switchfold.hostlib.errors import (
    AllreduceTimeoutError,
    ConfigurationError,
    NonFiniteError,
    PeerMismatchError,
    UnsupportedDtypeError,
)
from switchfold.hostlib.future import AllreduceFuture
from switchfold.hostlib.loss_tolerance import LossTolerance
from switchfold.hostlib.options import Precision, ReduceOperation, SessionOptions, Summation
from switchfold.hostlib.peers import PeerServer
from switchfold.hostlib.session import Session
from switchfold.hostlib.straggler import StragglerPolicy
from switchfold.hostlib.summation.chunks import Summand
from switchfold.hostlib.summation.maxima import MaximumSource, nan_ranges
from switchfold.hostlib.summation.native_source import NativeSource
from time_bound import wait_until
from view_driver import QUICK, ViewDriver

BAD: dict[str, Any] = {"loss": 0.05, "duplication": 0.05, "reordering": 0.05}
OPERATIONS: list[ReduceOperation] = ["max", "min"]
DTYPES = ("float32", "int32")


@contextmanager
def sessions(switch: FakeSwitch, options: SessionOptions = QUICK) -> Generator[list[Session]]:
    """Sessions that serve their results to each other."""
    with ExitStack() as stack:
        for worker_id in range(switch.num_workers):
            switch.peers[worker_id] = PeerServer(LOOPBACK)
        yield [
            stack.enter_context(
                Session.direct(switch.view(i), switch.transport(i), options, peers=switch.peers[i])
            )
            for i in range(switch.num_workers)
        ]


def reduced(workers: list[Session], arrays: list[NDArray[Any]], **named: Any) -> NDArray[Any]:
    """Return the result, once all workers have the same bytes."""
    named = {"nonfinite": "propagate", **named}
    futures = [w.allreduce(a, **named) for w, a in zip(workers, arrays, strict=True)]
    results = [future.result(60) for future in futures]
    assert len({result.tobytes() for result in results}) == 1
    return results[0]


def random_arrays(dtype: str, number: int, size: int, seed: int) -> list[NDArray[Any]]:
    floats = [random_floats(size, 100 * seed + i) for i in range(number)]
    return floats if dtype == "float32" else [array.view(np.int32) for array in floats]


def values_of(numbers: NDArray[Any], operation: str) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """Return the int32 values of numbers, and the numbers that these stand for."""
    source = MaximumSource(Summand(tensor_id=1, flat=numbers), operation, 32)
    native = NativeSource(source)
    rows = np.empty((source.num_chunks, 32), np.int32)
    native.fill(0, rows)
    native.take(0, rows)
    return rows.reshape(-1)[: len(numbers)], source.output.reshape(-1)[: len(numbers)]


words = st.lists(st.integers(0, (1 << 32) - 1), min_size=2, max_size=40)


@pytest.mark.parametrize("operation", OPERATIONS)
@given(drawn=words)
def test_values_of_floats_are_in_the_order_of_the_floats(operation: str, drawn: list[int]) -> None:
    numbers = np.array(drawn, np.uint32).view(np.float32)
    values, back = values_of(numbers, operation)
    is_nan = np.isnan(numbers)
    assert (back.view(np.uint32)[~is_nan] == numbers.view(np.uint32)[~is_nan]).all()
    assert (back.view(np.uint32)[is_nan] == 0x7FC00000).all()
    # By number, and of equal zeros by sign; NaN is the largest value in either order.
    ranks = [(x, not np.signbit(x)) if operation == "max" else (-x, np.signbit(x)) for x in numbers]
    keys = [
        (bool(nan), *((0.0, False) if nan else rank))
        for nan, rank in zip(is_nan, ranks, strict=True)
    ]
    for i in range(1, len(numbers)):
        assert (values[i] > values[i - 1]) == (keys[i] > keys[i - 1])
        assert (values[i] == values[i - 1]) == (keys[i] == keys[i - 1])


@pytest.mark.parametrize("operation", OPERATIONS)
def test_values_of_integers_are_in_their_order(operation: str) -> None:
    numbers = special_integers()
    values, back = values_of(numbers, operation)
    np.testing.assert_array_equal(back, numbers)
    ordered = values if operation == "max" else values[::-1]
    assert (np.diff(ordered.astype(np.int64)) > 0).all()


@pytest.mark.parametrize("precision", ["exact", "block"])
@pytest.mark.parametrize("values", [32, 352])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_all_pairs_of_special_numbers(
    operation: ReduceOperation, values: int, precision: Precision
) -> None:
    with sessions(FakeSwitch(2, values_per_packet=values)) as workers:
        for numbers in (special_floats(), special_integers()):
            arrays = all_pairs(numbers)
            result = reduced(workers, arrays, op=operation, precision=precision)
            assert result.dtype == numbers.dtype
            assert result.tobytes() == largest(arrays, operation).tobytes()
        # Nothing is agreed on before.
        assert workers[0].statistics["exponent_packets_sent"] == 0


@pytest.mark.parametrize("seed", range(3))
def test_tensors_among_sums_are_right_when_impaired(seed: int) -> None:
    """Rounds of a slot are exactly once, whatever the operations of its earlier rounds are."""
    rng = np.random.default_rng(seed)
    switch = FakeSwitch(3, slot_count=10, seed=seed, **BAD)
    operations: list[ReduceOperation] = ["max", "sum", "min", "mean"]
    calls: list[tuple[ReduceOperation, list[NDArray[Any]]]] = []
    for number in range(24):
        size, operation = int(rng.integers(1, 1500)), operations[number % 4]
        dtype = DTYPES[number // 4 % 2] if operation != "mean" else "float32"
        whole = rng.integers(-999, 999, (3, size))
        calls.append((operation, [row.astype(dtype) for row in whole]))
    with sessions(switch) as workers:
        under_way = [
            [w.allreduce(a, op) for w, a in zip(workers, arrays, strict=True)]
            for op, arrays in calls
        ]
        for (op, arrays), futures in zip(calls, under_way, strict=True):
            expected = np.sum(arrays, axis=0)
            if op == "mean":
                expected = (expected.astype(np.float64) / 3).astype(np.float32)
            elif op != "sum":
                expected = largest(arrays, op)
            for future in futures:
                np.testing.assert_array_equal(future.result(60), expected)
                assert future.num_contributors == 3
        assert sum(w.statistics["value_packets_retransmitted"] for w in workers) > 0


@pytest.mark.parametrize("is_abort", [False, True])
@pytest.mark.parametrize(
    "trees", [{100: 16}, {}, {101: 5, 102: 9}], ids=["switch", "hosts", "two trees"]
)
def test_results_stay_the_same_when_the_view_changes(trees: dict[int, int], is_abort: bool) -> None:
    with closing(ViewDriver(FakeSwitch(3, **BAD), range(3))) as driver:
        calls = [
            (op, random_arrays(dtype, 3, size, seed))
            for seed, size in enumerate((1, 700, 3000))
            for op in OPERATIONS
            for dtype in DTYPES
        ]

        def submit() -> list[list[Any]]:
            return [
                [
                    driver.sessions[i].allreduce(a, op, nonfinite="propagate")
                    for i, a in enumerate(arrays)
                ]
                for op, arrays in calls
            ]

        before = submit()
        driver.change(trees, is_abort=is_abort)
        driver.wait_entered()
        for groups in (before, submit()):
            for (op, arrays), futures in zip(calls, groups, strict=True):
                for future in futures:
                    assert future.result(60).tobytes() == largest(arrays, op).tobytes()


@pytest.mark.parametrize("trees", [{60: 16}, {}], ids=["switch", "hosts"])
def test_nan_raises_on_all_workers_and_infinities_are_numbers(trees: dict[int, int]) -> None:
    arrays = [np.full(100, i, np.float32) for i in range(3)]
    arrays[0][[3, 4, 99]], arrays[1][5] = np.nan, np.nan
    arrays[2][7] = np.inf
    with closing(ViewDriver(FakeSwitch(3), range(3))) as driver:
        driver.change(trees)
        driver.wait_entered()
        for op in OPERATIONS:
            futures = [s.allreduce(arrays[i], op) for i, s in driver.sessions.items()]
            for future in futures:
                error = future.exception(60)
                assert isinstance(error, NonFiniteError)
                assert error.ranges == [(3, 6), (99, 100)]
                assert "NaN in elements [3, 6), [99, 100) on" in str(error)
            futures = [s.allreduce(arrays[i][7:9], op) for i, s in driver.sessions.items()]
            for future in futures:
                expected = [np.inf, 2] if op == "max" else [0, 0]
                np.testing.assert_array_equal(future.result(60), expected)


@given(is_nan=st.lists(st.booleans(), max_size=30))
def test_ranges_of_nan_cover_it_and_nothing_else(is_nan: list[bool]) -> None:
    ranges = nan_ranges(np.where(is_nan, np.nan, 1.0))
    assert [i for start, end in ranges for i in range(start, end)] == np.flatnonzero(
        is_nan
    ).tolist()
    assert all(end < start for (_, end), (start, _) in itertools.pairwise(ranges))


@pytest.mark.parametrize("operation", OPERATIONS)
def test_late_worker_gets_the_result_of_the_others(operation: ReduceOperation) -> None:
    switch = FakeSwitch(3, straggler=StragglerPolicy(quorum=2), slot_count=8)
    tensors = [random_arrays(dtype, 3, 900, seed) for seed, dtype in enumerate(DTYPES * 2)]
    with sessions(switch) as workers:
        done = [
            [workers[i].allreduce(arrays[i], operation, nonfinite="propagate") for i in (0, 1)]
            for arrays in tensors
        ]
        for arrays, futures in zip(tensors, done, strict=True):
            for future in futures:
                assert future.result(60).tobytes() == largest(arrays[:2], operation).tobytes()
        for arrays in tensors:
            late = workers[2].allreduce(arrays[2], operation, nonfinite="propagate")
            assert late.result(60).tobytes() == largest(arrays[:2], operation).tobytes()
            assert late.num_contributors == 2
            assert late.delivery is not None
            assert late.delivery.missing == {2: ((0, 900),)}


@pytest.mark.parametrize(
    "tolerance", [LossTolerance(loss=0.3), LossTolerance(loss=0, stale=0.3)], ids=["loss", "stale"]
)
def test_job_that_tolerates_loss_has_whole_maxima(tolerance: LossTolerance) -> None:
    switch = FakeSwitch(3, straggler=StragglerPolicy(tolerance=tolerance), loss=0.1, seed=5)
    switch.is_on_host = True
    with sessions(switch) as workers:
        is_whole: list[bool] = []
        for number in range(4):
            arrays = random_arrays("int32", 3, 3000, number)
            for op in OPERATIONS:
                assert reduced(workers, arrays, op=op).tobytes() == largest(arrays, op).tobytes()
            small = [array >> 8 for array in arrays]
            futures = [w.allreduce(a) for w, a in zip(workers, small, strict=True)]
            sums = [future.result(60) for future in futures]
            is_whole.append(all((each == np.sum(small, axis=0)).all() for each in sums))
        assert not all(is_whole), "sums of the same job lack something"


def test_maxima_refuse_what_only_sums_have() -> None:
    array = np.ones(10, np.float32)
    policy = StragglerPolicy(tolerance=LossTolerance(loss=0.1))
    with Session.direct(*_alone(FakeSwitch(1, straggler=policy))) as session:
        for op in OPERATIONS:
            with pytest.raises(ConfigurationError, match=f"tolerance: the {op} of"):
                session.allreduce(array, op, tolerance=LossTolerance(loss=0.1))
            with pytest.raises(ConfigurationError, match=f"large_first: values of a {op}"):
                session.allreduce(array, op, large_first=True, precision="block")
            with pytest.raises(UnsupportedDtypeError, match=f"round_to='bfloat16' of the {op}"):
                session.allreduce(array, op, round_to="bfloat16")
            for dtype in ("float64", "float16"):
                with pytest.raises(UnsupportedDtypeError, match="convert the array to float32"):
                    session.allreduce(array.astype(dtype), op)
        with pytest.raises(UnsupportedDtypeError, match="choose 'sum', 'mean', 'max' or 'min'"):
            session.allreduce(array, "product")  # pyright: ignore[reportArgumentType]


def _alone(switch: FakeSwitch) -> tuple[Any, Any, SessionOptions]:
    return switch.view(0), switch.transport(0), QUICK


def test_headers_tell_operations_and_dtypes_apart() -> None:
    ids = {
        wire_id(2, Summation(operation=op), dtype=dtype) for op in OPERATIONS for dtype in DTYPES
    }
    ids |= {wire_id(2, Summation(), is_exact=is_exact) for is_exact in (False, True)}
    assert len(ids) == 6
    # The examples of docs/wire_format.md.
    assert wire_id(2, Summation(operation="max"), dtype="float32") == 0x2810_0003
    assert wire_id(2, Summation(operation="min"), dtype="int32") == 0x2010_0003


def test_task_says_what_it_was_submitted_with() -> None:
    array = np.ones((3, 5), np.float32)
    task = AllreduceTask(6, array, Summation(operation="max"), deadline_s=1.0, timeout_s=1.0)
    assert task.submitted == SubmittedTensor(6, 15, "float32", "max")


different = pytest.mark.parametrize(
    "kinds",
    [
        [("max", "float32"), ("min", "float32")],
        [("max", "float32"), ("max", "int32")],
        [("sum", "int32"), ("max", "int32")],
    ],
    ids=["operations", "dtypes", "sum and max"],
)


def submit_different(
    driver: ViewDriver, kinds: list[tuple[ReduceOperation, str]], timeout_s: float
) -> list[AllreduceFuture]:
    return [
        driver.sessions[i].allreduce(np.ones(50, dtype), op, timeout_s=timeout_s)
        for i, (op, dtype) in enumerate(kinds)
    ]


@different
def test_workers_that_differ_get_errors_and_no_result(
    kinds: list[tuple[ReduceOperation, str]],
) -> None:
    with closing(ViewDriver(FakeSwitch(2), range(2))) as driver:
        for future in submit_different(driver, kinds, 1.0):
            assert isinstance(future.exception(60), AllreduceTimeoutError)


@different
def test_hosts_that_differ_name_the_mismatch(kinds: list[tuple[ReduceOperation, str]]) -> None:
    with closing(ViewDriver(FakeSwitch(2), range(2))) as driver:
        driver.change({})
        driver.wait_entered()
        futures = submit_different(driver, kinds, 120.0)
        wait_until(lambda: any(future.done() for future in futures), "the first error")
        errors = [future.exception(60) for future in futures if future.done()]
        assert all(isinstance(error, PeerMismatchError) for error in errors)
