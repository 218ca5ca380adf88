# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Tolerances that follow training: all workers switch in the same step, without a message."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lossy_sums import delivery_of
from slot_simulation import Simulation
from switchfold.hostlib import (
    ConfigurationError,
    CriticalRegimes,
    Delivery,
    LossGuard,
    LossTolerance,
)
from switchfold.hostlib.loss_tolerance import NO_LOSS
from switchfold.hostlib.step_tolerance import StepTolerance, squared_norm

HIGH, LOW = LossTolerance(loss=0.3), LossTolerance(loss=0.02)
NUM_WORKERS = 4
WHOLE = delivery_of([0b1111] * 3, 12)


def steps_of(
    gradients: Iterable[Sequence[float]], critical: CriticalRegimes, tolerance: Any = HIGH
) -> list[LossTolerance | None]:
    """Return what each step may lack in which two sums have these gradients."""
    steps = StepTolerance(critical, tolerance=tolerance)
    found: list[LossTolerance | None] = []
    for gradient in gradients:
        steps.begin_step()
        found.append(steps.of(tolerance))
        for key, part in enumerate(np.array_split(np.array(gradient, np.float32), 2)):
            steps.note(key, part, WHOLE)
    return found


@settings(max_examples=30)
@given(
    values=st.lists(st.floats(-(2.0**99), 2.0**99, width=32), min_size=1, max_size=40),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 99),
)
def test_norm_is_that_of_the_values_in_any_order(
    values: list[float], dtype: Any, seed: int
) -> None:
    found = squared_norm(np.array(values, dtype))
    assert found is not None
    exact = sum(Fraction(value) ** 2 for value in values)
    error = 2 * math.sqrt(len(values)) * 2**-20
    assert Fraction(1 - error) ** 2 * exact <= found <= Fraction(1 + error) ** 2 * exact
    shuffled = np.random.default_rng(seed).permutation(np.array(values, dtype))
    assert squared_norm(shuffled) == found


def test_norm_of_more_values_than_fit_into_a_piece() -> None:
    assert squared_norm(np.full(200_003, -3, np.float16)) == 9 * 200_003
    assert squared_norm(np.zeros(200_003, np.float32)) == 0
    assert squared_norm(np.empty(0, np.float32)) == 0


@pytest.mark.parametrize("value", [1e-45, 1e38, 1e-300, 1e308])
def test_norm_of_the_smallest_and_largest_numbers(value: float) -> None:
    dtype = np.float32 if 1e-46 < value < 1e39 else np.float64
    found = squared_norm(np.full(4, value, dtype))
    assert found is not None
    exact = 4 * Fraction(float(dtype(value))) ** 2
    assert Fraction(99, 100) * exact < found < Fraction(101, 100) * exact


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_norm_that_is_not_finite_is_none(value: float) -> None:
    assert squared_norm(np.array([1, value, 2], np.float32)) is None


@pytest.mark.parametrize(
    ("norms", "criticals"),
    [
        # The first two checks are compared before the third step.
        ([4, 4, 4, 4], [True, True, False, False]),
        # Half as much again, or half as much, is a change of eta.
        ([4, 4, 6, 6, 6], [True, True, False, True, False]),
        ([4, 4, 2, 2, 2], [True, True, False, True, False]),
        ([4, 4, 5.75, 3.25, 4.5], [True, True, False, False, False]),
        # What is not finite is no check.
        ([4, 4, math.nan, 4, math.inf, 8, 8], [True, True, False, False, False, False, True]),
        ([0, 0, 0, 1, 0, 0], [True, True, False, False, True, True]),
    ],
)
def test_change_of_the_norm_begins_a_critical_regime(
    norms: list[float], criticals: list[bool]
) -> None:
    gradients = [[norm / 2] * 4 for norm in norms]
    found = steps_of(gradients, CriticalRegimes(low=LOW, interval=1))
    assert [each != HIGH for each in found] == criticals
    lows = [each for each in found if each not in (HIGH, None)]
    assert {(each.loss, each.least_of_worker) for each in lows if each} == {(0.02, 0.96)}


def test_checks_are_so_many_steps_apart_and_a_regime_lasts_until_the_next() -> None:
    """Of steps of 3, the norms of 2, 5, 8 ... count, from 0; the others jump to no effect."""
    norms = [1, 8, 4, 1, 8, 4, 1, 8, 6, 1, 8, 6, 1, 8]
    found = steps_of([[norm] for norm in norms], CriticalRegimes(low=LOW, interval=3))
    regimes = [(each != HIGH, len(list(run))) for each, run in itertools.groupby(found)]
    assert regimes == [(True, 6), (False, 3), (True, 3), (False, 2)]


def test_low_does_not_raise_what_a_sum_may_lack() -> None:
    strict = LossTolerance(loss=0.01, worker_floor=0.99)
    steps = StepTolerance(CriticalRegimes(low=LOW), tolerance=HIGH)
    steps.begin_step()
    assert steps.of(strict) == strict
    assert steps.of(None) is None


def test_restart_begins_as_at_first() -> None:
    steps = StepTolerance(CriticalRegimes(low=LOW, interval=1), tolerance=HIGH)
    for norm in (1, 1, 9, 9):
        steps.begin_step()
        steps.note("layer", np.array([norm], np.float32), WHOLE)
    steps.restart()
    assert steps.is_critical
    for norm in (1, 1):
        steps.begin_step()
        assert steps.is_critical
        steps.note("layer", np.array([norm], np.float32), WHOLE)
    steps.begin_step()
    assert not steps.is_critical


@pytest.mark.parametrize(
    ("option", "options", "text"),
    [
        (CriticalRegimes, {"low": 0.1}, r"low is 0\.1; give a LossTolerance"),
        (CriticalRegimes, {"low": LOW, "eta": 0}, "eta is 0; it is the share"),
        (CriticalRegimes, {"low": LOW, "eta": math.nan}, "eta is nan; it is the share"),
        (CriticalRegimes, {"low": LOW, "interval": 0}, "interval is 0; it is the number of steps"),
        (LossGuard, {"share": 0}, "share is 0; it is a share of what sums could lack"),
        (LossGuard, {"window": 0}, "window is 0; it is a number of steps"),
        (LossGuard, {"reliable_steps": -1}, "reliable_steps is -1; it is a number of steps"),
        (LossGuard, {"least_coverage": 1.5}, r"least_coverage is 1\.5; it is a share of all"),
    ],
)
def test_wrong_options_are_refused(option: Any, options: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        option(**options)


def test_options_that_change_nothing_are_refused() -> None:
    critical, guard = CriticalRegimes(low=LOW), LossGuard()
    with pytest.raises(ConfigurationError, match=r"may lack 0\.02 in critical regimes, and 0\.02"):
        StepTolerance(critical, tolerance=LOW)
    with pytest.raises(ConfigurationError, match=r"critical is 0\.02; give a CriticalRegimes"):
        StepTolerance(cast("Any", 0.02), tolerance=HIGH)
    with pytest.raises(ConfigurationError, match="critical regimes of sums that lack nothing"):
        StepTolerance(critical)
    with pytest.raises(ConfigurationError, match="a loss guard of sums that lack nothing"):
        StepTolerance(guard=guard)


class SimulatedTraining:
    """Workers that sum a gradient a step in simulated time, and decide each by itself."""

    def __init__(self, loss: float, tolerance: LossTolerance = HIGH, **options: Any) -> None:
        self.tolerance = tolerance
        self.simulation = Simulation(NUM_WORKERS, tolerance=tolerance)
        self.simulation.sum(100)  # the window opens
        self.loss = loss
        self.simulation.losses = lambda worker, to, row: (
            to is None and self.simulation.random.random() < self.loss
        )
        self.workers = [StepTolerance(tolerance=tolerance, **options) for _ in range(NUM_WORKERS)]
        self.deliveries: list[Delivery] = []

    def step(self, norm: float = 1, num_chunks: int = 100) -> None:
        """Make a step; all workers must have decided alike."""
        for worker in self.workers:
            worker.begin_step()
        (tolerance,) = {worker.of(self.tolerance) for worker in self.workers}
        assert tolerance is not None
        self.simulation.tolerance = tolerance
        self.simulation.sum(num_chunks)
        deliveries = [
            # A worker whose result is gone fetches that of another one.
            delivery_of(
                (self.simulation.bitmaps if each.has_missed else each.bitmaps).tolist(),
                4 * num_chunks,
                tolerance=tolerance,
            )
            for each in self.simulation.workers
        ]
        self.deliveries.append(deliveries[0])
        for worker, delivery in zip(self.workers, deliveries, strict=True):
            worker.note(0, np.full(4, norm / 2, np.float32), delivery)


def test_coverage_follows_a_scripted_jump_of_the_norm() -> None:
    """A tenth of what workers send is lost: less than high regimes tolerate, more than low ones."""
    training = SimulatedTraining(0.1, critical=CriticalRegimes(low=LOW, interval=2))
    for norm in (4, 4, 4, 4, 4, 4, 16, 16, 16, 16):
        training.step(norm)
    tolerated = [delivery.tolerance for delivery in training.deliveries]
    is_low = [each is not None and each.loss == LOW.loss for each in tolerated]
    assert is_low == [True] * 4 + [False] * 4 + [True] * 2
    for delivery, low in zip(training.deliveries, is_low, strict=True):
        assert (delivery.coverage >= 1 - LOW.loss) == low
        assert delivery.coverage >= 1 - HIGH.loss


def test_guard_acts_on_loss_beyond_the_tolerance_and_lets_go_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Two steps are measured; then three lack nothing, whatever is lost, on all workers."""
    tenth = LossTolerance(loss=0.1)
    training = SimulatedTraining(
        0.02, tenth, guard=LossGuard(share=0.7, window=2, reliable_steps=3)
    )
    for loss, num_steps in ((0.02, 4), (0.2, 7), (0.02, 4)):
        training.loss = loss
        for _ in range(num_steps):
            training.step()
    is_whole = [delivery.tolerance == NO_LOSS for delivery in training.deliveries]
    # The first step of heavy loss is measured with one of light loss, the second with the first.
    assert is_whole == [False] * 6 + [True] * 3 + [False] * 2 + [True] * 3 + [False]
    for delivery, whole in zip(training.deliveries, is_whole, strict=True):
        assert delivery.coverage >= (1 if whole else 1 - tenth.loss)
    assert {worker.num_guarded for worker in training.workers} == {2}
    assert not any(worker.is_reliable for worker in training.workers)
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(said) == 2 * NUM_WORKERS
    assert len(set(said)) == 2
    assert "lack nothing" in said[0]


def measure(steps: StepTolerance, *bitmaps: int, tolerance: LossTolerance = HIGH) -> None:
    """Make a step of one sum in a row of 4 workers, with a chunk for each bitmap."""
    steps.begin_step()
    delivery = delivery_of(bitmaps, 4 * len(bitmaps), tolerance=tolerance)
    steps.note("layer", np.zeros(4, np.float32), delivery)


def test_guard_measures_all_sums_of_a_window_together() -> None:
    """Three of ten chunks' contributions could be missing: 12 a step, and 18 of 24 are enough."""
    steps = StepTolerance(guard=LossGuard(share=0.75, window=2), tolerance=HIGH)
    whole, lacking = [0b1111] * 10, [0b0111] * 9 + [0b1111]
    for bitmaps, is_reliable in ((whole, False), (lacking, False), (lacking, False)):
        measure(steps, *bitmaps)
        assert steps.is_reliable == is_reliable
    steps.begin_step()
    assert steps.is_reliable
    assert steps.of(HIGH) == NO_LOSS
    assert steps.of(None) is None
    assert steps.num_guarded == 1


def test_sums_that_could_lack_nothing_do_not_call_the_guard() -> None:
    steps = StepTolerance(guard=LossGuard(window=1), tolerance=HIGH)
    for _ in range(3):
        measure(steps, 0b1111, tolerance=NO_LOSS)
        assert not steps.is_reliable


def test_steps_of_little_coverage_are_to_be_skipped_and_counted() -> None:
    guard = LossGuard(share=1, least_coverage=0.9)
    steps = StepTolerance(guard=guard, tolerance=HIGH)
    assert not steps.should_skip
    found: list[tuple[bool, int]] = []
    for bitmaps in ([0b1111] * 10, [0b0111] * 4 + [0b1111] * 6, [0b0111] * 5 + [0b1111] * 5):
        measure(steps, *bitmaps)
        found += [(steps.should_skip, steps.num_skipped)] * 2
    assert found == [(False, 0)] * 4 + [(True, 1)] * 2
    measure(steps, 0b1111)
    assert (steps.should_skip, steps.num_skipped) == (False, 1)
