# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sums of limbs back to floats, rounded once, half to even.

Where few limbs are in use, the processor's own rounding does it: an integer of 64 bits becomes a
float with one rounding. Bits below such an integer only count as zero or not; they are OR-ed into
its lowest bit, which is beyond what is kept. All else goes digit by digit.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .exact import FEW_LIMBS, FORMATS, FloatFormat, Floats, Limbs

Integers = NDArray[np.int64]
Sums = NDArray[np.int32]
"""Of limbs, (limbs, rows, values), from the lowest."""

_WINDOW_BITS: Final = 62
"""Leading bits of a magnitude that rounding looks at; those below only as zero or not."""
_TAIL_BITS: Final = 16
"""Bits below these that a division needs: as many as a number of workers has."""
_DOUBLE_BITS: Final = FORMATS["float64"].significand_bits
_BFLOAT_CUT: Final = _DOUBLE_BITS - FORMATS["bfloat16"].significand_bits


def recombine(
    lanes: NDArray[np.int32],
    limbs: Limbs,
    form: FloatFormat,
    dtype: DTypeLike,
    divisors: NDArray[np.uint16] | None = None,
) -> Floats:
    """Return the sums of values in `dtype`, from sums of limbs (rows, limbs.lanes * values).

    Each is rounded once to `form`. With `divisors` (rows, 1), each is divided by its row's first.
    The caller tells numpy to ignore overflow, which gives infinity.
    """
    rows, width = lanes.shape[0], lanes.shape[1] // limbs.lanes
    parts = lanes.reshape(rows, limbs.lanes, width).transpose(1, 0, 2)
    sums, bits, low = parts[: limbs.count], limbs.bits, limbs.low
    if limbs.count > FEW_LIMBS:
        used = np.flatnonzero(sums.any(axis=(1, 2)))
        first, last = (int(used[0]), int(used[-1])) if len(used) else (0, 0)
        sums, low = sums[first : last + 1], low + first * bits
    if divisors is not None:
        # Division by a power of two is exact, but for bits below those of the format.
        divisor = int(divisors[0, 0])
        shift = max(0, divisor.bit_length() - 1)
        is_shift = divisor == 1 << shift and low - shift >= form.lowest_bit
        if is_shift and (divisors == divisor).all():
            divisors, low = None, low - shift
    values = None
    if divisors is None:
        values = _quickly_rounded(sums, bits, low, form, np.dtype(dtype))
    if values is None:
        values = _rounded(sums, bits, low, form, divisors).astype(dtype)
    if limbs.has_specials:
        _restore_specials(values, parts[limbs.count :])
    return values


def _restore_specials(values: Floats, counts: NDArray[np.int32]) -> None:
    above, below = counts > 0
    values[above] = np.inf
    values[below] = -np.inf
    values[above & below] = np.nan


def _quickly_rounded(
    sums: Sums, bits: int, low: int, form: FloatFormat, dtype: np.dtype[Any]
) -> Floats | None:
    """Return rounded sums * 2^low where 64 bits do; None where they do not.

    Scaling is exact: a result that is denormal is a multiple of the smallest number, with less bits
    than a significand has.
    """
    is_native = form in (FORMATS["float32"], FORMATS["float64"])
    if len(sums) <= 2:
        total = _pair(sums, bits)
        if is_native:
            values = total.astype(dtype)
            values *= np.ldexp(dtype.type(1), low)
            return values
        return _narrowed(total, low, form, dtype)
    if len(sums) == 3 and form == FORMATS["float64"]:
        # Both terms are exact floats, so that their one addition rounds the sum correctly.
        high = _pair(sums[1:], bits)
        leading = high.astype(np.float64)
        high -= leading.astype(np.int64)
        high <<= bits
        high += sums[0]
        leading *= np.ldexp(1.0, bits)
        leading += high
        leading *= np.ldexp(1.0, low)
        return leading
    if len(sums) <= 4 and is_native:
        return _rounded_pairs(_pair(sums[2:], bits), _pair(sums[:2], bits), 2 * bits, low, dtype)
    return None


def _pair(sums: Sums, bits: int) -> Integers:
    """Return the number that one or two limbs are."""
    total = sums[0].astype(np.int64)
    if len(sums) == 2:
        total += sums[1].astype(np.int64) << bits
    return total


def _narrowed(total: Integers, low: int, form: FloatFormat, dtype: np.dtype[Any]) -> Floats | None:
    """Return integers * 2^low in a format with fewer bits than a processor computes with."""
    lost = total & ((1 << _WINDOW_BITS - _DOUBLE_BITS) - 1)
    is_large = np.abs(total) >> _DOUBLE_BITS != 0
    if is_large.any():
        odd = (total ^ lost) | ((lost != 0).astype(np.int64) << _WINDOW_BITS - _DOUBLE_BITS)
        total = np.where(is_large, odd, total)
    values = total * np.ldexp(1.0, low)  # exact, or as good to any narrower format
    if form == FORMATS["float16"]:
        return values.astype(dtype)
    if form != FORMATS["bfloat16"] or low < -126:  # where results may be denormal
        return None
    words = values.view(np.int64)
    words += ((words >> _BFLOAT_CUT) & 1) + ((1 << _BFLOAT_CUT - 1) - 1)
    words &= -1 << _BFLOAT_CUT
    return values.astype(dtype)


def _rounded_pairs(
    high: Integers, below: Integers, bits: int, low: int, dtype: np.dtype[Any]
) -> Floats:
    """Return (high * 2^bits + below) * 2^low, each rounded once to float32 or float64."""
    high += below >> bits
    below &= (1 << bits) - 1
    shift = np.frexp(np.abs(high).astype(np.float64))[1].astype(np.int64)
    shift += bits - (_WINDOW_BITS - 1)
    np.clip(shift, 0, bits, out=shift)
    # What is below 2^bits fits as it is, and may have too few bits to lose the last one.
    shift[(high == 0) | (high == -1)] = 0
    window = (high << (bits - shift)) | (below >> shift)
    window |= below & ((np.int64(1) << shift) - 1) != 0
    return np.ldexp(window.astype(dtype), (shift + low).astype(np.int32))


class _Magnitude(NamedTuple):
    """Absolute values (window + part of 1) * 2^exponent; the window's highest bit is bit 61."""

    window: Integers
    tail: Integers
    """The next 16 bits."""
    is_inexact: NDArray[np.bool_]
    """Whether any bit below these is 1."""
    exponent: Integers


def _rounded(
    sums: Sums,
    bits: int,
    low: int,
    form: FloatFormat,
    divisors: NDArray[np.uint16] | None,
) -> NDArray[np.float64]:
    """Return sums of limbs rounded once to a format, by integers alone."""
    digits, is_negative = _digits(sums, bits)
    number = _leading_bits(digits, bits, low)
    del digits
    if divisors is None:
        number = number._replace(is_inexact=number.is_inexact | (number.tail != 0))
    else:
        number = _divided(number, divisors.astype(np.int64))
    values = _round_half_even(number, form)
    return np.where(is_negative, -values, values)


def _digits(sums: Sums, bits: int) -> tuple[Integers, NDArray[np.bool_]]:
    """Return digits of absolute values, each below 2^bits but the last; and whose sign is minus."""
    carry = np.zeros(sums.shape[1:], np.int64)
    for part in sums:
        carry = (carry + part) >> bits
    is_negative = carry < 0
    digits = np.empty((len(sums) + 1, *sums.shape[1:]), np.int64)
    carry[...] = 0
    for place, part in enumerate(sums):
        digit = digits[place]
        np.copyto(digit, part)
        np.negative(digit, out=digit, where=is_negative)
        digit += carry
        np.right_shift(digit, bits, out=carry)
        digit &= (1 << bits) - 1
    digits[-1] = carry
    return digits, is_negative


def _leading_bits(digits: Integers, bits: int, low: int) -> _Magnitude:
    """Return the leading bits of numbers given by their digits; 0 has the window 0."""
    is_set = digits != 0
    lead = len(digits) - 1 - is_set[::-1].argmax(axis=0)
    lowest = is_set.argmax(axis=0)
    window = np.take_along_axis(digits, lead[None], axis=0)[0]
    room = _WINDOW_BITS - np.frexp(window.astype(np.float64))[1].astype(np.int64)
    exponent = low + lead * bits - room
    tail = np.zeros_like(window)
    tail_room = np.full_like(window, _TAIL_BITS)
    is_inexact = np.zeros(window.shape, np.bool_)
    steps = -(-(_WINDOW_BITS + _TAIL_BITS) // bits)
    for step in range(1, steps + 1):
        place = lead - step
        digit = np.take_along_axis(digits, np.maximum(place, 0)[None], axis=0)[0]
        digit[place < 0] = 0
        left = np.full_like(digit, bits)
        _take_bits(digit, left, window, room)
        _take_bits(digit, left, tail, tail_room)
        is_inexact |= digit != 0
    is_inexact |= lowest < lead - steps
    return _Magnitude(window, tail, is_inexact, exponent)


def _take_bits(digit: Integers, left: Integers, taker: Integers, room: Integers) -> None:
    """Move the leading bits of digits, of which `left` are left, to the end of `taker`."""
    taken = np.minimum(room, left)
    left -= taken
    room -= taken
    taker <<= taken
    taker |= digit >> left
    digit &= (np.int64(1) << left) - 1


def _divided(number: _Magnitude, divisors: Integers) -> _Magnitude:
    """Divide by integers of at most 16 bits; bits that are lost only show in `is_inexact`."""
    more = np.frexp(divisors.astype(np.float64))[1].astype(np.int64) - 1
    window, rest = np.divmod(number.window, divisors)
    spare = _TAIL_BITS - more
    rest = (rest << more) | (number.tail >> spare)
    following, rest = np.divmod(rest, divisors)
    window = (window << more) | following
    is_inexact = number.is_inexact | (rest != 0)
    is_inexact |= number.tail & ((np.int64(1) << spare) - 1) != 0
    # The quotient has 61 or 62 bits.
    up = ((window >> _WINDOW_BITS - 1) == 0) & (window != 0)
    exponent = number.exponent - more
    return _Magnitude(np.where(up, window << 1, window), number.tail, is_inexact, exponent - up)


def _round_half_even(number: _Magnitude, form: FloatFormat) -> NDArray[np.float64]:
    """Return the nearest numbers of a format, infinite beyond its range."""
    target = np.maximum(
        number.exponent + _WINDOW_BITS - form.significand_bits, np.int64(form.lowest_bit)
    )
    lost = np.minimum(target - number.exponent, _WINDOW_BITS + 1)
    half = np.int64(1) << (lost - 1)
    rest = number.window & ((np.int64(1) << lost) - 1)
    kept = number.window >> lost
    is_up = (rest > half) | ((rest == half) & (number.is_inexact | (kept & 1 != 0)))
    kept += is_up
    return np.ldexp(kept.astype(np.float64), target.astype(np.int32))
