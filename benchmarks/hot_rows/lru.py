# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The rival of a chosen hot set: a cache that holds the keys that were used last."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray


class LruCache:
    """Exactly the `size` distinct keys that were used last. It admits every key."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._keys: OrderedDict[int, None] = OrderedDict()

    def use(self, keys: NDArray[np.int64]) -> int:
        """Use keys one after the other; return how many of them were there."""
        cached, hits = self._keys, 0
        for key in keys.tolist():
            if key in cached:
                hits += 1
                cached.move_to_end(key)
                continue
            cached[key] = None
            if len(cached) > self._size:
                cached.popitem(last=False)
        return hits

    def has(self, key: int) -> bool:
        """Return whether a key is there; this does not use it."""
        return key in self._keys

    def __len__(self) -> int:
        return len(self._keys)
