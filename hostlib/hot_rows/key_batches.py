# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The keys of the newest mini-batches, from which `plan_layout` learns which keys come together."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Sequence
from typing import Final, Self, final

import numpy as np
from numpy.typing import NDArray

from ..errors import HotRowError
from .sketch import Keys
from .stored_arrays import StoredArrays, StoredKind, pack_arrays

_FIELDS: Final = struct.Struct("<II")


@final
class KeyBatches:
    """Whole mini-batches with at most `capacity` distinct keys in all; older ones are forgotten."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.num_keys = 0
        """Of all mini-batches; a key counts once in each."""
        self._batches: deque[Keys] = deque()

    @property
    def batches(self) -> Sequence[Keys]:
        """The mini-batches, the oldest first; the keys of each rise."""
        return tuple(self._batches)

    def add(self, keys: Keys) -> None:
        """Add a mini-batch, unless it alone is too large. Negative keys are never hot."""
        distinct = np.unique(keys)
        distinct = distinct[np.searchsorted(distinct, 0) :]
        if 0 < distinct.size <= self.capacity:
            self._add(distinct)

    def merge(self, other: KeyBatches) -> None:
        """Add the mini-batches of another one, as if they were newer."""
        for batch in other._batches:  # of sampled mini-batches, which are few
            if batch.size <= self.capacity:
                self._add(batch)

    def _add(self, distinct: Keys) -> None:
        self._batches.append(distinct)
        self.num_keys += distinct.size
        while self.num_keys > self.capacity:
            self.num_keys -= self._batches.popleft().size

    def pack(self) -> bytes:
        """Return the mini-batches as bytes for `unpack`."""
        sizes = np.array([batch.size for batch in self._batches], np.uint32)
        keys = np.concatenate([np.empty(0, np.int64), *self._batches])
        fields = _FIELDS.pack(sizes.size, keys.size)
        return pack_arrays(StoredKind.BATCHES, fields, sizes, keys)

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """Return what `pack` wrote. Raises HotRowError for all other bytes."""
        stored = StoredArrays(data, StoredKind.BATCHES, _FIELDS)
        num_batches, num_keys = stored.fields
        sizes: NDArray[np.uint32] = stored.take(np.uint32, num_batches)
        keys: Keys = stored.take(np.int64, num_keys)
        stored.finish()
        ends = np.cumsum(sizes, dtype=np.int64)
        if not sizes.all() or (ends[-1] if num_batches else 0) != num_keys:
            raise HotRowError(f"mini-batches of {sizes.sum()} keys instead of {num_keys}")
        is_first = np.zeros(num_keys, np.bool_)
        is_first[ends[:-1]] = True
        if num_keys and (keys.min() < 0 or ((keys[1:] <= keys[:-1]) & ~is_first[1:]).any()):
            raise HotRowError("the keys of a mini-batch do not rise from 0 on")
        found = cls(num_keys)
        found.num_keys = num_keys
        found._batches.extend(np.split(keys, ends[:-1]) if num_batches else ())
        return found
