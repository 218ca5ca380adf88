# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The values of a tensor, part by part."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from ..summation.chunks import BLOCK_CHUNKS, ChunkSource


@final
class SourceParts:
    """Quantises the values of a tensor, and turns sums into results, part by part.

    Used in the peer thread, once for each range; ranges are multiples of `grain`. So the network
    does not wait for the arithmetic, and a part is still in the cache when it is sent.
    """

    def __init__(self, source: ChunkSource) -> None:
        self._source = source
        self._rows = source.results.view(np.int32)
        self.values: NDArray[np.int32] = self._rows.reshape(-1)
        self.grain: int = self._rows.shape[1]
        """Values that belong together: those of a chunk."""

    def prepare(self, first: int, count: int) -> None:
        """Write the own values of a range."""
        for block in self._blocks(first, count):
            self._source.fill(block.start, self._rows[block])

    def settle(self, first: int, count: int) -> None:
        """Read the sums of a range, and leave them as they are."""
        with np.errstate(over="ignore", under="ignore"):
            for block in self._blocks(first, count):
                self._source.take(block.start, self._rows[block])

    def _blocks(self, first: int, count: int) -> list[slice]:
        first_row, end_row = first // self.grain, (first + count) // self.grain
        return [
            slice(row, min(row + BLOCK_CHUNKS, end_row))
            for row in range(first_row, end_row, BLOCK_CHUNKS)
        ]
