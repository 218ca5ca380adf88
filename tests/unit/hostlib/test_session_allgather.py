# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Allgathers of sessions over a switch that multicasts, and loses, duplicates and reorders."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fake_switch import FakeSwitch
from switchfold.hostlib import errors
from switchfold.hostlib.future import AllgatherFuture, AllreduceFuture
from switchfold.hostlib.options import SessionOptions
from switchfold.hostlib.session import Session
from switchfold.hostlib.slots.wire import Outcome
from view_driver import QUICK

WAIT_S = 60.0
UNHURRIED = SessionOptions(timeout_s=120.0, initial_rto_s=9.0, min_rto_s=9.0, max_rto_s=9.0)
"""A machine that is busy loses no packets; nothing needs to be sent again."""
LOSSY: dict[str, Any] = {"loss": 0.02, "duplication": 0.02, "reordering": 0.02}


@contextmanager
def sessions(switch: FakeSwitch, options: SessionOptions = QUICK) -> Generator[list[Session]]:
    with ExitStack() as stack:
        yield [
            stack.enter_context(Session.direct(switch.view(i), switch.transport(i), options))
            for i in range(switch.num_workers)
        ]


def blocks(generator: np.random.Generator, num: int, size: int) -> list[NDArray[np.uint8]]:
    return [generator.integers(0, 256, size).astype(np.uint8) for _ in range(num)]


def check(workers: list[Session], arrays: list[NDArray[Any]]) -> None:
    futures = [w.allgather(a) for w, a in zip(workers, arrays, strict=True)]
    for future in futures:
        results = future.result(WAIT_S)
        assert future.members == tuple(range(len(workers)))
        assert len(results) == len(arrays)
        for result, array in zip(results, arrays, strict=True):
            assert result.dtype == array.dtype
            assert result.shape == array.shape
            assert result.tobytes() == array.tobytes()


@pytest.mark.parametrize("num_workers", [1, 2, 5])
@pytest.mark.parametrize("size", [1, 127, 128, 129, 40_000])
def test_allgather_is_exact(num_workers: int, size: int) -> None:
    switch = FakeSwitch(num_workers)
    with sessions(switch) as workers:
        check(workers, blocks(np.random.default_rng(size), num_workers, size))


def test_allgather_of_any_plain_dtype_and_shape() -> None:
    generator = np.random.default_rng(1)
    samples: list[NDArray[Any]] = [
        np.array([np.nan, -0.0, np.inf, 1e-45], np.float32),
        generator.standard_normal((3, 7, 5)).astype(np.float16),
        generator.standard_normal((4, 9)).T,
        np.array(True),
        np.array([1 + 2j, -3j]),
        np.array(["one", "two"]),
        generator.integers(0, 9, (5, 5)).astype(">i8")[::2, ::-1],
    ]
    with sessions(FakeSwitch(2)) as workers:
        for sample in samples:
            check(workers, [sample, np.ones_like(sample)])


@pytest.mark.parametrize(("num_workers", "values", "seed"), [(2, 352, 1), (3, 32, 2), (5, 32, 3)])
def test_allgather_is_exact_when_packets_are_lost_doubled_and_reordered(
    num_workers: int, values: int, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    switch = FakeSwitch(num_workers, values_per_packet=values, seed=seed, **LOSSY)
    with sessions(switch) as workers:
        for _ in range(3):
            size = int(generator.integers(1, 400 * values))
            check(workers, blocks(generator, num_workers, size))
        again = [worker.statistics["multicast_packets_retransmitted"] for worker in workers]
    assert sum(again) > 0


def test_allgather_beside_allreduces_keeps_both_exact() -> None:
    generator = np.random.default_rng(4)
    with sessions(FakeSwitch(3, **LOSSY)) as workers:
        sums: list[tuple[NDArray[Any], list[AllreduceFuture]]] = []
        gathers: list[tuple[list[NDArray[np.uint8]], list[AllgatherFuture]]] = []
        for step in range(6):
            numbers = generator.integers(-1000, 1000, (3, 400)).astype(np.int32)
            arrays = blocks(generator, 3, 3000 * (1 + step % 3))
            reduced = [w.allreduce(n) for w, n in zip(workers, numbers, strict=True)]
            sums.append((numbers.sum(axis=0, dtype=np.int32), reduced))
            gathered = [w.allgather(a) for w, a in zip(workers, arrays, strict=True)]
            gathers.append((arrays, gathered))
        for expected, reduced in sums:
            for future in reduced:
                np.testing.assert_array_equal(future.result(WAIT_S), expected)
        for arrays, gathered in gathers:
            for future in gathered:
                np.testing.assert_array_equal(future.result(WAIT_S), arrays)


def test_allgather_sends_one_block_and_few_reports() -> None:
    num_workers, chunks = 4, 500
    switch = FakeSwitch(num_workers, values_per_packet=352)
    with sessions(switch, UNHURRIED) as workers:
        check(workers, blocks(np.random.default_rng(5), num_workers, chunks * 352 * 4))
    counts = [worker.statistics for worker in workers]
    assert [count["multicast_packets_received"] for count in counts] == [3 * chunks] * 4
    assert [count["multicast_packets_sent"] for count in counts] == [chunks] * 4
    again = [count["multicast_packets_retransmitted"] for count in counts]
    reports = [count["multicast_packets_reported"] for count in counts]
    assert sum(again) + sum(reports) <= 4 * chunks / 10, (again, reports)
    assert switch.outcomes == {Outcome.MULTICAST: 4 * chunks + sum(again) + sum(reports)}


def test_allgather_waits_for_late_workers_without_losing_what_came_early() -> None:
    switch = FakeSwitch(3)
    generator = np.random.default_rng(6)
    arrays = blocks(generator, 3, 60_000)
    with sessions(switch) as workers:
        early = [workers[i].allgather(arrays[i]) for i in (0, 1)]
        with pytest.raises(errors.AllgatherTimeoutError, match="still under way"):
            early[0].result(0.3)
        late = workers[2].allgather(arrays[2])
        for future in (*early, late):
            np.testing.assert_array_equal(future.result(WAIT_S), arrays)


def test_allgather_timeout_names_the_missing_worker() -> None:
    switch = FakeSwitch(3)
    with sessions(switch) as workers:
        futures = [workers[i].allgather(np.ones(4000), timeout_s=3.0) for i in (0, 1)]
        for future in futures:
            with pytest.raises(errors.AllgatherTimeoutError, match="waits for worker 2 ") as caught:
                future.result(WAIT_S)
            assert caught.value.worker_ids == [2]
        with pytest.raises(errors.SessionBrokenError):
            workers[0].allgather(np.ones(4))


def test_allgather_of_different_shapes_is_refused() -> None:
    with sessions(FakeSwitch(2)) as workers:
        futures = [workers[0].allgather(np.ones(90)), workers[1].allgather(np.ones((9, 10)))]
        for future in futures:
            with pytest.raises(errors.PeerMismatchError, match="same sequence"):
                future.result(WAIT_S)


def test_allgather_needs_a_switch_that_reaches_all() -> None:
    switch = FakeSwitch(2)
    switch.install(1001, (0, 1), {8: 16, 9: 16})
    with sessions(switch) as workers:
        assert not workers[0].can_multicast
        with pytest.raises(errors.MulticastUnavailableError, match="2 trees"):
            workers[0].allgather(np.ones(3))


@pytest.mark.parametrize(
    ("array", "error"),
    [
        (np.empty(0), errors.EmptyTensorError),
        (np.array([None]), errors.UnsupportedDtypeError),
    ],
)
def test_allgather_refuses_what_has_no_bytes(
    array: NDArray[Any], error: type[errors.HostlibError]
) -> None:
    with sessions(FakeSwitch(2)) as workers, pytest.raises(error):
        workers[0].allgather(array)
