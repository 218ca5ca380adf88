# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Keys by shard: balanced, stable, and few of them move when a shard comes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from row_reference import draw
from switchfold.hostlib import ConfigurationError, RowShapeError
from switchfold.hostlib.parameter_server.rows import partition, shard_of

COUNT = 200_000
KEYS = np.arange(COUNT, dtype=np.int64)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


def reference_shard(key: int, num_shards: int) -> int:
    """Follow a key's moves as shards are added."""
    start, shard = draw(key & (1 << 64) - 1, 2), 0
    for move in range(10_000):
        uniform = ((draw(start, move) >> 11) + 1) / 2**53
        later = int((shard + 1) / uniform)
        if later >= num_shards:
            return shard
        shard = later
    raise AssertionError("ten thousand moves")


@given(keys=st.lists(INT64, max_size=40), num_shards=st.integers(1, 300))
def test_shards_are_those_of_the_reference(keys: list[int], num_shards: int) -> None:
    found = shard_of(np.array(keys, np.int64), num_shards)
    assert found.tolist() == [reference_shard(key, num_shards) for key in keys]


@pytest.mark.parametrize("scale", [1, 1 << 40, -3])
@pytest.mark.parametrize("num_shards", [1, 2, 3, 10, 64])
def test_new_shard_takes_its_part_and_no_other_key_moves(num_shards: int, scale: int) -> None:
    before, after = (shard_of(KEYS * scale, n) for n in (num_shards, num_shards + 1))
    has_moved = before != after
    assert (after[has_moved] == num_shards).all()
    part = 1 / (num_shards + 1)
    # Five standard deviations of a binomial distribution.
    deviation = math.sqrt(COUNT * part * (1 - part))
    assert abs(has_moved.sum() - COUNT * part) < 5 * deviation


@pytest.mark.parametrize("num_shards", [2, 7, 100])
def test_shards_hold_equal_parts(num_shards: int) -> None:
    counts = np.bincount(shard_of(KEYS, num_shards), minlength=num_shards)
    part = 1 / num_shards
    assert np.abs(counts - COUNT * part).max() < 5 * math.sqrt(COUNT * part * (1 - part))


@given(keys=st.lists(INT64, max_size=200), num_shards=st.integers(1, 9))
def test_partition_is_a_stable_order(keys: list[int], num_shards: int) -> None:
    array = np.array(keys, np.int64)
    found, shards = partition(array, num_shards), shard_of(array, num_shards)
    assert found.order.tolist() == np.argsort(shards, kind="stable").tolist()
    assert found.counts.tolist() == np.bincount(shards, minlength=num_shards).tolist()


@pytest.mark.parametrize("num_shards", [0, -1, (1 << 20) + 1])
def test_numbers_of_shards_are_checked(num_shards: int) -> None:
    with pytest.raises(ConfigurationError, match="give 1 to 1048576"):
        shard_of(KEYS, num_shards)


def test_keys_of_another_form_are_refused() -> None:
    with pytest.raises(RowShapeError, match="keys of float64"):
        partition(np.zeros(3), 2)  # pyright: ignore[reportArgumentType]
