# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The array pool uses memory again once no array or view of it is left, and not before."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchfold.hostlib.engine.array_pool import SMALLEST_BYTES, ArrayPool

SHAPE = (SMALLEST_BYTES // 16, 4)


def address(array: NDArray[Any]) -> int:
    return array.__array_interface__["data"][0]


def test_memory_is_used_again_after_the_last_view_is_gone() -> None:
    pool = ArrayPool()
    first = pool.empty(SHAPE, ">i4")
    place = address(first)
    row = first.view(np.uint32)[7]
    del first
    gc.collect()
    second = pool.empty(SHAPE, np.float32)
    assert address(second) != place, "a view still holds the first one's memory"
    second[...] = 1.0
    row[...] = 7
    del row
    gc.collect()
    third = pool.empty(SHAPE, np.float32)
    assert address(third) == place
    assert (second == 1.0).all()


def test_array_is_an_ordinary_one() -> None:
    array = ArrayPool().empty(SHAPE, np.float16)
    assert array.shape == SHAPE
    assert array.dtype == np.float16
    assert array.flags.writeable
    assert array.flags.c_contiguous
    array[...] = 2.0
    assert array.sum(dtype=np.float64) == 2.0 * array.size


def test_array_outlives_its_pool() -> None:
    pool = ArrayPool()
    array = pool.empty(SHAPE, np.int32)
    array[...] = 3
    del pool
    gc.collect()
    assert (array == 3).all()


def test_no_more_than_the_limit_waits_for_a_new_use() -> None:
    pool = ArrayPool(limit_bytes=3 * SMALLEST_BYTES)
    held = [pool.empty(SHAPE, np.int32) for _ in range(5)]
    del held
    gc.collect()
    kept = pool.empty(SHAPE, np.int32)
    assert pool.idle_bytes == 2 * SMALLEST_BYTES
    del kept
    gc.collect()
    larger = [pool.empty((SHAPE[0] + 1, 4), np.int32) for _ in range(2)]
    assert pool.idle_bytes == 3 * SMALLEST_BYTES
    del larger
    gc.collect()
    pool.empty(SHAPE, np.int32)
    assert pool.idle_bytes < 3 * SMALLEST_BYTES


def test_too_small_or_too_large_memory_is_not_kept() -> None:
    pool = ArrayPool(limit_bytes=2 * SMALLEST_BYTES)
    for elements in (4, SMALLEST_BYTES):
        assert pool.empty((elements,), np.int32).base is None
