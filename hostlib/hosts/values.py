# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Arithmetic on values, exact in any order: partial sums that leave int32 travel as int64.

A switch saturates each partial sum, so whether it reports OVERFLOW may depend on the order of
arrival. Hosts add in an order that depends on algorithm and position, so partial sums must not
matter: a reduction overflows exactly when the true sum is outside int32. If neither switch nor
hosts report OVERFLOW, both give the true sum: the same bytes.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ..native.library import address, library
from ..slots.wire import Operation

SEGMENT_VALUES = 1 << 16
"""Most values of a segment: 256 KiB stay in a core's cache while they are added."""
MIN_SEGMENT_VALUES = 1 << 13
"""Shorter segments cost more time than they gain."""
PIPELINE_DEPTH = 4
MIN_VALUE, MAX_VALUE = -(1 << 31), (1 << 31) - 1

Values = NDArray[np.int32]
"""Native byte order, one dimension."""
Sums = NDArray[np.int32] | NDArray[np.int64]
"""Partial sums: int64 if any of them is outside int32."""


@final
class Scratch:
    """Memory for partial sums on arrival, one segment for each sender; used again and again.

    New memory would cost more than the sums: the system clears each page of it first.
    """

    def __init__(self) -> None:
        self._memories: dict[int, NDArray[np.uint8]] = {}

    def of(self, sender: int) -> NDArray[np.uint8]:
        """Return room for a segment of int64 from the member at this position."""
        if sender not in self._memories:
            self._memories[sender] = np.empty(8 * SEGMENT_VALUES, np.uint8)
        return self._memories[sender]


def cut(start: int, stop: int, grain: int = 1) -> list[tuple[int, int]]:
    """Cut a range of values into segments (first value, number of values), multiples of `grain`.

    Small ranges give PIPELINE_DEPTH segments, unless these would be tiny: while one is passed on,
    the next arrives, and a member that is late for a moment does not delay the others.
    """
    size = -(-(stop - start) // PIPELINE_DEPTH)
    size = min(max(size, MIN_SEGMENT_VALUES), SEGMENT_VALUES) // grain * grain
    return [(first, min(size, stop - first)) for first in range(start, stop, size)]


def combine(operation: Operation, own: Values, received: Sums) -> NDArray[np.int64] | None:
    """Add `received` to `own`, or maximise, in place.

    Returns the sums as int64 if some are outside int32; `own` does not change then.
    """
    if operation is Operation.AGGREGATE_MAX:
        assert received.dtype == np.int32
        np.maximum(own, received, out=own)
        return None
    places = address(own), address(received)
    if received.dtype == np.int32 and library.add_values(*places, len(own)):
        return None
    sums = np.add(own, received, dtype=np.int64)
    if is_narrow(sums):
        own[...] = sums
        return None
    return sums


def is_narrow(sums: NDArray[np.int64]) -> bool:
    """Return whether all sums are int32 numbers."""
    return int(sums.min()) >= MIN_VALUE and int(sums.max()) <= MAX_VALUE


def saturate(sums: NDArray[np.int64], out: Values) -> None:
    """Write the sums to `out`, limited to the range of int32."""
    np.clip(sums, MIN_VALUE, MAX_VALUE, out=sums)
    out[...] = sums


def bytes_of(array: NDArray[Any]) -> memoryview:
    """Return the memory of a contiguous array."""
    return array.data.cast("B")
