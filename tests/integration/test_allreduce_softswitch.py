# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sessions over the compiled P4 program on softswitch: exact sums, also on a bad network."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from softswitch_job import running_job
from switchfold import p4src
from switchfold.hostlib.errors import AllreduceTimeoutError, SaturationError, WorkerMissingError
from switchfold.hostlib.options import Precision, SessionOptions
from switchfold.hostlib.session import Session
from switchfold.hostlib.slots.wire import Outcome
from switchfold.softswitch.switch.impairments import Impairments

WAIT_S = 120.0
UNHURRIED = SessionOptions(timeout_s=WAIT_S, initial_rto_s=60.0, min_rto_s=60.0, max_rto_s=60.0)
"""A busy machine loses no packets, unless a switch that stands still gets too many."""
BAD = {"loss": 0.05, "duplication": 0.05, "reordering": 0.05, "reordering_delay_s": 0.02}


def allreduce(
    workers: list[Session], arrays: list[NDArray[Any]], precision: Precision = "exact"
) -> list[NDArray[Any]]:
    futures = [w.allreduce(a, precision=precision) for w, a in zip(workers, arrays, strict=True)]
    return [future.result(WAIT_S) for future in futures]


@pytest.mark.parametrize("port_kind", ["mem", "udp"])
@pytest.mark.parametrize("variant", ["narrow", "wide"])
def test_allreduce_and_the_switch_counts_every_packet(
    variant: p4src.Variant, port_kind: str
) -> None:
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(100_000).astype(np.float32) for _ in range(4)]
    with running_job(variant, 4, port_kind=port_kind) as job:
        with job.sessions(UNHURRIED) as workers:
            results = allreduce(workers, arrays, "block")
        sent = sum(
            value
            for worker in workers
            for name, value in worker.statistics.items()
            if name.endswith(("packets_sent", "packets_retransmitted"))
        )
        for result in results:
            np.testing.assert_allclose(result, np.sum(arrays, axis=0), atol=1e-6)
            assert result.tobytes() == results[0].tobytes()
        outcomes = job.outcomes()
        deadline = time.monotonic() + 60
        # Retransmissions of workers on a busy machine may arrive after the last result.
        while sum(outcomes.values()) < sent and time.monotonic() < deadline:
            outcomes = job.outcomes()
        chunks = -(-100_000 // job.values_per_packet)
        exponents = -(-chunks // job.values_per_packet)
        assert outcomes[Outcome.COMPLETED] == chunks + exponents
        assert sum(outcomes.values()) == sent


@pytest.mark.parametrize(
    "names",
    [("loss",), ("duplication",), ("reordering", "reordering_delay_s"), tuple(BAD)],
    ids=["loss", "duplication", "reordering", "all"],
)
@pytest.mark.parametrize("port_kind", ["mem", "udp"])
def test_allreduce_exact_on_a_bad_network(port_kind: str, names: tuple[str, ...]) -> None:
    def impairments(worker_id: int) -> Impairments:
        return Impairments(seed=worker_id + 1, **{name: BAD[name] for name in names})

    rng = np.random.default_rng(2)
    with (
        running_job(
            "narrow", 3, port_kind=port_kind, slot_count=16, impairments=impairments
        ) as job,
        job.sessions() as workers,
    ):
        for length in (1, 333, 20_000):
            arrays = [rng.integers(-(2**29), 2**29, length, np.int32) for _ in range(3)]
            for result in allreduce(workers, arrays):
                np.testing.assert_array_equal(result, np.sum(arrays, axis=0))


def test_queued_tensors_end_behind_random_loss() -> None:
    def impairments(worker_id: int) -> Impairments:
        return Impairments(seed=worker_id + 1, loss=0.05)

    arrays = [np.arange(35_200, dtype=np.int32) + number for number in range(48)]
    with (
        running_job("wide", 2, slot_count=128, impairments=impairments) as job,
        job.sessions() as workers,
    ):
        futures = [[w.allreduce(array, timeout_s=300) for w in workers] for array in arrays]
        for array, group in zip(arrays, futures, strict=True):
            for future in group:
                np.testing.assert_array_equal(future.result(300), 2 * array)
        for worker in workers:
            assert worker.statistics.get("value_packets_fast_retransmitted", 0) > 0
        assert Outcome.MISMATCH not in job.outcomes()


def test_saturation_is_reported_to_every_worker() -> None:
    with running_job("narrow", 2) as job, job.sessions() as workers:
        futures = [w.allreduce(np.full(100, 2**30 + 5, np.int32)) for w in workers]
        for future in futures:
            assert isinstance(future.exception(60), SaturationError)


def test_workers_that_disagree_on_the_shape_get_errors() -> None:
    with running_job("narrow", 2) as job, job.sessions() as workers:
        first = workers[0].allreduce(np.zeros(20, np.int32), timeout_s=5)
        deadline = time.monotonic() + 60
        while job.outcomes().get(Outcome.ABSORBED, 0) < 1:
            assert time.monotonic() < deadline, job.outcomes()
        second = workers[1].allreduce(np.zeros(30, np.int32), timeout_s=5)
        assert isinstance(first.exception(60), WorkerMissingError)
        error = second.exception(60)
        assert isinstance(error, AllreduceTimeoutError)
        assert "takes none from worker 1" in str(error)
        assert job.outcomes()[Outcome.MISMATCH] >= 1
