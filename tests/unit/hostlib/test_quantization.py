# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from switchfold.hostlib.summation.chunks import FloatSource, Summand
from switchfold.hostlib.summation.native_source import NativeSource
from switchfold.hostlib.summation.quantization import (
    LANE_BITS,
    NONFINITE_EXPONENT,
    ZERO_EXPONENT,
    chunk_exponents,
    error_bound,
)

DTYPES = [np.float16, np.float32, np.float64]


def reduce_all(
    tensors: list[NDArray[Any]], *, is_mean: bool = False
) -> tuple[NDArray[Any], NDArray[np.int32], NDArray[np.int64]]:
    """Reduce as workers and switch do together; return (result, exponents, integer sums)."""
    dtype, shape = tensors[0].dtype, tensors[0].shape
    agreed = np.max([chunk_exponents(t) for t in tensors], axis=0)
    sums = np.zeros(shape, np.int64)
    sources = [
        FloatSource(
            Summand(tensor_id=1, flat=tensor.reshape(-1), is_mean=is_mean, retains=True),
            agreed,
            shape[1],
            num_workers=len(tensors),
        )
        for tensor in tensors
    ]
    for source in sources:
        rows = np.empty(shape, np.int32)
        NativeSource(source).fill(0, rows)
        sums += rows
    assert (np.abs(sums) <= 1 << LANE_BITS).all()
    sources[0].contributors[...] = len(tensors)
    NativeSource(sources[0]).take(0, sums.astype(np.int32))
    result = sources[0].output
    assert result.dtype == dtype
    return result, agreed, sums


def assert_error_bound(tensors: list[NDArray[Any]]) -> None:
    result, agreed, _ = reduce_all(tensors)
    exact = np.sum([t.astype(np.longdouble) for t in tensors], axis=0)
    bounds = np.array([error_bound(int(e), len(tensors), result.dtype) for e in agreed])[:, None]
    limit = bounds + np.spacing(np.abs(result)).astype(np.longdouble)
    assert (np.abs(result - exact) <= limit).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("num_workers", [1, 2, 3, 4, 5, 8, 17, 32])
def test_error_bound_holds(dtype: type, num_workers: int) -> None:
    rng = np.random.default_rng(num_workers)
    scale = 10.0 ** rng.integers(-4, 3, (20, 1))
    tensors = [(rng.standard_normal((20, 16)) * scale).astype(dtype) for _ in range(num_workers)]
    assert_error_bound(tensors)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("num_workers", [1, 3, 32])
def test_no_overflow_at_largest_magnitudes(dtype: type, num_workers: int) -> None:
    below_one = np.nextafter(dtype(1), dtype(0))
    for sign in (1, -1):
        tensors = [np.full((1, 4), sign * below_one, dtype)] * num_workers
        assert_error_bound(tensors)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(DTYPES),
    st.integers(1, 32),
    st.lists(st.floats(-1, 1), min_size=4, max_size=4),
    st.integers(-160, 120),
)
def test_error_bound_holds_at_any_scale(
    dtype: type, num_workers: int, values: list[float], exponent: int
) -> None:
    limit = float(np.finfo(dtype).max) / 64
    row = np.clip(np.ldexp(np.array(values), exponent), -limit, limit).astype(dtype)[None, :]
    assert_error_bound([np.roll(row, i) for i in range(num_workers)])


@pytest.mark.parametrize("dtype", DTYPES)
def test_exponent_is_smallest_power_above(dtype: type) -> None:
    chunks = np.array([[0.0], [1.0], [0.75], [-2.0], [0.5]], dtype)
    np.testing.assert_array_equal(chunk_exponents(chunks), [ZERO_EXPONENT, 1, 0, 2, 0])


@pytest.mark.parametrize("dtype", DTYPES)
def test_exponents_are_those_of_numpy_for_any_bits(dtype: type) -> None:
    bits = np.random.default_rng(7).integers(0, 256, (4000, 24), np.uint8)
    bits[1000:2000, 1::2] &= 0x0F  # small exponents: denormals as well
    chunks = bits.view(dtype)
    chunks[2000:2100] = 0
    chunks[2100:2200, 0] = -0.0
    chunks[2200:2300, -1] = np.finfo(dtype).smallest_subnormal
    with np.errstate(invalid="ignore"):
        largest = np.abs(chunks).max(axis=1)
        expected = np.frexp(largest)[1].astype(np.int32)
    expected[largest == 0] = ZERO_EXPONENT
    expected[~np.isfinite(largest)] = NONFINITE_EXPONENT
    np.testing.assert_array_equal(chunk_exponents(chunks), expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nonfinite_marks_its_chunk_only(dtype: type, bad: float) -> None:
    tensors = [np.ones((3, 4), dtype) for _ in range(2)]
    tensors[1][1, 2] = bad
    result, agreed, sums = reduce_all(tensors)
    assert agreed[1] == NONFINITE_EXPONENT
    assert np.isnan(result[1]).all()
    assert not sums[1].any()
    np.testing.assert_array_equal(result[[0, 2]], 2)


@pytest.mark.parametrize("dtype", DTYPES)
def test_zero_chunks_give_positive_zero(dtype: type) -> None:
    result, _, _ = reduce_all([np.full((2, 3), -0.0, dtype)] * 4)
    assert result.tobytes() == np.zeros((2, 3), dtype).tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_denormals_stay_within_bound(dtype: type) -> None:
    smallest = np.finfo(dtype).smallest_subnormal
    tensors = [np.full((1, 4), k * smallest, dtype) for k in (1, 3, 1000)]
    assert_error_bound(tensors)
    if dtype == np.float16:
        np.testing.assert_array_equal(reduce_all(tensors)[0], np.full((1, 4), 1004 * smallest))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_sum_beyond_range_is_infinite_but_mean_is_not(dtype: type) -> None:
    largest = np.finfo(dtype).max
    tensors = [np.full((1, 4), -largest, dtype)] * 3
    assert np.isneginf(reduce_all(tensors)[0]).all()
    np.testing.assert_allclose(reduce_all(tensors, is_mean=True)[0], tensors[0], rtol=2e-7)


def test_float64_near_maximum_rounds_to_maximum_or_infinity() -> None:
    largest = np.full((1, 4), np.finfo(np.float64).max)
    assert np.isposinf(reduce_all([largest])[0]).all()
    assert_error_bound([largest / 4] * 2)


def test_result_is_independent_of_worker_order() -> None:
    rng = np.random.default_rng(5)
    tensors = [rng.standard_normal((4, 32)).astype(np.float32) for _ in range(8)]
    first = reduce_all(tensors)[0]
    assert first.tobytes() == reduce_all(tensors[::-1])[0].tobytes()
