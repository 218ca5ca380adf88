# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Host allreduce gives the switch's results, byte for byte."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from peer_group import DOUBLING, HALVING, RING, PeerGroup
from softswitch_job import running_job
from switchfold.hostlib.errors import SaturationError
from switchfold.hostlib.options import ReduceOperation
from switchfold.hostlib.slots.wire import VALUES_PER_PACKET_NARROW, Operation
from switchfold.hostlib.summation.chunks import FloatSource, Summand
from switchfold.hostlib.summation.native_source import NativeSource
from switchfold.hostlib.summation.quantization import chunk_exponents

VALUES = VALUES_PER_PACKET_NARROW
WORKERS = 3


def switch_allreduce(
    arrays: list[NDArray[Any]], operation: ReduceOperation
) -> list[NDArray[Any] | SaturationError]:
    with running_job("narrow", WORKERS) as job, job.sessions() as workers:
        futures = [
            w.allreduce(a, operation, precision="block")
            for w, a in zip(workers, arrays, strict=True)
        ]
        errors = [future.exception(60) for future in futures]
        return [
            error if isinstance(error, SaturationError) else future.result(60)
            for error, future in zip(errors, futures, strict=True)
        ]


def host_allreduce(
    group: PeerGroup, arrays: list[NDArray[Any]], operation: ReduceOperation
) -> list[NDArray[Any] | None]:
    """Quantize as workers do, reduce among hosts; None where a sum saturated."""
    count = -(-arrays[0].size // VALUES)
    padded = [np.zeros((count, VALUES), array.dtype) for array in arrays]
    for rows, array in zip(padded, arrays, strict=True):
        rows.reshape(-1)[: array.size] = array
    if arrays[0].dtype == np.int32:
        reductions = group.reduce(Operation.AGGREGATE_ADD, [rows.reshape(-1) for rows in padded])
        return [
            None if reduction.has_saturated else reduction.values[: arrays[0].size]
            for reduction in reductions
        ]
    exponents = group.reduce(Operation.AGGREGATE_MAX, [chunk_exponents(rows) for rows in padded])
    sources = [
        FloatSource(
            Summand(tensor_id=1, flat=rows.reshape(-1), is_mean=operation == "mean", retains=True),
            agreed.values,
            VALUES,
            num_workers=WORKERS,
        )
        for rows, agreed in zip(padded, exponents, strict=True)
    ]
    quantized = [np.empty((count, VALUES), np.int32) for _ in sources]
    for source, own in zip(sources, quantized, strict=True):
        NativeSource(source).fill(0, own)
    sums = group.reduce(Operation.AGGREGATE_ADD, [own.reshape(-1) for own in quantized])
    outputs: list[NDArray[Any] | None] = []
    for source, reduction in zip(sources, sums, strict=True):
        assert not reduction.has_saturated
        source.contributors[...] = WORKERS
        NativeSource(source).take(0, reduction.values.reshape(count, VALUES))
        outputs.append(source.output.reshape(-1)[: arrays[0].size])
    return outputs


@pytest.mark.parametrize(
    ("dtype", "operation"),
    [*itertools.product(["float16", "float32", "float64"], ["sum", "mean"]), ("int32", "sum")],
)
def test_host_allreduce_gives_the_switchs_bytes(dtype: str, operation: ReduceOperation) -> None:
    rng = np.random.default_rng(11)
    magnitudes = np.exp2(rng.integers(-12, 9, 5000))
    arrays = [(rng.standard_normal(5000) * magnitudes * 10).astype(dtype) for _ in range(WORKERS)]
    from_switch = switch_allreduce(arrays, operation)
    for costs in (RING, HALVING, DOUBLING):
        with PeerGroup(WORKERS, costs) as group:
            from_hosts = host_allreduce(group, arrays, operation)
        for ours, theirs in zip(from_hosts, from_switch, strict=True):
            assert ours is not None
            assert isinstance(theirs, np.ndarray)
            assert ours.dtype == theirs.dtype
            assert ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("sign", [1, -1])
def test_switch_and_hosts_report_a_sum_outside_int32(sign: int) -> None:
    arrays = [np.arange(100, dtype=np.int32) for _ in range(WORKERS)]
    for array in arrays:
        array[63] = sign * 2**30
    assert all(isinstance(r, SaturationError) for r in switch_allreduce(arrays, "sum"))
    for costs in (RING, HALVING, DOUBLING):
        with PeerGroup(WORKERS, costs) as group:
            assert host_allreduce(group, arrays, "sum") == [None] * WORKERS
