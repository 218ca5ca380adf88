# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Which tolerance is found, from tables of trainings whose answer is known."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from switchfold.controller.cli.tolerance.errors import ToleranceRunError
from switchfold.controller.cli.tolerance.outcome import (
    FoundTolerance,
    TrainingOutcome,
    judge,
    result_of,
)
from switchfold.controller.cli.tolerance.plot import draw_tolerances
from switchfold.controller.errors import ConfigError
from switchfold.hostlib import ToleranceFileError

EPOCHS = 10
SPREAD = 0.01
"""Of the final metrics, by seed: 0.98, 1.00 and 1.02 times what they are around."""
SEEDS = (1, 2, 3)


def training(
    rate: float,
    seed: int,
    *,
    epochs: int = 4,
    final: float = 1.0,
    missing: float | None = None,
) -> TrainingOutcome:
    """Return a training that is at the target from epoch `epochs` on; 0: it never is."""
    end = final + 2 * SPREAD * (seed - 2)
    metrics = [0.0]
    for epoch in range(1, EPOCHS):
        metrics.append(max(end, 0.97) if epochs and epoch >= epochs else 0.5)
    share = rate * 0.9 if missing is None else missing
    return TrainingOutcome(
        rate=rate,
        seed=seed,
        metrics=(*metrics, end),
        missing=share,
        most_missing=min(share * 1.1, rate),
        dropped=rate,
        epoch_seconds=tuple(range(1, EPOCHS + 1)),
    )


def test_time_to_the_target_is_that_of_the_epochs_before() -> None:
    outcome = training(0.1, 1, epochs=3)
    assert (outcome.epochs_to(0.9), outcome.seconds_to(0.9)) == (3, 1 + 2 + 3)
    assert outcome.seconds_to(5.0) is None


def found(*rows: tuple[float, int, float]) -> FoundTolerance:
    """Judge rows of rate, epochs to the target, and the final metric around which seeds are."""
    return judge(
        "m",
        [
            training(rate, seed, epochs=epochs, final=final)
            for rate, epochs, final in rows
            for seed in SEEDS
        ],
    )


WHOLE = (0.0, 4, 1.0)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([(0.1, 4, 1.0), (0.2, 4, 1.0)], (0.2, 0.2)),
        ([(0.1, 5, 1.0), (0.2, 6, 1.0)], (0.1, 0.2)),
        ([(0.1, 3, 1.0), (0.2, 2, 1.0)], (0.2, 0.2)),
        ([(0.1, 4, 0.985), (0.2, 4, 0.975)], (0.2, 0.1)),
        ([(0.1, 4, 1.1), (0.2, 4, 1.2)], (0.2, 0.2)),
        ([(0.1, 0, 0.99), (0.2, 4, 1.0)], (0.0, 0.2)),
        ([(0.1, 6, 0.9), (0.2, 4, 1.0)], (0.0, 0.0)),
        ([(0.1, 4, 1.0), (0.2, 4, 0.9), (0.4, 4, 1.0)], (0.4, 0.1)),
    ],
    ids=[
        "both pass",
        "one epoch more is equal",
        "fewer epochs are equal",
        "within a standard deviation of 0.02",
        "a better metric is equal",
        "the target is never reached",
        "none passes below one that fails",
        "none counts beyond one that fails",
    ],
)
def test_largest_tolerance_by_each_criterion(
    rows: Sequence[tuple[float, int, float]], expected: tuple[float, float]
) -> None:
    result = found(WHOLE, *rows)
    assert (result.equal_epochs, result.equal_metric) == expected
    assert result.loss == min(expected)


def test_target_is_most_of_the_gain_without_loss() -> None:
    assert found(WHOLE, (0.1, 4, 1.0)).target == pytest.approx(0.95)


def test_all_seeds_reach_the_target_without_loss() -> None:
    """One seed stays at 0.8; the mean of the three is 0.93, and 95 % of it more than 0.8."""
    whole = [training(0.0, seed, final=1.0 if seed > 1 else 0.82) for seed in SEEDS]
    for each in whole[:1]:
        assert max(each.metrics) < 1
    outcomes = [*whole, *(training(0.1, seed) for seed in SEEDS)]
    result = judge("m", outcomes)
    assert all(epoch is not None for epoch in result.rates[0].epochs)


def test_one_seed_is_judged_by_epochs_alone() -> None:
    result = judge("m", [training(0.0, 2), training(0.1, 2, final=0.5)])
    assert result.equal_metric is None
    assert result.rates[1].has_equal_metric is None
    assert result.loss == result.equal_epochs == 0.1


def test_what_lacked_nothing_was_not_tried() -> None:
    outcomes = [training(0.0, seed) for seed in SEEDS]
    outcomes += [training(0.01, seed, missing=0.0) for seed in SEEDS]
    result = judge("m", outcomes)
    assert [each.is_tried for each in result.rates] == [False, False]
    assert result.loss == 0
    outcomes += [training(0.1, seed) for seed in SEEDS]
    assert judge("m", outcomes).loss == 0.1


def test_a_training_that_diverged_fails_and_is_stored() -> None:
    outcomes = [training(0.0, seed) for seed in SEEDS]
    outcomes += [training(0.1, seed, epochs=0, final=math.nan) for seed in SEEDS]
    result = judge("m", outcomes)
    assert result.loss == 0
    stored = json.loads(json.dumps(result.entry(), allow_nan=False))
    assert stored["rates"][1]["metrics"] == [None] * 3
    assert math.isnan(result_of(stored["rates"][1]).mean_metric)


def test_what_is_stored_is_the_same_result() -> None:
    result = found(WHOLE, (0.1, 5, 0.99), (0.2, 0, 0.5))
    stored = json.loads(json.dumps(result.entry(workers=4, seeds=3, fill="mean")))
    assert (stored["loss"], stored["x1"], stored["x2"]) == (0.1, 0.1, 0.1)
    assert (stored["workers"], stored["fill"]) == (4, "mean")
    assert tuple(map(result_of, stored["rates"])) == result.rates


def test_order_of_trainings_does_not_matter() -> None:
    generator = random.Random(1)
    rows = [WHOLE, (0.05, 4, 0.99), (0.1, 5, 0.98), (0.2, 6, 0.9)]
    outcomes = [
        training(rate, seed, epochs=epochs, final=final)
        for rate, epochs, final in rows
        for seed in SEEDS
    ]
    expected = judge("m", outcomes)
    for _ in range(20):
        generator.shuffle(outcomes)
        assert judge("m", outcomes) == expected


def test_a_worse_training_never_raises_the_tolerance() -> None:
    """Random tables: later target or lower metric at one rate."""
    generator = random.Random(2)
    for _ in range(200):
        rows = [
            (rate, generator.choice([0, 3, 4, 5, 6]), generator.choice([0.9, 0.985, 1.0]))
            for rate in (0.05, 0.1, 0.2, 0.4)
        ]
        before = found(WHOLE, *rows)
        worse = generator.randrange(len(rows))
        rate, epochs, final = rows[worse]
        rows[worse] = (rate, 0 if generator.random() < 0.5 else epochs, final - 0.05)
        after = found(WHOLE, *rows)
        assert after.equal_epochs <= before.equal_epochs
        assert (after.equal_metric or 0) <= (before.equal_metric or 0)
        assert after.loss in (0.0, *(row[0] for row in rows))


@pytest.mark.parametrize(
    ("outcomes", "wrong"),
    [
        ([training(0.1, 1)], "no training without loss"),
        ([training(0.0, 1), training(0.0, 1)], "seed 1 came twice"),
        ([training(0.0, 1), training(0.1, 2)], r"rates \[0.1\] have other seeds than \[1\]"),
    ],
)
def test_tables_with_gaps_are_refused(outcomes: list[TrainingOutcome], wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        judge("m", outcomes)


@pytest.mark.parametrize("final", [0.0, -0.1, math.nan])
def test_training_that_gains_nothing_is_an_error(final: float) -> None:
    with pytest.raises(ToleranceRunError, match="m: training without loss gains nothing"):
        judge("m", [training(0.0, 2, epochs=0, final=final)])


def test_all_models_are_drawn(tmp_path: Path) -> None:
    entry = found(WHOLE, (0.1, 5, 0.99), (0.2, 0, 0.5)).entry()
    picture = tmp_path / "tolerance.svg"
    draw_tolerances({"one": entry, "two": entry, "three": entry}, picture)
    text = picture.read_text("utf-8")
    assert all(f"{name}: tolerates 0.1" in text for name in ("one", "two", "three"))
    assert text.count("0 of 3") >= 3


def test_pictures_that_cannot_be_drawn_are_errors(tmp_path: Path) -> None:
    entry = found(WHOLE, (0.1, 5, 0.99)).entry()
    with pytest.raises(ConfigError, match=r"does not end in .svg, .png, .pdf"):
        draw_tolerances({"m": entry}, tmp_path / "picture.txt")
    with pytest.raises(ConfigError, match="cannot write"):
        draw_tolerances({"m": entry}, tmp_path / "missing" / "picture.png")
    for broken in ({"loss": 0.1}, {**entry, "rates": [{"rate": 0.1}]}, {**entry, "rates": 3}):
        with pytest.raises(ToleranceFileError, match="model 'm' has no measurements"):
            draw_tolerances({"m": broken}, tmp_path / "picture.png")
