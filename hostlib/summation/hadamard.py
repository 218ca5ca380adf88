# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A randomised Hadamard transform, which spreads each number of a gradient over many packets.

Where loss falls on one part of a tensor, as a burst does, that part is gone. Of a transformed
tensor, lost packets take a little of every number instead. The transform
is orthonormal and linear: the sum over workers of what they transformed, transformed back, is the
sum of their tensors. It makes the expected error of loss that falls evenly neither smaller nor
larger. (Facts: OptiReduce, NSDI'25; `benchmarks/allreduce/dispersal.py` measures both.)
"""

from __future__ import annotations

from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from ..errors import ConfigurationError
from ..native.library import address, library

MOST_LOG2_SPREAD: Final = 12
DISTANCE: Final = 256
_SCRATCH: Final = 16 << MOST_LOG2_SPREAD
"""These are as in hadamard.h."""
_MIX: Final = 0x9E3779B97F4A7C15
_U64: Final = (1 << 64) - 1


@final
class RandomizedHadamard:
    """Transforms float32 arrays of any shape and length, in place.

    All workers need the same `seed` and `log2_spread`, the same number of the round, and arrays of
    one length. Each number is spread over up to 2^log2_spread places of the array that lie equally
    far apart, at least DISTANCE numbers, so that no two of them are in one packet. Of n numbers,
    those that are left of a division by a power of two, fewer than n / DISTANCE, are spread among
    themselves; fewer than 2 * DISTANCE numbers are spread over nothing.

    A transform there and back changes an array by about 2e-7 of its norm. Any thread may call it.
    """

    def __init__(self, seed: int = 0, *, log2_spread: int = MOST_LOG2_SPREAD) -> None:
        """Raises ConfigurationError for a `log2_spread` beyond 1 to 12."""
        if not 1 <= log2_spread <= MOST_LOG2_SPREAD:
            raise ConfigurationError(
                f"a Hadamard transform over 2^{log2_spread} places; log2_spread is 1 to"
                f" {MOST_LOG2_SPREAD}"
            )
        self.seed: Final = seed
        self.log2_spread: Final = log2_spread

    def forward(self, array: NDArray[Any], round_number: int) -> None:
        """Transform an array before it is summed. Raises ConfigurationError unless it is float32,
        contiguous and writable."""
        self._transform(library.hadamard_forward, array, round_number)

    def inverse(self, array: NDArray[Any], round_number: int) -> None:
        """Transform a sum or mean back; the same number as of `forward`, and the same errors."""
        self._transform(library.hadamard_inverse, array, round_number)

    def _transform(self, function: Any, array: NDArray[Any], round_number: int) -> None:
        flags = array.flags
        if array.dtype != np.float32 or not (flags.c_contiguous and flags.writeable):
            raise ConfigurationError(
                f"a Hadamard transform of {array.dtype},"
                f" {'' if flags.c_contiguous else 'not '}contiguous,"
                f" {'' if flags.writeable else 'not '}writable: it is in place, of contiguous"
                " float32; copy the array first"
            )
        # Signs of one round say nothing of those of another.
        seed = (self.seed ^ (round_number + 1) * _MIX) & _U64
        scratch = np.empty(_SCRATCH, np.float32)
        function(address(array), array.size, self.log2_spread, seed, address(scratch))
