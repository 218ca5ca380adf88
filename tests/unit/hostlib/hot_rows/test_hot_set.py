# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The choice of hot keys from a sample: precision, coverage, and what a refresh replaces."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from switchfold.controller.cli.workloads.key_stream import (
    RECOMMENDATION,
    KeyPopularity,
    KeyStream,
)
from switchfold.hostlib import ConfigurationError, HotRowError
from switchfold.hostlib.hot_rows import (
    BatchSampler,
    FrequencySketch,
    HotSetChange,
    HotSetOptions,
    HotSetTracker,
)

SIZE = 1024
BATCH = 5000
UPDATES = 5_000_000
CAPACITY = 1 << 16


def sampled_sketches(
    stream: KeyStream, sampler: BatchSampler, capacity: int = CAPACITY
) -> list[FrequencySketch]:
    """Return what two workers count of the sampled mini-batches among 5 million updates."""
    sketches = [FrequencySketch(capacity) for _ in range(2)]
    taken = sum(sampler.takes_next() for _ in range(UPDATES // BATCH))
    for number in range(taken):
        sketches[number % 2].update(stream.draw(BATCH))
    return sketches


def sketch_of(counts: Mapping[int, int], capacity: int = 64) -> FrequencySketch:
    sketch = FrequencySketch(capacity)
    sketch.update(np.repeat([*counts], [*counts.values()]))
    return sketch


def lists(change: HotSetChange) -> tuple[list[int], list[int], list[int]]:
    return change.kept.tolist(), change.added.tolist(), change.removed.tolist()


@pytest.mark.parametrize("exponent", [1.07, 0.85])
def test_five_per_cent_of_the_batches_find_the_hot_keys(exponent: float) -> None:
    popularity = KeyPopularity(num_keys=100_000, exponent=exponent)
    stream = KeyStream(popularity, seed=1)
    tracker = HotSetTracker(HotSetOptions(size=SIZE, sketch_capacity=CAPACITY))
    change = tracker.refresh(sampled_sketches(stream, BatchSampler(0.05, seed=2)))
    chosen, true = change.hot_set.keys, stream.hottest(SIZE)
    assert chosen.size == SIZE
    assert np.isin(chosen, true).mean() >= 0.85
    assert stream.share(chosen) >= stream.share(true) - 0.02
    coverage = change.hot_set.coverage
    assert coverage.low <= stream.share(chosen) <= coverage.high
    assert coverage.estimate == pytest.approx(stream.share(chosen), abs=0.01)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("share", [0.01, 0.1])
def test_estimated_coverage_is_that_of_other_updates(seed: int, share: float) -> None:
    stream = KeyStream(KeyPopularity(num_keys=200_000, exponent=0.845), seed)
    # So large a set takes many keys of which the sample has one update or two.
    capacity = 1 << 18
    tracker = HotSetTracker(HotSetOptions(size=10_000, sketch_capacity=capacity))
    sketches = sampled_sketches(stream, BatchSampler(share, seed), capacity)
    hot_set = tracker.refresh(sketches).hot_set
    true, coverage = stream.share(hot_set.keys), hot_set.coverage
    assert coverage.low <= true <= coverage.high
    assert abs(coverage.estimate - true) < 0.01
    total = sum(sketch.total for sketch in sketches)
    in_the_sample = hot_set.counts.sum() / total
    if share == 0.01:
        assert in_the_sample > true + 0.05


@pytest.mark.parametrize(
    ("popularity", "size", "capacity"),
    [
        (KeyPopularity(num_keys=100_000, exponent=1.07), SIZE, CAPACITY),
        (RECOMMENDATION, 5000, 1 << 17),
    ],
    ids=["1,024 of 100,000", "5,000 of 900,000"],
)
def test_coverage_recovers_with_the_first_refresh_after_a_shift(
    popularity: KeyPopularity, size: int, capacity: int
) -> None:
    stream = KeyStream(popularity, seed=1)
    sampler = BatchSampler(0.05, seed=2)
    tracker = HotSetTracker(HotSetOptions(size=size, sketch_capacity=capacity))
    for _ in range(4):
        change = tracker.refresh(sampled_sketches(stream, sampler, capacity))
        assert not change.is_shift
    settled = stream.share(change.hot_set.keys)
    stream.permute(seed=99)
    assert stream.share(change.hot_set.keys) < settled / 3
    change = tracker.refresh(sampled_sketches(stream, sampler, capacity))
    assert change.is_shift
    assert stream.share(change.hot_set.keys) >= settled - 0.05
    assert change.added.size > size // 2
    assert change.hot_set.coverage.low <= stream.share(change.hot_set.keys)


def test_old_counts_go_when_the_coverage_falls_by_more_than_the_shift() -> None:
    for updates, is_shift in ((850, False), (700, True)):
        options = HotSetOptions(size=1, sketch_capacity=64, decay=0.5, shift=0.1)
        tracker = HotSetTracker(options)
        assert not tracker.refresh([sketch_of({1: 9000, 2: 1000})]).is_shift
        change = tracker.refresh([sketch_of({1: updates, 2: 1000 - updates})])
        assert change.is_shift == is_shift
        assert change.hot_set.counts.tolist() == [updates + (0 if is_shift else 4500)]
    # Without updates, nothing has moved.
    assert not tracker.refresh([]).is_shift


def test_steady_popularity_replaces_few_keys() -> None:
    stream = KeyStream(KeyPopularity(num_keys=100_000, exponent=1.07), seed=1)
    sampler = BatchSampler(0.05, seed=2)
    trackers = [
        HotSetTracker(HotSetOptions(size=SIZE, sketch_capacity=CAPACITY)),
        HotSetTracker(
            HotSetOptions(size=SIZE, sketch_capacity=CAPACITY, margin=1.0, deviations=0.0)
        ),
    ]
    for _ in range(3):
        sketches = sampled_sketches(stream, sampler)
        with_margin, without = (tracker.refresh(sketches) for tracker in trackers)
    assert 4 * with_margin.added.size < without.added.size
    true = stream.share(stream.hottest(SIZE))
    assert stream.share(with_margin.hot_set.keys) >= true - 0.02


def test_key_replaces_another_if_it_is_clearly_hotter() -> None:
    # Counts of the last refresh alone, and no shift, so that each case is by itself.
    options = HotSetOptions(size=3, sketch_capacity=64, decay=0.0, shift=1.0)
    tracker = HotSetTracker(options)
    first = tracker.refresh([sketch_of({1: 500, 2: 400, 3: 300, 4: 100})])
    assert lists(first) == ([], [1, 2, 3], [])
    # 4 is ahead of 3 by a tenth: less than the margin.
    change = tracker.refresh([sketch_of({1: 500, 2: 400, 3: 300, 4: 330})])
    assert lists(change) == ([1, 2, 3], [], [])
    # 4 has twice the updates of 3, but of 4 updates 2 more are no clear sign.
    change = tracker.refresh([sketch_of({1: 500, 2: 400, 3: 2, 4: 4})])
    assert lists(change) == ([1, 2, 3], [], [])
    # 4 replaces 3, the coldest, and 5 replaces 1, the second coldest. 6 is not clearly above 2.
    change = tracker.refresh([sketch_of({1: 200, 2: 400, 3: 100, 4: 600, 5: 500, 6: 450})])
    assert lists(change) == ([2], [4, 5], [1, 3])
    assert change.hot_set.keys.tolist() == [4, 5, 2]
    assert change.hot_set.counts.tolist() == [600, 500, 400]


def test_free_places_are_filled_without_a_margin() -> None:
    tracker = HotSetTracker(HotSetOptions(size=4, sketch_capacity=64, decay=0.5, memory=0))
    assert lists(tracker.refresh([])) == ([], [], [])
    assert lists(tracker.refresh([sketch_of({7: 5, 8: 4})])) == ([], [7, 8], [])
    change = tracker.refresh([sketch_of({9: 1}), sketch_of({10: 2, 11: 1})])
    assert lists(change) == ([7, 8], [9, 10], [])
    assert change.hot_set.keys.tolist() == [7, 8, 10, 9]
    assert change.hot_set.counts.tolist() == [2.5, 2, 2, 1]


def test_counts_decay_no_further_than_to_the_updates_that_are_remembered() -> None:
    options = HotSetOptions(size=2, sketch_capacity=64, decay=0.5, memory=50, shift=1)
    tracker = HotSetTracker(options)
    tracker.refresh([sketch_of({1: 40, 2: 20})])
    change = tracker.refresh([sketch_of({1: 30, 2: 10})])
    assert change.hot_set.counts.tolist() == [70, 30]  # no more than 50 for each key
    change = tracker.refresh([sketch_of({1: 10, 2: 20})])
    assert change.hot_set.counts.tolist() == pytest.approx([0.7 * 70 + 10, 0.7 * 30 + 20])
    change = tracker.refresh([sketch_of({1: 1000, 2: 200})])
    assert change.hot_set.counts.tolist() == pytest.approx([29.5 + 1000, 20.5 + 200])


def test_key_that_nobody_updates_makes_room() -> None:
    tracker = HotSetTracker(HotSetOptions(size=2, sketch_capacity=64, decay=0.25))
    tracker.refresh([sketch_of({1: 100, 2: 100})])
    change = tracker.refresh([sketch_of({2: 100, 3: 90})])
    assert lists(change) == ([2], [3], [1])


def test_coverage_of_a_set_that_holds_all_keys_is_one() -> None:
    tracker = HotSetTracker(HotSetOptions(size=8, sketch_capacity=64))
    assert tracker.refresh([]).hot_set.coverage.high == 1
    coverage = tracker.refresh([sketch_of({1: 400, 2: 600})]).hot_set.coverage
    assert coverage.estimate == coverage.high == 1
    assert 0.99 < coverage.low < 1


def test_keys_that_come_together_widen_the_bounds() -> None:
    counts = {key: 1000 // (key + 1) for key in range(64)}
    widths: list[float] = []
    for keys_per_sample in (1, 16):
        options = HotSetOptions(size=8, sketch_capacity=64, keys_per_sample=keys_per_sample)
        coverage = HotSetTracker(options).refresh([sketch_of(counts)]).hot_set.coverage
        widths.append(coverage.high - coverage.low)
    assert widths[1] > 2 * widths[0]


def test_impossible_options_are_refused() -> None:
    for wrong in (
        {"size": 0},
        {"size": 65},
        {"decay": -0.1},
        {"decay": 1.5},
        {"margin": 0.9},
        {"margin": float("nan")},
        {"deviations": -1.0},
        {"keys_per_sample": 0},
        {"shift": 1.5},
    ):
        options = {"size": 8, "sketch_capacity": 64} | wrong
        with pytest.raises(ConfigurationError, match="give"):
            HotSetOptions(**options)
    tracker = HotSetTracker(HotSetOptions(size=8, sketch_capacity=64))
    with pytest.raises(HotRowError, match="65 counters"):
        tracker.refresh([FrequencySketch(65)])
