# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from exact_oracle import nearest
from switchfold.hostlib.summation.exact import (
    FORMATS,
    Limbs,
    full_limbs,
    group_ranges,
    limb_bits,
    split,
)
from switchfold.hostlib.summation.exact_rounding import recombine
from switchfold.hostlib.summation.quantization import ZERO_EXPONENT

CARRIERS = {name: "float32" if name == "bfloat16" else name for name in FORMATS}
"""The dtype in which values of a format travel."""
NAMES = list(FORMATS)
WORKERS = [1, 2, 3, 4, 5, 8, 17, 32, 200]


def agreed_limbs(arrays: Sequence[NDArray[Any]]) -> Limbs:
    """Return the limbs that the ranges of all workers need."""
    ranges = [group_ranges(array[None]) for array in arrays]
    high, minus_low, nonfinite = np.max(ranges, axis=0)[0].tolist()
    bits = limb_bits(len(arrays))
    if high == ZERO_EXPONENT:
        return Limbs(bits, 1, 0, bool(nonfinite))
    return Limbs(bits, max(1, -(-(high + minus_low) // bits)), -minus_low, bool(nonfinite))


def add_up(
    arrays: Sequence[NDArray[Any]], name: str, limbs: Limbs, *, is_mean: bool = False
) -> NDArray[Any]:
    """Add up as workers and switch do together."""
    num_lanes = limbs.lanes * len(arrays[0])
    sums = np.zeros((1, num_lanes), np.int64)
    wide = "float64" if CARRIERS[name] == "float64" else "float32"
    for array in arrays:
        lanes = np.empty((1, num_lanes), ">i4")
        split(array[None].astype(wide), limbs, lanes)
        sums += lanes
    assert np.abs(sums).max() < 1 << 31  # no lane saturates
    divisors = np.full((1, 1), len(arrays), np.uint16) if is_mean else None
    with np.errstate(over="ignore", under="ignore"):  # as the I/O thread does
        return recombine(sums.astype(">i4"), limbs, FORMATS[name], CARRIERS[name], divisors)[0]


def assert_exact(columns: list[list[float]], name: str) -> None:
    """Check sums and means of one column per worker, with either choice of limbs."""
    form, count = FORMATS[name], len(columns)
    arrays = [np.array(column, CARRIERS[name]) for column in columns]
    assert [array.tolist() for array in arrays] == columns  # representable
    true = [sum(map(Fraction, row), Fraction(0)) for row in zip(*columns, strict=True)]
    for limbs in (agreed_limbs(arrays), full_limbs(CARRIERS[name], count)):
        sums = add_up(arrays, name, limbs)
        assert sums.dtype == CARRIERS[name]
        assert sums.tolist() == [nearest(value, form) for value in true]
        means = add_up(arrays, name, limbs, is_mean=True)
        assert means.tolist() == [nearest(value / count, form) for value in true]
        if name == "float64":
            for row, value in zip(zip(*columns, strict=True), sums.tolist(), strict=True):
                if all(abs(each) < 2.0**1000 for each in row):  # else its partial sums overflow
                    assert value == math.fsum(row)


@cache
def top_bits(name: str) -> st.SearchStrategy[int]:
    form = FORMATS[name]
    return (
        st.integers(form.lowest_bit, form.high - 1)
        | st.integers(form.lowest_bit, form.lowest_bit + form.significand_bits)
        | st.integers(-2, 2)
        | st.integers(form.high - 2, form.high - 1)
    )


@cache
def fractions(bits: int) -> st.SearchStrategy[int]:
    """Numbers of so many bits."""
    largest = (1 << bits) - 1
    return st.integers(0, largest) | st.sampled_from([0, largest])


FACTORS = st.sampled_from([1.0, 1.0, 0.0, -1.0, -1.0, -0.0])


@st.composite
def numbers(draw: st.DrawFn, name: str) -> float:
    """Numbers of a format of any magnitude: denormals, powers of two, neighbours of these."""
    form = FORMATS[name]
    top = draw(top_bits(name))
    bits = top - max(top + 1 - form.significand_bits, form.lowest_bit) + 1
    value = math.ldexp((1 << bits - 1) + draw(fractions(bits - 1)), top - bits + 1)
    return value * draw(FACTORS)


@cache
def columns_of(name: str) -> st.SearchStrategy[list[list[float]]]:
    """Three values for each of 1 to 32 workers."""
    column = st.lists(numbers(name), min_size=3, max_size=3)
    return st.lists(column, min_size=1, max_size=32)


@st.composite
def tensors(draw: st.DrawFn) -> tuple[str, list[list[float]]]:
    """Tensors of 3 values for 1 to 32 workers, some of which cancel each other."""
    name = draw(st.sampled_from(NAMES))
    columns = draw(columns_of(name))
    if len(columns) > 1 and draw(st.booleans()):
        columns[-1] = [-value for value in columns[0]]
    return name, columns


# One worker's limbs have 31 bits: the pairs of four limbs have the most bits that there can be.
@example(("float32", [[1.0, -1.0, 2.0**62]]))
@example(("float32", [[1.0, -1.0, 2.0**93]]))
@example(("float64", [[3.0, -(2.0**62) + 2.0**10, 2.0**93]]))
@settings(max_examples=250, deadline=None)
@given(tensors())
def test_sums_and_means_are_rounded_once(tensor: tuple[str, list[list[float]]]) -> None:
    name, columns = tensor
    assert_exact(columns, name)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("count", WORKERS)
def test_ties_of_ordinary_values_go_to_even(name: str, count: int) -> None:
    form = FORMATS[name]
    unit = math.ldexp(1.0, 1 - form.significand_bits)  # of numbers from 1 to 2
    rng = np.random.default_rng(count)
    columns = [[0.0] * 64 for _ in range(count)]
    columns[0] = (1 + unit * rng.integers(0, 1 << form.significand_bits - 1, 64)).tolist()
    # Half a unit, or what is next to it, whatever the workers' number.
    for place, extra in enumerate((0.5, 0.5 - 0.5**8, 0.5 + 0.5**8, -0.25) * 16):
        columns[-1][place] += unit * extra if count > 1 else 0.0
    assert_exact(columns, name)


@pytest.mark.parametrize("name", NAMES)
def test_every_number_of_limbs_is_exact(name: str) -> None:
    form = FORMATS[name]
    rng = np.random.default_rng(3)
    for span in range(1, form.high - form.lowest_bit, 17):
        bits = rng.integers(1, 1 << form.significand_bits, (3, 4)).tolist()
        top = min(form.lowest_bit + span + form.significand_bits, form.high - 1)
        rows = [
            [math.ldexp(row[0], form.lowest_bit), 0.0, math.ldexp(1.0, top), -math.ldexp(1.0, top)]
            for row in bits
        ]
        assert_exact(rows, name)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_infinities_and_nan_are_those_of_ieee(dtype: str) -> None:
    inf, nan = math.inf, math.nan
    arrays = [
        np.array([inf, inf, -inf, nan, 1.0, 1.0], dtype),
        np.array([1.0, -inf, -2.0, 1.0, nan, 2.0], dtype),
        np.array([2.0, 1.0, 3.0, inf, 2.0, 0.25], dtype),
    ]
    expected = [inf, nan, -inf, nan, nan, 3.25]
    for limbs in (agreed_limbs(arrays), full_limbs(dtype, 3)):
        assert limbs.has_specials
        np.testing.assert_array_equal(add_up(arrays, dtype, limbs), np.array(expected, dtype))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_zero_is_positive_and_overflow_is_infinite(dtype: str) -> None:
    largest = float(np.finfo(dtype).max)
    arrays = [np.array([-0.0, 5.0, largest, -largest], dtype) for _ in range(2)]
    arrays[1][1] = -5.0
    result = add_up(arrays, dtype, agreed_limbs(arrays))
    assert result.tobytes() == np.array([0.0, 0.0, math.inf, -math.inf], dtype).tobytes()
    means = add_up(arrays, dtype, agreed_limbs(arrays), is_mean=True)
    np.testing.assert_array_equal(means, np.array([0.0, 0.0, largest, -largest], dtype))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_ranges_hold_all_bits_and_no_more_limbs_than_needed(dtype: str) -> None:
    rows = np.array([[0.0, -0.0], [1.0, -1.0], [3.0, 0.5], [6.0, 2.0]], dtype)
    ranges = group_ranges(rows)
    assert ranges[0].tolist() == [ZERO_EXPONENT, ZERO_EXPONENT, 0]
    assert ranges[1].tolist() == [1, 0, 0]
    assert ranges[2, 0] == 2
    assert ranges[2, 1] >= 1
    smallest = np.finfo(dtype).smallest_subnormal
    low = group_ranges(np.array([[smallest, 1.0]], dtype))[0]
    assert low[1] == -FORMATS[dtype].lowest_bit


@pytest.mark.parametrize("count", [1, 2, 3, 32, 1000, 65535])
def test_lanes_never_saturate(count: int) -> None:
    assert count * ((1 << limb_bits(count)) - 1) < 1 << 31
