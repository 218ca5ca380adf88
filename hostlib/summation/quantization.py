# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Block fixed-point quantisation: one power-of-two exponent per chunk, agreed by all workers.

A chunk is the part of a tensor that one packet carries. Every worker computes the exponent e
that its own chunk needs: the smallest e with max|x| < 2^e. The switch takes the maximum E over
the workers (an int32 allreduce of its own). Then, with n workers,

    s      = min(30 - E - ceil(log2 n), S)      S = 126 for float32 and float16, 1022 for float64
    q      = rint(x * 2^s)                      |q| <= 2^(30 - ceil(log2 n)), so |sum q| <= 2^30
    result = (sum q) * 2^-s

Error bound, per element of a sum: n * 2^-(s+1) from rint (half a step for each worker) plus
the rounding of the result to its dtype (half a unit in the last place). For a mean, both are
divided by the number of contributors. The integer sum does not depend on the order of arrival, so
all workers get bit-identical results.

Defined outcomes at the edges:

- A chunk that is zero on all workers gives exact zeros (positive; the sign of -0.0 is lost).
- Denormals are ordinary values. S keeps 2^s finite: where it limits s (chunks below about 2^-96 in
  float32), the step stays 2^-S, so that the bound above still holds with that s.
- A sum of finite values beyond the dtype's range becomes infinity, as in numpy. In float64, whose
  significand is longer than q, values within half a step of the maximum may round up to it.
  float16 is summed in float32 and rounded once at the end: above 65504 that gives infinity.
  A mean divides first: only that rounding of float64 can make it infinite.
- NaN and infinity in a worker's chunk replace its exponent by NONFINITE_EXPONENT. The maximum
  carries that to all workers, and all do the same: raise, or give NaN for the whole chunk.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..native.library import address, library

NONFINITE_EXPONENT: Final = 1 << 30
"""Exponent lane of a chunk that holds NaN or infinity; larger than any real exponent."""
ZERO_EXPONENT: Final = -(1 << 14)
"""Exponent lane of a chunk of zeros; smaller than any real exponent."""
LANE_BITS: Final = 30
"""Magnitude bits of an int32 sum that quantisation uses."""

_EXPONENTS: Final = {
    np.dtype(np.float16): library.float16_exponents,
    np.dtype(np.float32): library.float32_exponents,
    np.dtype(np.float64): library.float64_exponents,
}

Floats = NDArray[np.floating[Any]]


def compute_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Return the dtype in which a tensor of `dtype` is scaled: float32, or float64 for float64."""
    if np.dtype(dtype) == np.float64:
        return np.dtype(np.float64)
    return np.dtype(np.float32)


def chunk_exponents(chunks: Floats) -> NDArray[np.int32]:
    """Return the exponent that each row of (count, values) needs, shape (count,).

    NONFINITE_EXPONENT marks rows with NaN or infinity, ZERO_EXPONENT rows of zeros.
    """
    count, values = chunks.shape
    exponents = np.empty(count, np.int32)
    rows = np.ascontiguousarray(chunks)
    _EXPONENTS[rows.dtype](address(rows), values, count, address(exponents))
    return exponents


def scales(
    exponents: NDArray[np.int32], num_workers: int, dtype: DTypeLike
) -> tuple[Floats, Floats, NDArray[np.uint8]]:
    """Return 2^s, 2^-s and the header's exponent field of each chunk, from the agreed exponents.

    The factors are in the compute dtype. For chunks that are not finite they are 0 and NaN: workers
    send zeros, and all get NaN.
    """
    count, compute = len(exponents), compute_dtype(dtype)
    forward, backward = np.empty(count, compute), np.empty(count, compute)
    biased = np.empty(count, np.uint8)
    fill = library.float64_factors if compute.itemsize == 8 else library.float32_factors
    headroom = LANE_BITS - (num_workers - 1).bit_length()
    fill(address(exponents), count, headroom, address(forward), address(backward), address(biased))
    return forward, backward, biased


def large_chunks(exponents: NDArray[np.int32]) -> NDArray[np.bool_] | None:
    """Return the chunks whose agreed exponent is above the median; None where there are none.

    With an even number, the median is the lower of the two in the middle. So at least half of the
    chunks are not large, and none is where all are alike.
    """
    middle = (len(exponents) - 1) // 2
    is_large: NDArray[np.bool_] = exponents > np.partition(exponents, middle)[middle]
    return is_large if is_large.any() else None


def error_bound(exponent: int, num_workers: int, dtype: DTypeLike) -> float:
    """Return the largest error of a summed element before the result is rounded to its dtype."""
    _, backward, _ = scales(np.array([exponent], np.int32), num_workers, dtype)
    return num_workers * float(backward[0]) / 2
