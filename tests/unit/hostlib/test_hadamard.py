# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from switchfold.hostlib import ConfigurationError
from switchfold.hostlib.summation.hadamard import DISTANCE, RandomizedHadamard

Floats = NDArray[np.float32]
ROUND_TRIP = 1e-6
"""Of an array's norm: 2 * 12 sums and differences, rounded to float32 each."""


def matrix_of(size: int) -> NDArray[np.float64]:
    """Return the orthonormal Walsh-Hadamard matrix, by its recursion."""
    found = np.ones((1, 1))
    while len(found) < size:
        found = np.block([[found, found], [found, -found]])
    return found / np.sqrt(size)


def expected(numbers: Floats, signs: Floats, log2_spread: int) -> NDArray[np.float64]:
    """Return the transform by whole matrices: rows of the greatest power of two, then the rest."""
    left = (numbers * signs).astype(np.float64)
    parts: list[NDArray[np.float64]] = []
    while len(left) >= 2 * DISTANCE:
        rows = 2 ** min(log2_spread, (len(left) // DISTANCE).bit_length() - 1)
        columns = len(left) // rows
        head, left = left[: rows * columns], left[rows * columns :]
        parts.append((matrix_of(rows) @ head.reshape(rows, columns)).ravel())
    return np.concatenate([*parts, left])


def signs_of(length: int, seed: int, round_number: int) -> Floats:
    """Return the signs: the inverse flips them last, and keeps zeros."""
    zeros = np.zeros(length, np.float32)
    RandomizedHadamard(seed).inverse(zeros, round_number)
    return np.where(np.signbit(zeros), np.float32(-1), np.float32(1))


def transformed(array: Floats, round_number: int = 0, **options: Any) -> Floats:
    copy = array.copy()
    RandomizedHadamard(**options).forward(copy, round_number)
    return copy


LENGTHS = [1, 255, 256, 511, 512, 513, 1023, 1024, 5000, 16384, 70_001]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("log2_spread", [1, 3, 12])
def test_transform_is_that_of_whole_matrices(length: int, log2_spread: int) -> None:
    rng = np.random.default_rng(length)
    array = rng.standard_normal(length, dtype=np.float32)
    found = transformed(array, 7, seed=5, log2_spread=log2_spread)
    truth = expected(array, signs_of(length, 5, 7), log2_spread)
    np.testing.assert_allclose(found, truth, rtol=0, atol=2e-6 * np.abs(array).max() * 8)


@given(
    length=st.integers(1, 20_000),
    seed=st.integers(0, 2**64 - 1),
    round_number=st.integers(0, 2**40),
    log2_spread=st.integers(1, 12),
)
@settings(max_examples=50)
def test_inverse_restores_any_length(
    length: int, seed: int, round_number: int, log2_spread: int
) -> None:
    array = np.random.default_rng(length).standard_normal(length, dtype=np.float32)
    transform = RandomizedHadamard(seed, log2_spread=log2_spread)
    copy = array.copy()
    transform.forward(copy, round_number)
    assert abs(np.linalg.norm(copy) / np.linalg.norm(array) - 1) < ROUND_TRIP
    transform.inverse(copy, round_number)
    assert np.linalg.norm(copy - array) < ROUND_TRIP * np.linalg.norm(array)


def test_sum_of_transforms_is_the_transform_of_the_sum() -> None:
    rng = np.random.default_rng(3)
    arrays = rng.integers(-1000, 1000, (4, 10_000)).astype(np.float32)
    total = sum(transformed(each, 2, seed=9) for each in arrays)
    assert isinstance(total, np.ndarray)
    RandomizedHadamard(9).inverse(total, 2)
    np.testing.assert_allclose(total, arrays.sum(0), rtol=0, atol=0.01)


def test_loss_of_the_hot_end_is_spread_over_the_array() -> None:
    rng = np.random.default_rng(1)
    array = rng.standard_normal(16_384, dtype=np.float32)
    array[-1638:] *= 30
    packets = 7  # of 64, a tenth
    plain = array.copy()
    plain[-packets * DISTANCE :] = 0
    spread = transformed(array)
    spread[-packets * DISTANCE :] = 0
    RandomizedHadamard().inverse(spread, 0)

    def error(found: Floats) -> float:
        return float(np.sum((found - array) ** 2) / np.sum(array**2))

    assert error(plain) > 0.9
    assert abs(error(spread) - packets / 64) < 0.02


def test_signs_are_of_seed_and_round() -> None:
    length = 100_000
    first = signs_of(length, 1, 1)
    assert (first == signs_of(length, 1, 1)).all()
    # Of fair and independent coins, the share is further than 0.01 from half once in 3e9 times.
    assert abs((first > 0).mean() - 0.5) < 0.01
    for other in (signs_of(length, 1, 2), signs_of(length, 2, 1), np.roll(first, 64)):
        assert abs((first == other).mean() - 0.5) < 0.01


def test_one_number_leaves_no_two_traces_in_a_packet() -> None:
    array = np.zeros(40_000, np.float32)
    array[12_345] = 1
    places = np.flatnonzero(transformed(array))
    assert len(places) == 128  # 40,000 / 256, down to a power of two
    assert np.diff(places).min() >= DISTANCE


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(1000),
        np.zeros(1000, np.float16),
        np.zeros((1000, 2), np.float32)[:, 0],
        np.frombuffer(bytes(4000), np.float32),
    ],
    ids=["float64", "float16", "strided", "read-only"],
)
def test_other_arrays_are_refused(array: NDArray[Any]) -> None:
    transform = RandomizedHadamard()
    for function in (transform.forward, transform.inverse):
        with pytest.raises(ConfigurationError, match="contiguous float32"):
            function(array, 0)


@pytest.mark.parametrize("log2_spread", [-1, 0, 13])
def test_spread_has_bounds(log2_spread: int) -> None:
    with pytest.raises(ConfigurationError, match="1 to 12"):
        RandomizedHadamard(log2_spread=log2_spread)
