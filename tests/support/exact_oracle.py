# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What exact sums must be, by rational numbers; and tensors that other sums get wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchfold.hostlib.summation.exact import FORMATS, FloatFormat

IDIOMS: list[tuple[str, list[float]]] = [
    ("float64", [0.123456789012, 1e9 + 1]),
    ("float32", [0.1234567, 50_000.0]),
    ("float32", [1e-9, 100.0]),
]
"""A loss and a count in one tensor: dtype and values."""


def nearest(true: Fraction, form: FloatFormat) -> float:
    """Return the number of a format next to the true one, half to even."""
    if not true:
        return 0.0
    sign = 1 if true > 0 else -1
    lead = abs(true.numerator).bit_length() - true.denominator.bit_length()
    if abs(true) < Fraction(2) ** lead:
        lead -= 1
    unit = Fraction(2) ** max(lead + 1 - form.significand_bits, form.lowest_bit)
    rounded = round(true / unit) * unit
    if abs(rounded) >= Fraction(2) ** form.high:
        return sign * math.inf
    return math.copysign(float(rounded), sign)


def exact_sum(
    arrays: Sequence[NDArray[Any]], *, is_mean: bool = False, name: str = ""
) -> NDArray[Any]:
    """Return the sums of flat arrays, rounded once to their dtype or to the format of a name."""
    form = FORMATS[name or arrays[0].dtype.name]
    divisor = len(arrays) if is_mean else 1
    columns = zip(*(array.tolist() for array in arrays), strict=True)
    sums = [nearest(sum(map(Fraction, row), Fraction(0)) / divisor, form) for row in columns]
    return np.array(sums, arrays[0].dtype)


def mixed_tensors(
    num_workers: int, size: int, dtype: str, seed: int, *, spread: int
) -> list[NDArray[Any]]:
    """Return values over twice `spread` powers of two; some sums nearly or fully cancel.

    If the spread is large, some values are denormal.
    """
    rng = np.random.default_rng(seed)
    info = np.finfo(dtype)
    arrays: list[NDArray[Any]] = []
    for _ in range(num_workers):
        powers = rng.integers(-spread, spread + 1, size)
        arrays.append(np.ldexp(rng.standard_normal(size), powers).astype(dtype))
    if num_workers > 1:
        arrays[-1][::3] = -arrays[0][::3]
    if spread >= info.maxexp // 4:
        arrays[0][::7] = rng.integers(1, 50, len(arrays[0][::7])) * info.smallest_subnormal
    return arrays
