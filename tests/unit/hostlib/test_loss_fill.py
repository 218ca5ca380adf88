# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What takes the place of contributions that a sum lacks, compared with the same by element."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lossy_sums import delivery_of, is_in, sum_of
from switchfold.hostlib import ConfigurationError, FillPolicy, LossTolerance, TensorFill
from switchfold.hostlib.loss_tolerance import NO_LOSS, strictest

NUM_WORKERS = 4
SIZE = 4 * 5 - 1
"""Elements of a tensor of five chunks, whose last one is shorter."""
ALL = 0b1111
EXAMPLES = int(os.environ.get("SWITCHFOLD_SCHEDULES", "30"))
"""Random losses of each test."""
LOSSES = st.lists(st.lists(st.integers(1, ALL), min_size=5, max_size=5), min_size=1, max_size=6)
"""For each sum of a tensor, who is in each chunk."""
OPERATIONS = st.sampled_from(["mean", "sum"])


def contributions(number: int) -> list[NDArray[np.float64]]:
    """Return whole numbers, which float64 adds without an error."""
    rng = np.random.default_rng(number)
    return [rng.integers(-99, 100, SIZE).astype(np.float64) for _ in range(NUM_WORKERS)]


def run_sum(
    fills: list[TensorFill], bitmaps: list[int], number: int, operation: Any = "mean"
) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
    """Sum once among all workers; return what all of them end with, and what each gave."""
    divisor = NUM_WORKERS if operation == "sum" else 1
    own = [each / divisor for each in contributions(number)]
    sent = [fill.contribution(values) for fill, values in zip(fills, own, strict=True)]
    present = is_in(bitmaps, SIZE)
    result = sum_of(sent, present)
    if operation == "mean":
        result /= present.sum(axis=0)
    results = [result.copy() for _ in fills]
    for fill, each in zip(fills, results, strict=True):
        fill.complete(each, delivery_of(bitmaps, SIZE), operation)
    assert len({each.tobytes() for each in results}) == 1, "all have the same bytes"
    return results[0], [each * divisor for each in sent]


def fills_of(policy: FillPolicy) -> list[TensorFill]:
    return [TensorFill(policy, worker) for worker in range(NUM_WORKERS)]


@settings(max_examples=EXAMPLES)
@given(losses=LOSSES, operation=OPERATIONS)
def test_mean_is_over_those_that_are_there(losses: list[list[int]], operation: str) -> None:
    fills = fills_of(FillPolicy.MEAN)
    for number, bitmaps in enumerate(losses):
        result, sent = run_sum(fills, bitmaps, number, operation)
        present = is_in(bitmaps, SIZE)
        np.testing.assert_allclose(result, sum_of(sent, present) / present.sum(axis=0), atol=1e-12)


@settings(max_examples=EXAMPLES)
@given(losses=LOSSES, operation=OPERATIONS)
def test_zero_divides_by_all(losses: list[list[int]], operation: str) -> None:
    fills = fills_of(FillPolicy.ZERO)
    for number, bitmaps in enumerate(losses):
        result, sent = run_sum(fills, bitmaps, number, operation)
        expected = sum_of(sent, is_in(bitmaps, SIZE)) / NUM_WORKERS
        np.testing.assert_allclose(result, expected, atol=1e-12)


@settings(max_examples=EXAMPLES)
@given(losses=LOSSES, operation=OPERATIONS)
def test_previous_takes_what_all_got_last_time(losses: list[list[int]], operation: str) -> None:
    fills = fills_of(FillPolicy.PREVIOUS)
    previous = None
    for number, bitmaps in enumerate(losses):
        result, sent = run_sum(fills, bitmaps, number, operation)
        present = is_in(bitmaps, SIZE)
        count = present.sum(axis=0)
        expected = sum_of(sent, present) / count
        if previous is not None:
            expected = (expected * count + (NUM_WORKERS - count) * previous) / NUM_WORKERS
        np.testing.assert_allclose(result, expected, atol=1e-12)
        previous = result


@settings(max_examples=EXAMPLES)
@given(losses=LOSSES, operation=OPERATIONS)
def test_feedback_loses_nothing_for_good(losses: list[list[int]], operation: str) -> None:
    """What was applied, and what is kept, is all that the workers had to give."""
    fills = fills_of(FillPolicy.FEEDBACK)
    applied = np.zeros(SIZE)
    for number, bitmaps in enumerate(losses):
        result, sent = run_sum(fills, bitmaps, number, operation)
        applied += result * NUM_WORKERS
        for worker, fill in enumerate(fills):
            places, kept = fill.kept
            assert places.tolist() == np.flatnonzero(~is_in(bitmaps, SIZE)[worker]).tolist()
            divisor = NUM_WORKERS if operation == "sum" else 1
            np.testing.assert_allclose(kept * divisor, sent[worker][places], atol=1e-12)
    had = sum(sum(contributions(number)) for number in range(len(losses)))
    outstanding = np.zeros(SIZE)
    for fill in fills:
        places, kept = fill.kept
        outstanding[places] += kept * (NUM_WORKERS if operation == "sum" else 1)
    np.testing.assert_allclose(applied + outstanding, had, atol=1e-9)


@pytest.mark.parametrize("policy", FillPolicy)
def test_a_whole_sum_stays_as_it_is(policy: FillPolicy) -> None:
    (fill, *_) = fills_of(policy)
    values = np.arange(SIZE, dtype=np.float32)
    assert fill.contribution(values) is values
    result = values * 2
    fill.complete(result, delivery_of([ALL] * 5, SIZE))
    assert result.tolist() == (values * 2).tolist()
    assert fill.contribution(values) is values, "nothing was missing, so nothing is added"
    fill.complete(result, None)
    assert result.tolist() == (values * 2).tolist()


def test_what_a_caller_gives_is_not_changed() -> None:
    (fill, *_) = fills_of(FillPolicy.FEEDBACK)
    values = np.ones(SIZE, np.float32)
    fill.contribution(values)
    fill.complete(values.copy(), delivery_of([ALL - 1, *[ALL] * 4], SIZE))
    assert fill.contribution(values)[:5].tolist() == [2.0] * 4 + [1.0]
    assert values.tolist() == [1.0] * SIZE


def test_feedback_of_a_sum_that_failed_comes_with_the_next_one() -> None:
    (fill, *_) = fills_of(FillPolicy.FEEDBACK)
    values = np.ones(SIZE, np.float32)
    fill.contribution(values)
    fill.complete(values.copy(), delivery_of([ALL - 1, *[ALL] * 4], SIZE))
    fill.contribution(values)  # and no result
    assert fill.contribution(values)[0] == 2.0


@pytest.mark.parametrize("policy", [FillPolicy.PREVIOUS, FillPolicy.FEEDBACK])
def test_what_is_not_finite_does_not_come_back(policy: FillPolicy) -> None:
    """Loss scalers skip such a step; the next one must not be lost, too."""
    (fill, *_) = fills_of(policy)
    lacking = delivery_of([ALL - 1, *[ALL] * 4], SIZE)
    bad = np.full(SIZE, np.inf, np.float32)
    fill.contribution(bad)
    fill.complete(bad.copy(), lacking)
    good = np.ones(SIZE, np.float32)
    assert np.isfinite(fill.contribution(good)).all()
    result = good.copy()
    fill.complete(result, lacking)
    assert np.isfinite(result).all()


@pytest.mark.parametrize("policy", [FillPolicy.PREVIOUS, FillPolicy.FEEDBACK])
def test_a_tensor_of_another_length_begins_without_a_past(policy: FillPolicy) -> None:
    (fill, *_) = fills_of(policy)
    lacking = delivery_of([ALL - 1] * 5, SIZE)
    values = np.full(SIZE, 8, np.float32)
    fill.contribution(values)
    fill.complete(values.copy(), lacking)
    shorter = np.full(SIZE - 1, 4, np.float32)
    assert fill.contribution(shorter).tolist() == shorter.tolist()
    result = shorter.copy()
    fill.complete(result, delivery_of([ALL - 1] * 5, SIZE - 1))
    share = 1 if policy is FillPolicy.PREVIOUS else 3 / 4
    assert result.tolist() == (shorter * share).tolist()


def test_float16_beyond_its_range_becomes_infinite() -> None:
    (fill, *_) = fills_of(FillPolicy.MEAN)
    result = np.full(SIZE, 60_000, np.float16)
    fill.complete(result, delivery_of([ALL - 1] * 5, SIZE), "sum")
    assert np.isinf(result).all()


def test_feedback_must_know_who_is_missing() -> None:
    (fill, *_) = fills_of(FillPolicy.FEEDBACK)
    fill.contribution(np.ones(SIZE, np.float32))
    unnamed = delivery_of([ALL - 1] * 5, SIZE, is_named=False)
    with pytest.raises(ConfigurationError, match=r"some of 4 workers.*do not tell which"):
        fill.complete(np.ones(SIZE, np.float32), unnamed)


@settings(max_examples=EXAMPLES)
@given(bitmaps=st.lists(st.integers(1, ALL), min_size=5, max_size=5))
def test_arrays_of_a_delivery_are_its_ranges(bitmaps: list[int]) -> None:
    delivery = delivery_of(bitmaps, SIZE)
    present = is_in(bitmaps, SIZE)
    places, counts = delivery.lacking()
    assert places.tolist() == np.flatnonzero(~present.all(axis=0)).tolist()
    assert counts.tolist() == present.sum(axis=0)[places].tolist()
    for worker in delivery.members:
        lost = delivery.lost(worker)
        assert lost is not None
        ranges = delivery.missing.get(worker, ())
        assert lost.tolist() == [e for start, end in ranges for e in range(start, end)]
    foreign = delivery.lost(NUM_WORKERS)
    assert foreign is not None
    assert foreign.tolist() == list(range(delivery.num_elements))


def test_a_sum_of_several_tensors_takes_the_strictest_tolerance() -> None:
    loose, even = LossTolerance(loss=0.2, worker_floor=0.9), LossTolerance(loss=0.1)
    assert strictest([loose, even]) == LossTolerance(loss=0.1, worker_floor=0.9)
    assert strictest([even]) == LossTolerance(loss=0.1, worker_floor=0.8)
    assert strictest([loose, None]) == NO_LOSS
    assert strictest([]) == NO_LOSS
