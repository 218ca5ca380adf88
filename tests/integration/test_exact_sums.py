# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sums over the compiled P4 program are the true ones, rounded once, whatever the values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from exact_oracle import IDIOMS, exact_sum, mixed_tensors
from softswitch_job import running_job
from switchfold import p4src
from switchfold.hostlib.options import ReduceOperation
from switchfold.hostlib.session import Session
from switchfold.softswitch.switch.impairments import Impairments

WORKERS = 4
WAIT_S = 120.0
BAD = {"loss": 0.03, "duplication": 0.03, "reordering": 0.03, "reordering_delay_s": 0.02}


def summed(workers: list[Session], arrays: list[NDArray[Any]], **named: Any) -> NDArray[Any]:
    """Return the sum, once all workers have the same bytes."""
    futures = [
        w.allreduce(a, timeout_s=WAIT_S, **named) for w, a in zip(workers, arrays, strict=True)
    ]
    results = [future.result(2 * WAIT_S) for future in futures]
    assert len({result.tobytes() for result in results}) == 1
    return results[0]


def test_loss_and_count_of_one_tensor_are_both_right() -> None:
    with running_job("wide", WORKERS) as job, job.sessions() as workers:
        for dtype, values in IDIOMS:
            array = np.array(values, dtype)
            result = summed(workers, [array] * WORKERS)
            np.testing.assert_array_equal(result, exact_sum([array] * WORKERS))
            if dtype == "float64":
                assert result.tolist() == [math.fsum([value] * WORKERS) for value in values]
        # Nothing is agreed on before: one packet each.
        assert workers[0].statistics["exponent_packets_sent"] == 0
        assert workers[0].statistics["value_packets_sent"] == len(IDIOMS)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("variant", ["narrow", "wide"])
def test_mixed_magnitudes_are_exact_on_a_bad_network(variant: p4src.Variant, dtype: str) -> None:
    def impairments(worker_id: int) -> Impairments:
        return Impairments(seed=worker_id + 1, **BAD)

    operations: list[ReduceOperation] = ["sum", "mean"]
    spreads = {"float16": [3, 12], "float32": [3, 120], "float64": [3, 900]}[dtype]
    most_values = {"narrow": 900, "wide": 6000}[variant]
    with (
        running_job(variant, 3, impairments=impairments) as job,
        job.sessions() as workers,
    ):
        for spread in spreads:
            size = most_values if spread == 3 else 90  # which may take dozens of lanes each
            arrays = mixed_tensors(3, size, dtype, spread, spread=spread)
            for operation in operations:
                result = summed(workers, arrays, op=operation)
                expected = exact_sum(arrays, is_mean=operation == "mean")
                np.testing.assert_array_equal(result, expected)


def test_block_precision_is_within_its_bound_of_the_exact_sum() -> None:
    rng = np.random.default_rng(4)
    arrays = [rng.standard_normal(50_000).astype(np.float32) for _ in range(WORKERS)]
    with running_job("wide", WORKERS) as job, job.sessions() as workers:
        exact = summed(workers, arrays)
        block = summed(workers, arrays, precision="block")
    np.testing.assert_array_equal(exact, np.sum(arrays, axis=0, dtype=np.float64).astype("f4"))
    assert (exact != block).any()
    np.testing.assert_allclose(block, exact, rtol=2.0**-23, atol=2.0**-24)
