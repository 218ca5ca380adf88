# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from exact_oracle import exact_sum, mixed_tensors, nearest
from switchfold.hostlib.summation.chunks import Summand
from switchfold.hostlib.summation.exact import FORMATS, group_ranges, limb_bits
from switchfold.hostlib.summation.exact_chunks import (
    GROUP_VALUES,
    ExactLayout,
    ExactSource,
    range_source,
)
from switchfold.hostlib.summation.native_source import NativeSource
from switchfold.hostlib.summation.quantization import ZERO_EXPONENT
from torch_ranks import load_torch, require_torch

CARRIERS = {name: "float32" if name == "bfloat16" else name for name in FORMATS}
"""The dtype in which values of a format travel."""
NAMES = list(FORMATS)
WORKERS = [1, 2, 3, 4, 5, 8, 17, 32, 200]
VALUES = 32
"""Lanes of a chunk: values of many limbs take several."""
HIGH, MINUS_LOW, NONFINITE = range(3)
"""Lanes of a range."""

Ranges = NDArray[np.int32]


def agreed_ranges(arrays: Sequence[NDArray[Any]]) -> Ranges:
    """Return the ranges that hold the values of all workers."""
    return np.max([group_ranges(array[None]) for array in arrays], axis=0)


def add_up(
    arrays: Sequence[NDArray[Any]], name: str, ranges: Ranges | None, *, is_mean: bool = False
) -> NDArray[Any]:
    """Add up as workers and switch do together; without ranges, limbs hold every number."""
    count = len(arrays)
    layout = ExactLayout(
        len(arrays[0]), VALUES, dtype=CARRIERS[name], num_workers=count, ranges=ranges
    )
    sources = [
        ExactSource(
            Summand(tensor_id=1, flat=array, is_mean=is_mean), layout, VALUES, round_to=name
        )
        for array in arrays
    ]
    sums = np.zeros((layout.num_chunks, VALUES), np.int64)
    for source in sources:
        lanes = np.full(sums.shape, -1, np.int32)
        NativeSource(source).fill(0, lanes)
        sums += lanes
    assert np.abs(sums).max() < 1 << 31  # no lane saturates
    source, results = sources[0], sums.astype(np.int32)
    source.keep(results, np.full(layout.num_chunks, count, np.uint16))
    native, cut = NativeSource(source), layout.num_chunks // 2
    native.take(cut, results[cut:])  # in any order, even where this cuts a value
    if cut:
        native.take(0, results[:cut])
    return source.output


def digits(values: list[float]) -> list[str]:
    """Return what tells all values apart, and shows a failure."""
    return [value.hex() for value in values]


def assert_exact(columns: list[list[float]], name: str) -> None:
    """Check sums and means of one column per worker, with either choice of limbs."""
    form, count = FORMATS[name], len(columns)
    arrays = [np.array(column, CARRIERS[name]) for column in columns]
    assert [array.tolist() for array in arrays] == columns  # representable
    true = [sum(map(Fraction, row), Fraction(0)) for row in zip(*columns, strict=True)]
    for ranges in (agreed_ranges(arrays), None):
        sums = add_up(arrays, name, ranges)
        assert sums.dtype == CARRIERS[name]
        assert digits(sums.tolist()) == digits([nearest(value, form) for value in true])
        means = add_up(arrays, name, ranges, is_mean=True)
        assert digits(means.tolist()) == digits([nearest(value / count, form) for value in true])
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
@pytest.mark.parametrize("depth", [6, 36, 66, 2000])
def test_tiny_numbers_break_ties(name: str, depth: int) -> None:
    form = FORMATS[name]
    unit = math.ldexp(1.0, 1 - form.significand_bits)  # of numbers from 1 to 2
    last = -form.significand_bits - 2
    powers = range(max(last - depth, form.lowest_bit), last)
    tiny = [factor * math.ldexp(1.0, power) for power in powers for factor in (1, -1, 3, -3)]
    # Sums, then means, half between a number and the next.
    for tie in ((1.0, unit / 2), (1 + unit, unit / 2), (3.0, 3 * unit / 2), (3.0, 9 * unit / 2)):
        rows = [(*tie, least) for least in tiny]
        assert_exact([list(column) for column in zip(*rows, strict=True)], name)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("count", WORKERS)
def test_means_of_the_smallest_numbers_are_rounded_once(name: str, count: int) -> None:
    smallest = math.ldexp(1.0, FORMATS[name].lowest_bit)
    columns = [[0.0] * 24 for _ in range(count)]
    columns[0] = [number * smallest for number in range(-12, 12)]
    columns[-1] = [number * smallest for number in range(24)]
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
    ranges = agreed_ranges(arrays)
    assert ranges[0, NONFINITE] == 1
    for each in (ranges, None):
        np.testing.assert_array_equal(add_up(arrays, dtype, each), np.array(expected, dtype))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_zero_is_positive_and_overflow_is_infinite(dtype: str) -> None:
    largest = float(np.finfo(dtype).max)
    arrays = [np.array([-0.0, 5.0, largest, -largest], dtype) for _ in range(2)]
    arrays[1][1] = -5.0
    result = add_up(arrays, dtype, agreed_ranges(arrays))
    assert result.tobytes() == np.array([0.0, 0.0, math.inf, -math.inf], dtype).tobytes()
    means = add_up(arrays, dtype, agreed_ranges(arrays), is_mean=True)
    np.testing.assert_array_equal(means, np.array([0.0, 0.0, largest, -largest], dtype))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_ranges_hold_all_bits_and_no_more_limbs_than_needed(dtype: str) -> None:
    rows = np.array([[0.0, -0.0], [1.0, -1.0], [3.0, 0.5], [6.0, 2.0]], dtype)
    ranges = group_ranges(rows)
    assert ranges[0].tolist() == [ZERO_EXPONENT, ZERO_EXPONENT, 0]
    assert ranges[1].tolist() == [1, 0, 0]
    assert ranges[2, HIGH] == 2
    assert ranges[2, MINUS_LOW] >= 1
    smallest = np.finfo(dtype).smallest_subnormal
    low = group_ranges(np.array([[smallest, 1.0]], dtype))[0]
    assert low[MINUS_LOW] == -FORMATS[dtype].lowest_bit


@pytest.mark.parametrize("is_mean", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_groups_of_a_tensor_have_limbs_of_their_own(dtype: str, is_mean: bool) -> None:
    size, values = 4 * GROUP_VALUES + 77, 352
    arrays = mixed_tensors(3, size, dtype, 5, spread=8)
    rows: list[NDArray[np.int32]] = []
    for array in arrays:
        array[GROUP_VALUES : 2 * GROUP_VALUES] = 1.5
        array[-100:] = 0
        source = range_source(1, array, values)
        lanes = np.empty((source.num_chunks, values), np.int32)
        NativeSource(source).fill(0, lanes)
        rows.append(lanes.reshape(-1)[: source.num_elements])
    ranges = np.max(rows, axis=0)
    layout = ExactLayout(size, values, dtype=dtype, num_workers=3, ranges=ranges)
    counts = layout.groups["limbs"]["count"]
    assert counts[1] == counts[-1] == 1 < counts[0]
    sources = [
        ExactSource(
            Summand(tensor_id=1, flat=array, is_mean=is_mean), layout, values, round_to=dtype
        )
        for array in arrays
    ]
    sums = np.zeros((layout.num_chunks, values), np.int32)
    cuts = [0, 1, 8, 9, layout.num_chunks]
    parts = list(itertools.pairwise(cuts))
    for native in map(NativeSource, sources):
        for first, end in parts:
            lanes = np.full((end - first, values), -1, np.int32)
            native.fill(first, lanes)
            sums[first:end] += lanes
    source = sources[1]
    source.keep(sums, np.full(layout.num_chunks, 3, np.uint16))
    native = NativeSource(source)
    for first, end in reversed(parts):
        native.take(first, sums[first:end])
    expected = exact_sum(arrays, is_mean=is_mean)
    assert source.output.tobytes() == expected.tobytes()
    assert source.nonfinite_ranges == []


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_values_need_no_alignment(dtype: str) -> None:
    arrays = mixed_tensors(2, 100, dtype, 6, spread=3)
    shifted = [np.frombuffer(b"x" + array.tobytes(), dtype, offset=1) for array in arrays]
    assert not shifted[0].flags.aligned
    ranges = agreed_ranges(shifted)
    assert (ranges == agreed_ranges(arrays)).all()
    result = add_up(shifted, dtype, ranges)
    assert result.tobytes() == exact_sum(arrays).tobytes()


@pytest.mark.parametrize("is_small", [False, True])
def test_elements_of_infinities_are_told(is_small: bool) -> None:
    arrays = [np.ones(300, np.float32), np.ones(300, np.float32)]
    arrays[0][202], arrays[1][106] = np.inf, np.nan
    ranges = None if is_small else agreed_ranges(arrays)
    layout = ExactLayout(300, 352, dtype="float32", num_workers=2, ranges=ranges)
    sources = [
        ExactSource(Summand(tensor_id=1, flat=array), layout, 352, round_to="float32")
        for array in arrays
    ]
    sums = np.zeros((layout.num_chunks, 352), np.int32)
    for source in sources:
        lanes = np.empty_like(sums)
        NativeSource(source).fill(0, lanes)
        sums += lanes
    source = sources[0]
    source.keep(sums, np.full(layout.num_chunks, 2, np.uint16))
    NativeSource(source).take(0, sums)
    assert source.nonfinite_ranges == [(106, 203)]


def test_mode_of_the_processor_changes_no_sum() -> None:
    """Threads that flush denormals get them as all others do."""
    require_torch()
    torch, _ = load_torch()
    arrays = [np.array([1e-45, 3e-39, 1.0], np.float32) for _ in range(2)]
    results: list[bytes] = []

    def flushing() -> None:
        torch.set_flush_denormal(True)
        ranges = agreed_ranges(arrays)
        results.extend(add_up(arrays, "float32", each).tobytes() for each in (ranges, None))

    thread = threading.Thread(target=flushing)
    thread.start()
    thread.join()
    assert results == [exact_sum(arrays).tobytes()] * 2


@pytest.mark.parametrize("count", [1, 2, 3, 32, 1000, 65535])
def test_lanes_never_saturate(count: int) -> None:
    assert count * ((1 << limb_bits(count)) - 1) < 1 << 31
