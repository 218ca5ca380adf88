# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Learning rates that fall with delay: factors, grants, and steps with stale gradients."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from statistics import mean

import numpy as np
import pytest

from switchfold.controller.scheduler.errors import InvalidTransferError
from switchfold.controller.scheduler.training.learning_rate import (
    AdaDelayRate,
    InverseRate,
    LearningRateRule,
    SquareRootRate,
)
from transfer_cases import grants_of, make, push

RULES: list[LearningRateRule] = [
    SquareRootRate(),
    SquareRootRate(kappa=4.0),
    InverseRate(),
    AdaDelayRate(smoothness=1.0, noise=0.1),
]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("applied", [0, 3, 1000])
def test_factor_is_1_without_delay_and_falls_with_it(rule: LearningRateRule, applied: int) -> None:
    factors = [rule.factor(delay, applied) for delay in range(20)]
    assert factors[0] == 1.0
    assert all(0 < later < earlier for earlier, later in pairwise(factors))


def test_factors_are_those_of_their_formulas() -> None:
    assert SquareRootRate().factor(3, 0) == 0.5
    assert SquareRootRate(kappa=2.0).factor(8, 5) == pytest.approx((6 / 22) ** 0.5)
    assert InverseRate().factor(3, 99) == 0.25
    assert AdaDelayRate(smoothness=2.0, noise=0.5).factor(7, 9) == pytest.approx(3.5 / 4.0)


def test_grant_carries_the_factor_of_its_delay_and_place() -> None:
    scheduler = make(3, learning_rate=SquareRootRate())
    for number in (1, 2, 3):
        scheduler.submit(push(number), 0.0)
    grants = grants_of(scheduler.decide(0.0))
    assert [grant.delay for grant in grants] == [0, 1, 2]
    assert [grant.learning_rate_factor for grant in grants] == pytest.approx(
        [1.0, (2 / 3) ** 0.5, (3 / 5) ** 0.5]
    )
    scheduler = make(1)
    scheduler.submit(push(1), 0.0)
    assert grants_of(scheduler.decide(0.0))[0].learning_rate_factor == 1.0


@pytest.mark.parametrize(
    "bad",
    [
        partial(SquareRootRate, kappa=-1.0),
        partial(AdaDelayRate, smoothness=0.0, noise=1.0),
        partial(AdaDelayRate, smoothness=1.0, noise=float("nan")),
        partial(InverseRate().factor, -1, 0),
        partial(InverseRate().factor, 0, -1),
    ],
)
def test_bad_constants_are_refused(bad: Callable[[], object]) -> None:
    with pytest.raises(InvalidTransferError, match="must be"):
        bad()


SEEDS = range(8)
CURVATURES = np.linspace(0.05, 1.0, 20)


def steps_to_target(rate: float, factor: Callable[[int, int], float], seed: int) -> int | None:
    """Steps until a convex quadratic has a hundredth of its loss; None if it does not get there.

    Each gradient is of the model that is Uniform[0, 16] steps old.
    """
    generator = np.random.default_rng(seed)
    models = [np.ones(len(CURVATURES))]
    target = 0.01 * float(CURVATURES @ models[0] ** 2)
    for step in range(1000):
        delay = min(int(generator.integers(0, 17)), step)
        gradient = CURVATURES * models[step - delay]
        models.append(models[step] - rate * factor(delay, step) * gradient)
        loss = float(CURVATURES @ models[-1] ** 2)
        if loss <= target:
            return step + 1
        if loss > 1e6:
            return None
    return None


def mean_steps(rate: float, factor: Callable[[int, int], float]) -> float | None:
    steps = [steps_to_target(rate, factor, seed) for seed in SEEDS]
    found = [each for each in steps if each is not None]
    return mean(found) if len(found) == len(steps) else None


def test_adaptive_rates_need_fewer_steps_than_fixed_ones_with_delays_up_to_16() -> None:
    fixed = {
        rate: steps
        for rate in np.geomspace(0.02, 4.0, 24)
        if (steps := mean_steps(rate, lambda delay, applied: 1.0)) is not None
    }
    largest_stable = max(fixed)
    assert largest_stable < 4.0
    for rule in (SquareRootRate(), AdaDelayRate(smoothness=1.0, noise=0.1)):
        steps = mean_steps(largest_stable, rule.factor)
        assert steps is not None
        assert steps < 0.9 * fixed[largest_stable]
    # The inverse stays stable at four times the rate, and there beats every fixed one.
    steps = mean_steps(4 * largest_stable, InverseRate().factor)
    assert steps is not None
    assert steps < 0.75 * min(fixed.values())
