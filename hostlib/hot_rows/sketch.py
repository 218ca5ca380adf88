# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How often keys are updated, counted in bounded memory over a sample of the mini-batches.

The counters are those of Misra and Gries (1982), merged as Agarwal et al. (PODS'12) do: when more
than k keys are known, the (k + 1)-th largest count is subtracted from all counts, and keys without
a positive rest are forgotten. Each subtraction takes its amount from k + 1 counts or more. So a
count is too low by at most `error` <= (total - all counts) / (k + 1), and never too high.
"""

from __future__ import annotations

import struct
from typing import Final, Self, final

import numpy as np
from numpy.typing import NDArray

from ..errors import ConfigurationError, HotRowError
from .stored_arrays import StoredArrays, StoredKind, pack_arrays

Keys = NDArray[np.int64]
"""Keys of a table, 0 or more."""
Counts = NDArray[np.float64]
"""Updates; whole numbers up to 2**53 are exact, and decay makes fractions of them."""
DEFAULT_CAPACITY: Final = 1 << 18
"""Counters of a sketch: 4 MiB."""
MAX_CAPACITY: Final = 1 << 26
_FIELDS: Final = struct.Struct("<IIddd")
_ROUNDING: Final = 1e-9
"""Relative error of sums that is no damage."""


@final
class FrequencySketch:
    """Counts the updates of at most `capacity` keys, those with the most of them.

    It keeps 16 bytes per counter, and up to `capacity` keys (8 bytes each) that wait to be counted
    together: a merge costs the same for one key as for many.
    """

    def __init__(self, capacity: int = DEFAULT_CAPACITY) -> None:
        if not 1 <= capacity <= MAX_CAPACITY:
            raise ConfigurationError(f"a sketch of {capacity} counters; give 1 to {MAX_CAPACITY}")
        self.capacity = capacity
        self._keys: Keys = np.empty(0, np.int64)
        self._counts: Counts = np.empty(0, np.float64)
        self._total = 0.0
        self._squares = 0.0
        self._error = 0.0
        self._waiting: list[Keys] = []
        self._num_waiting = 0

    def update(self, keys: Keys) -> None:
        """Count the keys of a mini-batch, each as often as it is there.

        A worker pushes a key once for a mini-batch. So pass every key once to count what servers
        receive. Raises HotRowError for negative keys.
        """
        if keys.size and keys.min() < 0:
            raise HotRowError(f"key {keys.min()} is negative")
        self._waiting.append(keys.astype(np.int64).ravel())
        self._num_waiting += keys.size
        if self._num_waiting >= self.capacity:
            self._count_waiting()

    def merge(self, other: FrequencySketch) -> None:
        """Add what another sketch has counted; the errors add up, too.

        Raises HotRowError if its capacity differs.
        """
        if other.capacity != self.capacity:
            raise HotRowError(
                f"a sketch of {other.capacity} counters cannot be added to one of {self.capacity}"
            )
        self._count_waiting()
        other._count_waiting()
        self._total += other._total
        self._squares += other._squares
        self._error += other._error
        self._add(other._keys, other._counts)

    def decay(self, factor: float) -> None:
        """Multiply all that was counted by `factor`, from 0 to 1. Raises ConfigurationError."""
        if not 0 <= factor <= 1:
            raise ConfigurationError(f"decay by {factor}; give 0 to 1")
        self._count_waiting()
        self._counts = self._counts * factor
        self._total *= factor
        self._error *= factor
        self._squares *= factor * factor
        self._keep(self._counts > 0)

    @property
    def total(self) -> float:
        """Updates that were counted, decayed."""
        self._count_waiting()
        return self._total

    @property
    def squares(self) -> float:
        """Sum of the squared weights of all updates: `total` without decay, and less with it."""
        self._count_waiting()
        return self._squares

    @property
    def error(self) -> float:
        """Most updates by which a count may be too low."""
        self._count_waiting()
        return self._error

    @property
    def memory_bytes(self) -> int:
        """Bytes of the counters and of the waiting keys."""
        return self._keys.nbytes + self._counts.nbytes + 8 * self._num_waiting

    def counts(self, keys: Keys) -> Counts:
        """Return the counts of keys; 0 for those that are not known."""
        self._count_waiting()
        if not self._keys.size:
            return np.zeros(keys.shape, np.float64)
        at = np.minimum(np.searchsorted(self._keys, keys), self._keys.size - 1)
        return np.where(self._keys[at] == keys, self._counts[at], 0.0)

    def top(self, count: int) -> tuple[Keys, Counts]:
        """Return the keys with the largest counts, and these; the lower key goes first of equals.

        There are fewer than `count` if no more are known.
        """
        self._count_waiting()
        order = np.lexsort((self._keys, -self._counts))[:count]
        return self._keys[order], self._counts[order]

    def pack(self) -> bytes:
        """Return the sketch as bytes for `unpack`."""
        self._count_waiting()
        fields = (self.capacity, self._keys.size, self._total, self._squares, self._error)
        return pack_arrays(StoredKind.SKETCH, _FIELDS.pack(*fields), self._keys, self._counts)

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """Return the sketch that `pack` wrote. Raises HotRowError for all other bytes."""
        stored = StoredArrays(data, StoredKind.SKETCH, _FIELDS)
        capacity, num_keys, total, squares, error = stored.fields
        if not 1 <= capacity <= MAX_CAPACITY or num_keys > capacity:
            raise HotRowError(f"a sketch of {num_keys} keys in {capacity} counters")
        sketch = cls(capacity)
        sketch._keys = stored.take(np.int64, num_keys)
        sketch._counts = stored.take(np.float64, num_keys)
        stored.finish()
        sketch._total, sketch._squares, sketch._error = total, squares, error
        sketch._check()
        return sketch

    def _check(self) -> None:
        keys, counts = self._keys, self._counts
        if keys.size and (keys[0] < 0 or not (keys[1:] > keys[:-1]).all()):
            raise HotRowError("the keys of a sketch do not rise from 0 on")
        if not np.isfinite(counts).all() or (counts <= 0).any():
            raise HotRowError("a count of a sketch is not above 0")
        room = self._total * (1 + _ROUNDING) - float(counts.sum())
        sums = np.array([self._total, self._squares, self._error])
        is_bound = 0 <= self._error * (self.capacity + 1) * (1 - _ROUNDING) <= room
        is_weighted = 0 <= self._squares <= self._total * (1 + _ROUNDING)
        if not np.isfinite(sums).all() or not is_bound or not is_weighted:
            raise HotRowError(
                f"a sketch of {self._total} updates does not fit its counts, squares"
                f" {self._squares} and error {self._error}"
            )

    def _count_waiting(self) -> None:
        if not self._num_waiting:
            return
        keys, counts = np.unique(np.concatenate(self._waiting), return_counts=True)
        self._total += self._num_waiting
        self._squares += self._num_waiting
        self._waiting, self._num_waiting = [], 0
        self._add(keys, counts.astype(np.float64))

    def _add(self, keys: Keys, counts: Counts) -> None:
        """Add the counts of rising keys, then forget what exceeds the capacity."""
        at = np.searchsorted(self._keys, keys)
        is_known = np.zeros(keys.size, np.bool_)
        inside = at < self._keys.size
        is_known[inside] = self._keys[at[inside]] == keys[inside]
        self._counts[at[is_known]] += counts[is_known]
        is_new = ~is_known
        self._keys = np.insert(self._keys, at[is_new], keys[is_new])
        self._counts = np.insert(self._counts, at[is_new], counts[is_new])
        surplus = self._keys.size - self.capacity
        if surplus > 0:
            cut = np.partition(self._counts, surplus - 1)[surplus - 1]
            self._error += float(cut)
            self._counts -= cut
            self._keep(self._counts > 0)

    def _keep(self, which: NDArray[np.bool_]) -> None:
        self._keys = self._keys[which]
        self._counts = self._counts[which]


@final
class BatchSampler:
    """Chooses each mini-batch with the same probability, from a random generator of its own."""

    def __init__(self, probability: float, seed: int) -> None:
        if not 0 < probability <= 1:
            raise ConfigurationError(
                f"mini-batches sampled with probability {probability}; give more than 0, at most 1"
            )
        self._probability = probability
        self._generator = np.random.default_rng(seed)
        self._left = self._draw()  # mini-batches up to the next one that is chosen

    def takes_next(self) -> bool:
        """Return whether the next mini-batch belongs to the sample."""
        self._left -= 1
        if self._left:
            return False
        self._left = self._draw()
        return True

    def _draw(self) -> int:
        return int(self._generator.geometric(self._probability))
