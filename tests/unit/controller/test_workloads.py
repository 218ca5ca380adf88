# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The load: Zipf's law with the study's two skews, scrambled keys, fields and topics."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchfold.controller.cli.workloads.key_stream import (
    RECOMMENDATION,
    SEARCH,
    KeyPopularity,
    KeyStream,
)
from switchfold.controller.cli.workloads.zipf import KeyScramble, ZipfRanks

TOP = 20_000


@pytest.mark.parametrize(
    ("num_ranks", "exponent"), [(1, 1.07), (2, 0.845), (7, 1.0), (50, 0.845), (50, 1.07), (50, 2.5)]
)
def test_ranks_follow_the_law(num_ranks: int, exponent: float) -> None:
    draws = 400_000
    ranks = ZipfRanks(num_ranks, exponent).draw(np.random.default_rng(5), draws)
    weights = np.arange(1, num_ranks + 1) ** -exponent
    expected = draws * weights / weights.sum()
    counts = np.bincount(ranks, minlength=num_ranks)
    assert counts.size == num_ranks
    # Five standard deviations of each count.
    assert (abs(counts - expected) <= 5 * np.sqrt(expected) + 1).all()


@pytest.mark.parametrize(
    ("popularity", "share"), [(RECOMMENDATION, 0.5), (SEARCH, 0.7)], ids=["0.9 M", "150 M"]
)
def test_hottest_20000_take_the_share_of_the_study(popularity: KeyPopularity, share: float) -> None:
    ranks = ZipfRanks(popularity.num_keys, popularity.exponent)
    assert ranks.share(TOP) == pytest.approx(share, abs=0.02)
    stream = KeyStream(popularity, seed=11)
    keys = stream.draw(500_000)
    assert keys.shape == (500_000, 1)
    assert 0 <= keys.min() <= keys.max() < popularity.num_keys
    hottest = stream.hottest(TOP)
    assert stream.share(hottest) == pytest.approx(ranks.share(TOP))
    assert np.isin(keys, hottest).mean() == pytest.approx(share, abs=0.02)


@pytest.mark.parametrize("exponent", [0.845, 1.0, 1.07])
def test_integrated_tail_of_the_weights_is_exact(exponent: float) -> None:
    num_ranks = 3_000_000
    weights = np.arange(1.0, num_ranks + 1) ** -exponent
    ranks = ZipfRanks(num_ranks, exponent)
    for top in (0, 1, TOP, 2_000_000):
        assert ranks.share(top) == pytest.approx(weights[:top].sum() / weights.sum(), rel=1e-9)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(1, 3000), st.integers(0, 2**32))
def test_scramble_is_a_bijection(num_keys: int, seed: int) -> None:
    scramble = KeyScramble(num_keys, seed)
    ranks = np.arange(num_keys)
    keys = scramble.keys(ranks)
    assert np.array_equal(np.sort(keys), ranks)
    assert np.array_equal(scramble.ranks(keys), ranks)


def test_scramble_hides_the_rank() -> None:
    ranks = np.arange(TOP)
    keys = KeyScramble(150_000_000, seed=1).keys(ranks)
    assert abs(np.corrcoef(ranks, keys)[0, 1]) < 0.05
    assert np.count_nonzero(np.diff(keys) == 1) < 5
    # They spread evenly over the whole range.
    spread = np.bincount(keys // 15_000_000, minlength=10)
    assert (abs(spread - TOP / 10) < 250).all()


def test_streams_repeat_by_seed() -> None:
    popularity = KeyPopularity(num_keys=5000, exponent=1.0, num_fields=3)
    first, second = KeyStream(popularity, seed=4), KeyStream(popularity, seed=4)
    other = KeyStream(popularity, seed=5)
    for _ in range(3):
        keys = first.draw(100)
        assert np.array_equal(keys, second.draw(100))
        assert not np.array_equal(keys, other.draw(100))


def test_permuted_popularity_is_of_other_keys() -> None:
    stream = KeyStream(KeyPopularity(num_keys=100_000, exponent=1.0), seed=4)
    before = stream.hottest(1000)
    stream.permute(seed=77)
    after = stream.hottest(1000)
    assert np.intersect1d(before, after).size < 50
    share = stream.share(after)
    keys = stream.draw(100_000)
    assert np.isin(keys, after).mean() == pytest.approx(share, abs=0.01)
    assert np.isin(keys, before).mean() < 0.1 < share


def test_sample_takes_one_key_of_each_field() -> None:
    popularity = KeyPopularity(num_keys=26_000, exponent=0.845, num_fields=26)
    stream = KeyStream(popularity, seed=2)
    fields = [set(stream.draw(2000)[:, field].tolist()) for field in range(26)]
    again = stream.draw(2000)
    for field in range(26):
        others = set().union(*(fields[:field] + fields[field + 1 :]))
        assert not others & set(again[:, field].tolist())
    share = stream.share(stream.hottest(2600))
    hot = np.isin(stream.draw(20_000), stream.hottest(2600)).mean()
    assert hot == pytest.approx(share, abs=0.01)


def test_keys_of_a_topic_come_together() -> None:
    independent = KeyPopularity(num_keys=20_000, exponent=0.845, num_fields=10)
    with_topics = KeyPopularity(
        num_keys=20_000, exponent=0.845, num_fields=10, num_topics=100, affinity=1.0
    )

    def different_pairs(popularity: KeyPopularity) -> int:
        samples = KeyStream(popularity, seed=6).draw(5000)
        return len(np.unique(samples[:, 0] * popularity.num_keys + samples[:, 1]))

    assert different_pairs(with_topics) < 0.8 * different_pairs(independent)
    stream = KeyStream(with_topics, seed=6)
    assert stream.draw(1).shape == (1, 10)
    with pytest.raises(ValueError, match="topics"):
        stream.share(stream.hottest(5))


def test_impossible_loads_are_refused() -> None:
    for num_ranks, exponent in ((0, 1.0), (5, 0.0), (5, -1.0), (5, float("nan"))):
        with pytest.raises(ValueError, match="ranks"):
            ZipfRanks(num_ranks, exponent)
    with pytest.raises(ValueError, match="top 6 of 5"):
        ZipfRanks(5, 1.0).share(6)
    with pytest.raises(ValueError, match="keys"):
        KeyScramble(0, seed=1)
    with pytest.raises(ValueError, match="outside"):
        KeyScramble(10, seed=1).keys(np.array([10]))
    with pytest.raises(ValueError, match="fields"):
        KeyPopularity(num_keys=5, exponent=1.0, num_fields=6)
    with pytest.raises(ValueError, match="topics"):
        KeyPopularity(num_keys=5, exponent=1.0, affinity=1.5)
