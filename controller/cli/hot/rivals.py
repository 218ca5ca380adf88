# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Rivals of the hottest keys: counts by which a server chooses the last used keys, or any keys.

A server chooses the keys that its workers' sketches count most often. Worker 0 counts here, and the
other workers send no sketches: their streams are alike, so the keys that one of them has used last
are as good as those of all. It counts every push, whatever its samples cost.
"""

from __future__ import annotations

from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from ....hostlib.hot_rows import FrequencySketch

Keys = NDArray[np.int64]
_COUNT: Final = 512
"""Of each chosen key: more than a server remembers, so that older ones are clearly less hot."""


def _sketch_of(keys: Keys, capacity: int) -> bytes:
    sketch = FrequencySketch(capacity)
    sketch.update(np.repeat(keys, _COUNT))
    return sketch.pack()


@final
class RecentKeys:
    """The `size` distinct keys that were used last, as an LRU cache that admits all keys has."""

    def __init__(self, size: int, capacity: int) -> None:
        """`capacity`: counters of the sketches."""
        self._size = size
        self._capacity = capacity
        self._keys: Keys = np.empty(0, np.int64)

    def count(self, keys: Keys, *, may_skip: bool = False) -> None:
        """Use keys, in their order."""
        used, firsts = np.unique(keys[::-1], return_index=True)
        newest = used[np.argsort(firsts)]
        older = self._keys[~np.isin(self._keys, used, assume_unique=True)]
        self._keys = np.concatenate((newest, older))[: self._size]

    def take(self) -> bytes | None:
        """Return a sketch of the keys; None without any."""
        return _sketch_of(self._keys, self._capacity) if self._keys.size else None


@final
class NoKeys:
    """Counts nothing."""

    def count(self, keys: Keys, *, may_skip: bool = False) -> None:
        """Use keys."""

    def take(self) -> bytes | None:
        """Return None."""
        return None


@final
class RandomKeys:
    """`size` of the distinct keys that were used until the first sketch, all equally likely."""

    def __init__(self, size: int, capacity: int, seed: int) -> None:
        """`capacity`: counters of the sketches."""
        self._size = size
        self._capacity = capacity
        self._generator = np.random.default_rng(seed)
        self._keys: Keys = np.empty(0, np.int64)
        self._has_chosen = False

    def count(self, keys: Keys, *, may_skip: bool = False) -> None:
        """Use keys."""
        if not self._has_chosen:
            self._keys = np.union1d(self._keys, keys)

    def take(self) -> bytes | None:
        """Return a sketch of chosen keys, once; None later, and before keys were used."""
        if self._has_chosen or not self._keys.size:
            return None
        self._has_chosen = True
        count = min(self._size, self._keys.size)
        chosen = self._generator.choice(self._keys, count, replace=False)
        return _sketch_of(chosen, self._capacity)
