# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The rival of a chosen hot set, against its definition and on a steady load."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.hot_rows.lru import LruCache
from switchfold.controller.cli.workloads.key_stream import KeyPopularity, KeyStream
from switchfold.hostlib.hot_rows import FrequencySketch, HotSetOptions, HotSetTracker


@pytest.mark.parametrize("size", [1, 2, 5, 40])
def test_cache_holds_the_keys_that_were_used_last(size: int) -> None:
    keys = np.random.default_rng(size).integers(0, 30, 2000).tolist()
    cache = LruCache(size)
    for position, key in enumerate(keys):
        last: list[int] = []
        for earlier in reversed(keys[:position]):
            if len(last) == size:
                break
            if earlier not in last:
                last.append(earlier)
        assert cache.use(np.array([key])) == (key in last)
    assert len(cache) == min(size, 30)


@pytest.mark.parametrize("size", [256, 1024, 4096])
@pytest.mark.parametrize("exponent", [0.845, 1.07])
def test_static_hot_set_beats_the_cache_on_a_steady_load(size: int, exponent: float) -> None:
    stream = KeyStream(KeyPopularity(num_keys=100_000, exponent=exponent), seed=5)
    sketch = FrequencySketch(1 << 17)
    sketch.update(stream.draw(250_000))
    tracker = HotSetTracker(HotSetOptions(size=size, sketch_capacity=1 << 17))
    hot = tracker.refresh([sketch]).hot_set.keys
    cache = LruCache(size)
    cache.use(stream.draw(100_000).ravel())
    assert len(cache) == size
    measured = stream.draw(200_000).ravel()
    assert np.isin(measured, hot).sum() > cache.use(measured)
