# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Which shard holds a key, by jump consistent hashing (Lamping and Veach, 2014)."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import ConfigurationError
from ...native.library import address, library
from .optimisers import check_array

MOST_SHARDS: Final = 1 << 20


class Partition(NamedTuple):
    """Keys by shard."""

    order: NDArray[np.int64]
    """Positions of the keys: those of shard 0 first; within a shard as they were."""
    counts: NDArray[np.int64]
    """How many keys each shard has."""


def shard_of(keys: NDArray[np.int64], num_shards: int) -> NDArray[np.int32]:
    """Return the shard of each key, from 0.

    With one shard more, 1 / (num_shards + 1) of the keys move, all of them to the new shard. Raises
    ConfigurationError and RowShapeError.
    """
    if not 1 <= num_shards <= MOST_SHARDS:
        raise ConfigurationError(f"{num_shards} shards; give 1 to {MOST_SHARDS}")
    check_array("keys", keys, np.int64, (keys.size,))
    shards = np.empty(keys.size, np.int32)
    library.placement_shards(address(keys), keys.size, num_shards, address(shards))
    return shards


def partition(keys: NDArray[np.int64], num_shards: int) -> Partition:
    """Return the keys by shard. Raises as `shard_of` does."""
    shards = shard_of(keys, num_shards)
    found = Partition(np.empty(keys.size, np.int64), np.empty(num_shards, np.int64))
    places = address(found.order), address(found.counts)
    library.placement_order(address(shards), keys.size, num_shards, *places)
    return found
