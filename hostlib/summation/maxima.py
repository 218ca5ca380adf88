# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Maxima and minima of tensors: lanes keep the largest value, and values are in the numbers' order.

`hostlib/native/values/ordered.h` maps numbers to int32 values and back, bit for bit; for minima, in
reverse order. Zeros and NaN are those of `maximum` and `minimum` of IEEE 754-2019: -0 is below +0,
and one worker's NaN makes the element NaN, whose bits are 0x7fc00000 whatever those of the input.
Infinities and denormals are numbers like all others.
"""

from __future__ import annotations

from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from .chunks import IntegerSource, Summand, ValueKind, WireValues

MAXIMA: Final = ("max", "min")
"""Operations whose result is an element of one of the workers' arrays."""
MAXIMUM_DTYPES: Final = ("float32", "int32")
"""Dtypes whose numbers are as many as a lane has values."""
_KINDS: Final = {
    ("int32", "max"): ValueKind.INT32,
    ("int32", "min"): ValueKind.INT32_REVERSED,
    ("float32", "max"): ValueKind.FLOAT32_ORDERED,
    ("float32", "min"): ValueKind.FLOAT32_REVERSED,
}


@final
class MaximumSource(IntegerSource):
    """A tensor of int32 or float32 of which lanes keep the maximum, or the minimum."""

    is_maximum = True

    def __init__(self, summand: Summand, operation: str, values_per_packet: int) -> None:
        super().__init__(summand, values_per_packet)
        self.output: NDArray[Any] = self.output.view(summand.flat.dtype)
        self._kind = _KINDS[summand.flat.dtype.name, operation]

    def wire_values(self) -> WireValues:
        """Return the tensor, its results, and how its numbers become values."""
        return WireValues(
            kind=self._kind,
            data=self._flat,
            output=self.output,
            results=self.results if self._retains else None,
        )


def nan_ranges(flat: NDArray[Any]) -> list[tuple[int, int]]:
    """Return the element ranges (start, end) that are NaN; `flat`: any dtype, one dimension."""
    if flat.dtype.kind != "f":
        return []
    edges = np.flatnonzero(np.diff(np.isnan(flat), prepend=False, append=False))
    return [(start, end) for start, end in edges.reshape(-1, 2).tolist()]
