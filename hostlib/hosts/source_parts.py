# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The values of a tensor, part by part."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from ..summation.chunks import ChunkSource
from ..summation.native_source import NativeSource


@final
class SourceParts:
    """Quantises the values of a tensor, and turns sums into results, part by part.

    Used in the peer thread, once for each range; ranges are multiples of `grain`. So the network
    does not wait for the arithmetic, and a part is still in the cache when it is sent.
    """

    def __init__(self, source: ChunkSource) -> None:
        self._native = NativeSource(source)
        self._rows = source.results.view(np.int32)
        self.values: NDArray[np.int32] = self._rows.reshape(-1)
        self.grain: int = self._rows.shape[1]
        """Values that belong together: those of a chunk."""

    def prepare(self, first: int, count: int) -> None:
        """Write the own values of a range."""
        self._native.fill(first // self.grain, self._part(first, count))

    def settle(self, first: int, count: int) -> None:
        """Read the sums of a range, and leave them as they are."""
        self._native.take(first // self.grain, self._part(first, count))

    def _part(self, first: int, count: int) -> NDArray[np.int32]:
        return self._rows[first // self.grain : (first + count) // self.grain]
