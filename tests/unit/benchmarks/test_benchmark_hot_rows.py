# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The rival of a chosen hot set, against its definition and on a steady load; blocks with a log."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.hot_rows.block_throughput import interval_of, parse, plans_of, ratios_of
from benchmarks.hot_rows.lru import LruCache
from switchfold.controller.cli.hot.plan import Offload, TablePlan
from switchfold.controller.cli.workloads.key_stream import KeyPopularity, KeyStream
from switchfold.hostlib.hot_rows import FrequencySketch, HotSetOptions, HotSetTracker
from switchfold.hostlib.parameter_server import HotRowUse


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


def test_blocks_with_a_log_are_compared_by_their_slowest_workers() -> None:
    first, second = (
        [2.0, 4.0, 4.0, 2.0, 1.0, 1.0, 1.0, 1.0],
        [3.0, 1.0, 8.0, 2.0, 1.0, 2.0, 2.0, 3.0],
    )
    workers = [SimpleNamespace(block_s=np.array(block_s)) for block_s in (first, second)]
    run: Any = SimpleNamespace(plan=TablePlan, workers=workers)
    assert ratios_of(run).tolist() == pytest.approx([5 / 12, 4 / 4])


def test_the_interval_narrows_with_more_ratios() -> None:
    ratios = np.random.default_rng(3).normal(0.98, 0.1, 2000)
    low, high = interval_of(ratios.tolist())
    assert low < ratios.mean() < high
    assert high - low == pytest.approx(4 * 0.1 / np.sqrt(2000), rel=0.1)
    few_low, few_high = interval_of(ratios[:20].tolist())
    assert few_high - few_low > 3 * (high - low)


def test_hot_keys_are_compared_without_logs_where_workers_choose() -> None:
    options = parse(["hot-keys", "--batches", "512", "--blocks", "8"])
    (plan,) = plans_of(options, 3)
    assert (plan.num_workers, plan.batch, plan.latency_log) == (3, 512, "")
    assert plan.has_plain_table
    assert plan.use is HotRowUse.AUTO
    logged = plans_of(parse(["log", "--batches", "512"]), 4)
    assert [plan.offload for plan in logged] == [Offload.NONE, Offload.HOT]
    assert not any(plan.has_plain_table for plan in logged)


@pytest.mark.parametrize("blocks", ["0", "4", "10"])
def test_one_ratio_decides_nothing(blocks: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["log", "--blocks", blocks])
    assert f"--blocks {blocks}: give a multiple of 4, from 8" in capsys.readouterr().err
