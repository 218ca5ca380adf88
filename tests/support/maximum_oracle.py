# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What maxima and minima must be, to the bit: numpy's, with IEEE 754-2019's zeros and one NaN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

SPECIAL_WORDS: Final = (
    *(0x00000000, 0x00000001, 0x00000002, 0x007FFFFF, 0x00800000),  # zero, denormals, normal
    *(0x3F800000, 0x3F800001, 0x7F7FFFFF, 0x7F800000),  # 1, the next, the largest, infinity
    *(0x7F800001, 0x7FBFFFFF, 0x7FC00000, 0x7FC00123, 0x7FFFFFFF),  # NaN, signalling or quiet
)
"""Bits of float32 numbers without a sign."""


def special_floats() -> NDArray[np.float32]:
    """Return float32 numbers of all kinds, each with both signs."""
    words = np.array(SPECIAL_WORDS, np.uint32)
    return np.concatenate([words, words | np.uint32(1 << 31)]).view(np.float32)


def special_integers() -> NDArray[np.int32]:
    """Return int32 numbers at the ends of their range, and around 0."""
    return np.array([-(2**31), -(2**31) + 1, -2, -1, 0, 1, 2, 2**31 - 2, 2**31 - 1], np.int32)


def all_pairs(numbers: NDArray[Any]) -> list[NDArray[Any]]:
    """Return two arrays that have all pairs of numbers."""
    return [np.repeat(numbers, len(numbers)), np.tile(numbers, len(numbers))]


def random_floats(size: int, seed: int) -> NDArray[np.float32]:
    """Return float32 numbers of random bits; one in 256 is not finite."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 1 << 32, size, np.uint32).view(np.float32)


def largest(arrays: Sequence[NDArray[Any]], operation: str) -> NDArray[Any]:
    """Return the maxima ("max") or minima ("min") of arrays of float32 or int32."""
    choose = np.maximum if operation == "max" else np.minimum
    with np.errstate(invalid="ignore"):  # a signalling NaN
        result: NDArray[Any] = choose.reduce(np.stack(arrays))
    if result.dtype.kind != "f":
        return result
    # Of equal zeros, numpy takes any; the sign of a NaN, and its other bits, are the input's.
    signs = [np.signbit(array) for array in arrays]
    is_negative = np.logical_and.reduce(signs) if operation == "max" else np.any(signs, axis=0)
    words = result.view(np.uint32)
    words[result == 0] = np.where(is_negative, 0x80000000, 0)[result == 0]
    words[np.isnan(result)] = 0x7FC00000
    return result
