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

import functools
import math
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .quantization import ZERO_EXPONENT

Floats = NDArray[np.floating[Any]]

RANGE_LANES: Final = 3
"""Lanes that describe a group: high, -low, and 1 where some value is not finite."""
HIGH, MINUS_LOW, NONFINITE = range(RANGE_LANES)
SPECIAL_LANES: Final = 2
"""Lanes that count +infinity and -infinity."""
FEW_LIMBS: Final = 4
"""With more, it pays to look for limbs that are zero in all values."""
_UPSCALE: Final = {np.dtype(np.float32): 127, np.dtype(np.float64): 1023}
"""Largest power of two of a dtype."""


class FloatFormat(NamedTuple):
    """Which numbers a result may be."""

    significand_bits: int
    lowest_bit: int
    """Exponent of the smallest positive number."""
    high: int
    """All finite numbers are below 2^high."""


FORMATS: Final = {
    "float16": FloatFormat(11, -24, 16),
    "bfloat16": FloatFormat(8, -133, 128),
    "float32": FloatFormat(24, -149, 128),
    "float64": FloatFormat(53, -1074, 1024),
}


def limb_bits(num_workers: int) -> int:
    """Return the magnitude bits of a limb: the sum of so many does not leave int32."""
    return 31 - (num_workers - 1).bit_length()


@dataclass(frozen=True)
class Limbs:
    """How the values of one group lie in lanes."""

    bits: int
    count: int
    """Limbs of a value, without the lanes that count infinities."""
    low: int
    """Exponent of the lowest bit."""
    has_specials: bool

    @property
    def lanes(self) -> int:
        """Lanes of a value."""
        return self.count + SPECIAL_LANES * self.has_specials


@functools.cache
def full_limbs(name: str, num_workers: int) -> Limbs:
    """Return limbs that hold every number of a dtype."""
    form, bits = FORMATS[name], limb_bits(num_workers)
    return Limbs(bits, -(-(form.high - form.lowest_bit) // bits), form.lowest_bit, True)


def group_ranges(groups: Floats) -> NDArray[np.int32]:
    """Return what the workers agree on for each row of (count, values): int32 (count, 3).

    Lanes HIGH, MINUS_LOW and NONFINITE; a row without finite values but 0 has ZERO_EXPONENT twice.
    """
    size = groups.dtype.itemsize
    fraction_bits = np.finfo(groups.dtype).nmant
    words = groups.view(f"u{size}")
    unsigned = words.dtype.type
    magnitudes = words & unsigned((1 << (8 * size - 1)) - 1)
    infinite = unsigned(((1 << (8 * size - 1 - fraction_bits)) - 1) << fraction_bits)
    largest = magnitudes.max(axis=1)
    nonfinite = largest >= infinite
    if nonfinite.any():
        magnitudes[magnitudes >= infinite] = 0
        largest = magnitudes.max(axis=1)
    ones = np.bitwise_or.reduce(magnitudes, axis=1) & unsigned((1 << fraction_bits) - 1)
    magnitudes -= unsigned(1)  # zero becomes the largest number
    smallest = magnitudes.min(axis=1) + unsigned(1)
    bias = (1 << (8 * size - 2 - fraction_bits)) - 1
    # Denormals have the exponent field 0, and the scale of field 1.
    top = np.maximum((largest >> unsigned(fraction_bits)).astype(np.int64), 1)
    bottom = np.maximum((smallest >> unsigned(fraction_bits)).astype(np.int64), 1)
    fraction = ones.astype(np.int64)
    zeros = np.frexp((fraction & -fraction).astype(np.float64))[1] - 1
    zeros = np.where(fraction == 0, fraction_bits, zeros)
    low = bottom - bias - fraction_bits + zeros
    ranges = np.stack([top - bias + 1, -low, nonfinite], axis=1).astype(np.int32)
    ranges[largest == 0, :NONFINITE] = ZERO_EXPONENT
    return ranges


def split(values: Floats, limbs: Limbs, lanes: NDArray[np.int32]) -> None:
    """Write the limbs of (rows, values) to `lanes` (rows, limbs.lanes * values), limb by limb.

    `values` is used up, and in float32 or float64. No value may leave the range of the limbs.
    """
    width = values.shape[1]
    if limbs.has_specials:
        _split_specials(values, lanes[:, limbs.count * width :])
    scaled = np.empty_like(values)
    highest = limbs.count
    if limbs.count > FEW_LIMBS:  # most of them are zeros: beyond the largest value, or its bits
        largest = max(float(values.max()), -float(values.min()))
        highest = min(highest, max(1, -(-(math.frexp(largest)[1] - limbs.low) // limbs.bits)))
        lanes[:, : limbs.count * width] = 0
    for i in range(highest - 1, -1, -1):
        if limbs.count > FEW_LIMBS and not values.any():
            break
        unit = limbs.low + i * limbs.bits
        _scale_up(values, -unit, scaled)
        part = lanes[:, i * width : (i + 1) * width]
        if i:
            # Towards zero: what is left has the same sign, and is less than the limb's unit.
            np.trunc(scaled, out=scaled)
            np.copyto(part, scaled, casting="unsafe")
            scaled *= np.ldexp(values.dtype.type(1), unit)
            values -= scaled
        else:
            np.copyto(part, scaled, casting="unsafe")


def _scale_up(values: Floats, shift: int, out: Floats) -> None:
    """Multiply by 2^shift, whose bits below the last limb are lost only where they are 0."""
    one, most = values.dtype.type(1), _UPSCALE[values.dtype]
    np.multiply(values, np.ldexp(one, min(shift, most)), out=out)
    if shift > most:
        out *= np.ldexp(one, shift - most)


def _split_specials(values: Floats, lanes: NDArray[np.int32]) -> None:
    """Count infinities and NaN in lanes of their own, and replace them by 0."""
    lanes[...] = 0
    is_special = ~np.isfinite(values)
    if is_special.any():
        width = values.shape[1]
        lanes[:, :width] = is_special & ~(values < 0)
        lanes[:, width:] = is_special & ~(values > 0)
        values[is_special] = 0
