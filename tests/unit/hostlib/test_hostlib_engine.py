# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fake_switch import FakeSwitch
from switchfold.hostlib import errors
from switchfold.hostlib.future import AllreduceFuture
from switchfold.hostlib.options import Precision, SessionOptions
from switchfold.hostlib.session import Session
from switchfold.hostlib.slots.wire import (
    WIRE_VERSION,
    Operation,
    Outcome,
    datagram_bytes,
    view_datagrams,
)
from switchfold.hostlib.straggler import StragglerPolicy
from switchfold.hostlib.summation.quantization import chunk_exponents, error_bound
from time_bound import wait_until
from view_driver import QUICK

NO_FLUSHES = StragglerPolicy(deadline_s=1e9)
"""Results may be partial, but the workers flush nothing by themselves."""
IMPAIRED: dict[str, Any] = {"loss": 0.05, "duplication": 0.05, "reordering": 0.05}


NEVER_AGAIN = SessionOptions(timeout_s=60.0, min_rto_s=60.0, initial_rto_s=60.0, max_rto_s=60.0)
"""No packet is sent again, however busy the machine is."""


@contextmanager
def sessions(switch: FakeSwitch, options: SessionOptions = QUICK) -> Generator[list[Session]]:
    with ExitStack() as stack:
        yield [
            stack.enter_context(Session.direct(switch.view(i), switch.transport(i), options))
            for i in range(switch.num_workers)
        ]


def allreduce(
    workers: list[Session], arrays: list[NDArray[Any]], **kwargs: Any
) -> list[NDArray[Any]]:
    futures = [w.allreduce(a, **kwargs) for w, a in zip(workers, arrays, strict=True)]
    return [f.result(60) for f in futures]


def assert_within_bound(
    results: list[NDArray[Any]], arrays: list[NDArray[Any]], values: int
) -> None:
    exact = np.sum([a.astype(np.longdouble) for a in arrays], axis=0)
    flats = [np.resize(a.reshape(-1), -(-a.size // values) * values) for a in arrays]
    padded = [f.reshape(-1, values) for f in flats]
    exponents = np.max([chunk_exponents(p) for p in padded], axis=0)
    bounds = [error_bound(int(e), len(arrays), arrays[0].dtype) for e in exponents]
    bound = np.repeat(bounds, values)[: exact.size].reshape(exact.shape)
    for result in results:
        assert result.dtype == arrays[0].dtype
        assert result.shape == arrays[0].shape
        assert result.tobytes() == results[0].tobytes()
        rounding = np.spacing(np.abs(result)).astype(np.float64)
        assert (np.abs(result.astype(np.longdouble) - exact) <= bound + rounding).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("shape", [(1,), (31,), (32,), (33,), (7, 11, 13), (40000,)])
def test_allreduce_float_within_bound(dtype: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    arrays = [(rng.standard_normal(shape) * 10.0**-i).astype(dtype) for i in range(3)]
    with sessions(FakeSwitch(3)) as workers:
        assert_within_bound(allreduce(workers, arrays, precision="block"), arrays, 32)


@pytest.mark.parametrize("values", [32, 352])
@pytest.mark.parametrize(
    "impairments",
    [{}, {"loss": 0.05}, {"duplication": 0.05}, {"reordering": 0.05}, IMPAIRED],
    ids=["clean", "loss", "duplication", "reordering", "all"],
)
def test_allreduce_int32_exact_when_impaired(values: int, impairments: dict[str, Any]) -> None:
    switch = FakeSwitch(4, values_per_packet=values, slot_count=16, **impairments)
    rng = np.random.default_rng(2)
    with sessions(switch) as workers:
        for length in (1, 5000, 17 * values + 3):
            arrays = [rng.integers(-(2**28), 2**28, length, np.int32) for _ in range(4)]
            for result in allreduce(workers, arrays):
                np.testing.assert_array_equal(result, np.sum(arrays, axis=0))


@pytest.mark.parametrize("seed", range(5))
def test_allreduce_many_in_flight_exact_when_impaired(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shapes = [int(n) for n in rng.integers(1, 3000, 12)]
    with sessions(FakeSwitch(3, seed=seed, **IMPAIRED)) as workers:
        tensors = [[rng.integers(-999, 999, n) for _ in range(3)] for n in shapes]
        tensors = [
            [a.astype((np.int32, np.float32)[k % 2]) for a in arrays]
            for k, arrays in enumerate(tensors)
        ]
        futures = [
            [w.allreduce(a) for w, a in zip(workers, arrays, strict=True)] for arrays in tensors
        ]
        for arrays, group in zip(tensors, futures, strict=True):
            for future in group:
                result = future.result(60)
                assert future.num_contributors == 3
                np.testing.assert_array_equal(result, np.sum(arrays, axis=0))


def test_allreduce_batch_of_small_tensors_exact() -> None:
    # Results of one batch, in order: of many tensors, and over the end of the slots.
    with sessions(FakeSwitch(1, slot_count=26), NEVER_AGAIN) as workers:
        arrays = [np.arange(1 + 7 * k % 90, dtype=np.int32) - k for k in range(60)]
        futures = [workers[0].allreduce(array) for array in arrays]
        for array, future in zip(arrays, futures, strict=True):
            np.testing.assert_array_equal(future.result(60), array)
            assert future.num_contributors == 1
        counts = workers[0].statistics
        # A probe may ask after a pause of this process; nothing else sends again.
        has_probed = counts["value_packets_probe_retransmitted"] > 0
        assert counts["value_packets_retransmitted"] == 0 or has_probed


def test_allreduce_one_worker_returns_input() -> None:
    with sessions(FakeSwitch(1)) as workers:
        array = np.linspace(-1, 1, 1000, dtype=np.float32)
        np.testing.assert_allclose(allreduce(workers, [array])[0], array, atol=2**-30)


@pytest.mark.parametrize("precision", ["block", "exact"])
def test_allreduce_of_arrays_in_any_layout(precision: Precision) -> None:
    base = np.arange(600, dtype=np.float32).reshape(20, 30)
    unaligned = np.frombuffer(b"." + base.tobytes(), np.float32, offset=1)
    assert not unaligned.flags.aligned
    with sessions(FakeSwitch(2)) as workers:
        for array in (base.T, base[::2, ::3], base.astype(">f4"), unaligned):
            results = allreduce(workers, [array, array], precision=precision)
            np.testing.assert_array_equal(results[0], 2 * array)


def test_allreduce_mean_divides_by_contributors() -> None:
    arrays = [np.full((5, 5), i, np.float16) for i in range(4)]
    with sessions(FakeSwitch(4)) as workers:
        np.testing.assert_array_equal(
            allreduce(workers, arrays, op="mean")[2], np.full((5, 5), 1.5)
        )


def test_allreduce_mean_of_maxima_does_not_overflow() -> None:
    for dtype in (np.float16, np.float32):
        array = np.full(40, np.finfo(dtype).max, dtype)
        with sessions(FakeSwitch(4)) as workers:
            np.testing.assert_array_equal(allreduce(workers, [array] * 4, op="mean")[0], array)
            assert np.isposinf(allreduce(workers, [array] * 4)[0]).all()


@pytest.mark.parametrize(
    ("precision", "size", "ranges"),
    [
        ("block", 100, [(32, 64), (96, 100)]),
        ("exact", 12, [(4, 10)]),  # nothing is agreed on before
        ("exact", 8000, [(0, 5632)]),
    ],
)
def test_allreduce_nonfinite_raises_on_every_worker_and_session_goes_on(
    precision: Precision, size: int, ranges: list[tuple[int, int]]
) -> None:
    arrays = [np.ones(size, np.float32) for _ in range(3)]
    arrays[1][4 if size == 12 else 40] = np.nan
    arrays[2][9 if size == 12 else 99] = np.inf
    with sessions(FakeSwitch(3)) as workers:
        futures = [
            w.allreduce(a, precision=precision) for w, a in zip(workers, arrays, strict=True)
        ]
        for future in futures:
            error = future.exception(60)
            assert isinstance(error, errors.NonFiniteError)
            assert error.ranges == ranges
        clean = [np.ones(100, np.float32)] * 3
        np.testing.assert_array_equal(allreduce(workers, clean)[0], np.full(100, 3))


def test_allreduce_nonfinite_propagates_to_chunk_of_block_precision() -> None:
    arrays = [np.ones(100, np.float64) for _ in range(2)]
    arrays[1][40] = -np.inf
    with sessions(FakeSwitch(2)) as workers:
        for result in allreduce(workers, arrays, nonfinite="propagate", precision="block"):
            assert np.isnan(result[32:64]).all()
            np.testing.assert_array_equal(np.delete(result, np.s_[32:64]), 2)


def test_allreduce_int32_saturation_raises_on_every_worker() -> None:
    arrays = [np.full(50, 2**30, np.int32)] * 3
    with sessions(FakeSwitch(3)) as workers:
        futures = [w.allreduce(a) for w, a in zip(workers, arrays, strict=True)]
        assert all(isinstance(f.exception(60), errors.SaturationError) for f in futures)
        small = [np.ones(50, np.int32)] * 3
        np.testing.assert_array_equal(allreduce(workers, small)[1], np.full(50, 3))


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: np.empty(0, np.float32), errors.EmptyTensorError),
        (lambda: np.zeros(3, np.int64), errors.UnsupportedDtypeError),
        (lambda: np.zeros(3, np.complex64), errors.UnsupportedDtypeError),
        (lambda: np.zeros(3, np.bool_), errors.UnsupportedDtypeError),
    ],
)
def test_allreduce_refuses_array(make: Callable[[], NDArray[Any]], error: type[Exception]) -> None:
    with sessions(FakeSwitch(1)) as workers, pytest.raises(error):
        workers[0].allreduce(make())


def test_missing_worker_is_named_and_session_broken() -> None:
    with sessions(FakeSwitch(4)) as workers:
        futures = [w.allreduce(np.ones(10, np.float32), timeout_s=6.0) for w in workers[:2]]
        for future in futures:
            error = future.exception(60)
            assert isinstance(error, errors.WorkerMissingError)
            assert error.worker_ids == [2, 3]
        with pytest.raises(errors.SessionBrokenError, match="join the job again"):
            workers[0].allreduce(np.ones(1, np.int32))


def test_thread_that_was_held_up_asks_before_it_judges() -> None:
    switch, release, timeout_s = FakeSwitch(4), threading.Event(), 3.0
    with sessions(switch) as workers:
        futures = [w.allreduce(np.ones(10, np.int32), timeout_s=timeout_s) for w in workers[:2]]
        wait_until(lambda: switch.outcomes[Outcome.ABSORBED] == 2, "both contributions")
        for worker in workers[:2]:
            worker._engine._post(lambda: release.wait(60) and None)  # pyright: ignore[reportPrivateUsage]
        end_s = time.monotonic() + timeout_s
        wait_until(lambda: time.monotonic() > end_s, "the deadline")
        release.set()
        for future in futures:
            error = future.exception(60)
            assert isinstance(error, errors.WorkerMissingError)
            assert error.worker_ids == [2, 3]


def test_silent_switch_is_unreachable() -> None:
    switch = FakeSwitch(2)
    switch.is_deaf = True
    with sessions(switch) as workers:
        future = workers[0].allreduce(np.ones(10, np.int32), timeout_s=0.4)
        assert isinstance(future.exception(60), errors.SwitchUnreachableError)
    # Nothing arrives: a few retransmissions per expiry, not the whole window.
    assert workers[0].statistics["value_packets_retransmitted"] < 30


class OneWaySwitch(FakeSwitch):
    """A switch that answers probes and loses every contribution."""

    def process(self, worker_id: int, packet: NDArray[np.void]) -> Outcome:
        if packet["header"][0]["operation"] != Operation.PROBE:
            return Outcome.BAD_CHECKSUM
        return super().process(worker_id, packet)


def test_switch_that_answers_probes_is_not_unreachable() -> None:
    with sessions(OneWaySwitch(2)) as workers:
        error = workers[0].allreduce(np.ones(10, np.int32), timeout_s=2.0).exception(60)
    assert type(error) is errors.AllreduceTimeoutError
    assert "answers, but" in str(error)


@pytest.mark.parametrize("timeout_s", [0.0, -1.0, float("nan")])
def test_allreduce_refuses_timeout(timeout_s: float) -> None:
    with sessions(FakeSwitch(1)) as workers, pytest.raises(errors.ConfigurationError):
        workers[0].allreduce(np.ones(1, np.int32), timeout_s=timeout_s)


def test_close_ends_allreduces_under_way() -> None:
    with sessions(FakeSwitch(2)) as workers:
        future = workers[0].allreduce(np.ones(10, np.int32))
        workers[0].close()
        assert isinstance(future.exception(60), errors.SessionClosedError)
        with pytest.raises(errors.SessionClosedError):
            workers[0].allreduce(np.ones(10, np.int32))


def test_retransmissions_do_not_count_twice_at_the_switch() -> None:
    switch = FakeSwitch(2, loss=0.2, seed=3)
    arrays = [np.arange(3000, dtype=np.int32)] * 2
    with sessions(switch) as workers:
        np.testing.assert_array_equal(allreduce(workers, arrays)[0], 2 * arrays[0])
        assert workers[0].statistics["value_packets_sent"] == 94
    assert switch.outcomes[Outcome.COMPLETED] == 94


def test_callback_runs_and_its_error_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with sessions(FakeSwitch(1)) as workers:
        future = workers[0].allreduce(np.ones(4, np.int32))
        future.result(60)
        seen: list[bool] = []
        future.add_done_callback(lambda f: seen.append(f.done()))

        def fail(_: AllreduceFuture) -> None:
            raise IndexError

        future.add_done_callback(fail)
    assert seen == [True]
    assert "callback of allreduce 1 failed" in caplog.text


def flush_until_done(switch: FakeSwitch, futures: list[AllreduceFuture], count: int) -> None:
    deadline_s = time.monotonic() + 60
    while not all(f.done() for f in futures):
        assert time.monotonic() < deadline_s
        switch.flush(count)
        wait_done(futures[-1], 0.01)


def wait_done(future: AllreduceFuture, timeout_s: float) -> None:
    with suppress(errors.AllreduceTimeoutError):
        future.exception(timeout_s)


def test_flushed_rounds_average_by_actual_contributors() -> None:
    switch = FakeSwitch(3, straggler=NO_FLUSHES, loss=0.02, seed=4)
    arrays = [np.full(500, float(i + 1), np.float32) for i in range(3)]
    with sessions(switch) as workers:
        futures = [w.allreduce(a, op="mean") for w, a in zip(workers[:2], arrays[:2], strict=True)]
        flush_until_done(switch, futures, 2)
        for future in futures:
            np.testing.assert_array_equal(future.result(), np.full(500, 1.5))
            assert future.num_contributors == 2
        # The late worker gets the closed results, as its own exponents fit.
        late = workers[2].allreduce(np.ones(500, np.float32), op="mean")
        np.testing.assert_array_equal(late.result(60), np.full(500, 1.5))


def test_late_worker_with_larger_exponents_takes_the_result() -> None:
    switch = FakeSwitch(2, straggler=StragglerPolicy(deadline_s=0.2), loss=0.05, seed=9)
    arrays = [np.ones(500, np.float32), np.full(500, 1e6, np.float32)]
    arrays[1][200:] = 0.5
    with sessions(switch) as workers:
        first = workers[0].allreduce(arrays[0])
        first.result(60)
        late = workers[1].allreduce(arrays[1])
        np.testing.assert_array_equal(late.result(60), first.result())
        assert late.num_contributors == 1
        results = allreduce(workers, arrays)
        assert results[0].tobytes() == results[1].tobytes()


def test_worker_that_is_rounds_behind_gets_an_error() -> None:
    switch = FakeSwitch(2, straggler=NO_FLUSHES, slot_count=2)
    with sessions(switch) as workers:
        futures = [workers[0].allreduce(np.ones(300, np.int32))]
        flush_until_done(switch, futures, 1)
        late = workers[1].allreduce(np.ones(300, np.int32))
        error = late.exception(60)
        assert isinstance(error, errors.RoundClosedError)
        assert "join again" in str(error)


def test_malformed_datagrams_are_counted_by_cause() -> None:
    switch = FakeSwitch(1)
    with sessions(switch, NEVER_AGAIN) as workers:  # a result that comes again is a duplicate
        workers[0].allreduce(np.ones(32, np.int32)).result(60)
        good = np.zeros((1, datagram_bytes(32)), np.uint8)
        causes = {
            "version": {"version": 1},
            "operation": {"operation": Operation.AGGREGATE_ADD},
            "foreign_job": {"job_id": 8},
            "generation": {"generation": 999},
            "slot": {"slot_index": 32},
            "duplicate": {"round": 1},
        }
        for changes in causes.values():
            header = view_datagrams(good, 32)["header"]
            header["version"], header["operation"] = WIRE_VERSION, Operation.RESULT
            header["job_id"], header["generation"] = switch.job_id, switch.generation
            header["slot_index"], header["round"] = 4, 1
            for name, value in changes.items():
                header[name] = value
            with switch.lock:
                switch.deliver(0, 0, good[0])
        # Packets stay in order, so a sum that comes back shows that all have been seen.
        workers[0].allreduce(np.ones(32, np.int32)).result(60)
        statistics = workers[0].statistics
        assert {name: statistics[f"refused_{name}"] for name in causes} == dict.fromkeys(causes, 1)
