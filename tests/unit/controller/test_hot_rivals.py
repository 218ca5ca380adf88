# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Rivals of the hottest keys: what a server chooses by their sketches."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.hot_rows.lru import LruCache
from switchfold.controller.cli.hot.rivals import RandomKeys, RecentKeys
from switchfold.hostlib.hot_rows import FrequencySketch, HotSetOptions, HotSetTracker

SIZE = 256
CAPACITY = 8 * SIZE


def chosen(tracker: HotSetTracker, packed: bytes | None) -> NDArray[np.int64]:
    """Return the sorted hot keys after a refresh."""
    sketches = [] if packed is None else [FrequencySketch.unpack(packed)]
    return np.sort(tracker.refresh(sketches).hot_set.keys)


def tracker_of() -> HotSetTracker:
    return HotSetTracker(HotSetOptions(size=SIZE, sketch_capacity=CAPACITY))


@pytest.mark.parametrize("span", [300, 5000])
def test_each_refresh_chooses_what_an_lru_cache_holds(span: int) -> None:
    rng = np.random.default_rng(span)
    recent, cache, tracker = RecentKeys(SIZE, CAPACITY), LruCache(SIZE), tracker_of()
    for _ in range(12):
        for _ in range(5):
            keys = (span * rng.random(70) ** 3).astype(np.int64)
            recent.count(keys)
            cache.use(keys)
        held = np.array([key for key in range(span) if cache.has(key)])
        assert np.array_equal(chosen(tracker, recent.take()), held)


def test_random_keys_are_chosen_once_among_those_that_were_used() -> None:
    counts, tracker = RandomKeys(SIZE, CAPACITY, seed=1), tracker_of()
    assert counts.take() is None
    for first in range(0, 4000, 100):
        counts.count(np.repeat(np.arange(first, first + 200), 2))
    hot = chosen(tracker, counts.take())
    assert hot.size == SIZE
    # The mean of 256 of 4,100 equally likely numbers: within five standard deviations.
    assert abs(hot.mean() - 2050) < 5 * 4100 / np.sqrt(12 * SIZE)
    counts.count(np.arange(9000, 9500))
    assert counts.take() is None
    assert np.array_equal(chosen(tracker, None), hot)


def test_few_keys_are_all_chosen() -> None:
    for counts in (RecentKeys(SIZE, CAPACITY), RandomKeys(SIZE, CAPACITY, seed=1)):
        counts.count(np.array([5, 3, 5]))
        assert chosen(tracker_of(), counts.take()).tolist() == [3, 5]
