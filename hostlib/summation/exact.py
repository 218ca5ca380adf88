# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Exact sums of floats: wide fixed-point numbers, whose limbs are lanes of their own.

A group is a run of consecutive values of a tensor. The workers agree on the highest and the lowest
bit that any value of the group has on any of them, 2^high > |x| and x a multiple of 2^low (maxima,
as an int32 allreduce of its own). With n workers, each value then is a sum of limbs of w bits,

    w = 31 - ceil(log2 n)         x = sum of limb[i] * 2^(low + i * w),   |limb[i]| < 2^w

all with the sign of x, so that no sum of n limbs leaves int32. Switches and hosts add limbs as any
other integers. The sums of a value's limbs hold the true sum, which is rounded once:

- A sum is the true sum, rounded half to even to the dtype. Its error is at most half a unit in the
  last place. A mean is the true sum divided by the contributors, rounded once.
- Denormals are ordinary values. A sum of zero is +0.0; the sign of -0.0 is lost.
- A sum beyond the dtype's range is infinite, as in IEEE 754. A mean never leaves the range.
- NaN and infinity cost two more lanes, which count +infinity and -infinity; NaN counts as both.
  The element becomes what IEEE 754 says: inf + x = inf, inf - inf = NaN, NaN + x = NaN. Its
  neighbours are exact.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..native.library import address, library
from ..native.structures import FloatFormatStruct, LimbsStruct

RANGE_LANES: Final = 3
"""Lanes that describe a group: high, -low, and 1 where some value is not finite."""
SPECIAL_LANES: Final = 2
"""Lanes that count +infinity and -infinity."""


class FloatFormat(NamedTuple):
    """Which numbers a result may be, and how they lie in memory: `float_format_t` of limbs.h."""

    num_bytes: int
    unused_bits: int
    """The lowest ones of these bytes, which are 0."""
    significand_bits: int
    lowest_bit: int
    """Exponent of the smallest positive number."""
    high: int
    """All finite numbers are below 2^high."""


FORMATS: Final = {
    "float16": FloatFormat(2, 0, 11, -24, 16),
    "bfloat16": FloatFormat(4, 16, 8, -133, 128),
    "float32": FloatFormat(4, 0, 24, -149, 128),
    "float64": FloatFormat(8, 0, 53, -1074, 1024),
}
"""bfloat16 is the upper half of float32."""


FORMAT_STRUCTS: Final = {name: FloatFormatStruct(*form) for name, form in FORMATS.items()}
"""They must not be changed."""


def limb_bits(num_workers: int) -> int:
    """Return the magnitude bits of a limb: the sum of so many does not leave int32."""
    return 31 - (num_workers - 1).bit_length()


@functools.cache
def full_limbs(name: str, num_workers: int) -> LimbsStruct:
    """Return limbs that hold every number of a dtype; they must not be changed."""
    form, bits = FORMATS[name], limb_bits(num_workers)
    return LimbsStruct(bits, -(-(form.high - form.lowest_bit) // bits), form.lowest_bit, True)


def full_lanes(name: str, num_workers: int) -> int:
    """Return how many lanes a value takes with limbs for every number of a dtype."""
    return full_limbs(name, num_workers).count + SPECIAL_LANES


def group_ranges(groups: NDArray[np.floating[Any]]) -> NDArray[np.int32]:
    """Return what the workers agree on for each row of (count, values): int32 (count, 3).

    Lanes high, -low and whether some are not finite; a row without finite values but 0 has
    ZERO_EXPONENT twice.
    """
    count, values = groups.shape
    rows = np.ascontiguousarray(groups)
    ranges = np.empty((count, RANGE_LANES), np.int32)
    form = ctypes.byref(FORMAT_STRUCTS[rows.dtype.name])
    library.limbs_ranges(address(rows), form, values, count, address(ranges))
    return ranges
