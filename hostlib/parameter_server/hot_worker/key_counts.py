# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How often a worker has pushed to which keys of a table, for the server that chooses hot keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray

from ...hot_rows import BatchSampler, FrequencySketch


class CountsKeys(Protocol):
    """What tells a server which keys to choose."""

    def count(self, keys: NDArray[np.int64], *, may_skip: bool = False) -> None:
        """Learn of the keys of a push; a sample leaves it out if it may."""
        ...

    def take(self) -> bytes | None:
        """Return a packed FrequencySketch since the last call; None if there is none to send."""
        ...


MakeCounts = Callable[[int, float, int], CountsKeys]
"""Makes the counts of a table: capacity of the sketches, share of sampled pushes, seed."""


@final
class KeyCounts:
    """Counts the keys of sampled batches, until they are taken. Negative keys are never hot."""

    def __init__(self, capacity: int, probability: float, seed: int) -> None:
        self._capacity = capacity
        self._sampler = BatchSampler(probability, seed)
        self._sketch = FrequencySketch(capacity)
        self._has_counted = False

    def count(self, keys: NDArray[np.int64], *, may_skip: bool = False) -> None:
        """Count the keys of a push, each once."""
        if self._sampler.takes_next() and not may_skip:
            own = np.unique(keys)
            own = own[np.searchsorted(own, 0) :]
            self._sketch.update(own)
            self._has_counted |= own.size > 0

    def take(self) -> bytes | None:
        """Return what was counted since the last call, as bytes; None if nothing was."""
        if not self._has_counted:
            return None
        packed = self._sketch.pack()
        self._sketch = FrequencySketch(self._capacity)
        self._has_counted = False
        return packed
