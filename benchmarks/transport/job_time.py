# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a training should take by the formula of Xia et al. (APNet 2019), and what it took.

    job completion time = epochs x (compute + 2 x network time)

Compute and network time are those of an epoch. The network time is that of one direction, to where
gradients are added or back. A sum contains both, so twice the network time is that of an epoch's
sums: of mean sums, or, for the tail, of as many as the 99th percentile.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks.transport.contenders import REPAIR
from switchfold.controller.cli.tolerance.outcome import TrainingOutcome, result_of
from switchfold.hostlib import ToleranceFileError


def job_time_s(epochs: float, compute_s: float, network_s: float) -> float:
    """Return the time of a job; `compute_s` and `network_s` are of an epoch."""
    return epochs * (compute_s + 2 * network_s)


@dataclass(frozen=True, kw_only=True)
class TrainingParts:
    """What was measured of one training of one contender under one condition; times in seconds."""

    compute_s: float
    """Of an epoch without sums, of the slowest rank."""
    steps: int
    """Of an epoch."""
    sums: Sequence[float]
    """Times of sums of an array with the size of the model's gradient, without training."""
    training: TrainingOutcome


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What `switchfold tolerance` has found of a model."""

    target: float
    epochs: float | None
    """To the target, mean of the seeds; None: not all of them reached it."""


def expected_of(entry: Mapping[str, Any], tolerance: float | None, where: str) -> Expected:
    """Return what an entry of the file of tolerances says; ToleranceFileError if it lacks it."""
    rate = tolerance or 0.0
    try:
        rates = {each.rate: each for each in map(result_of, entry["rates"])}
        target = float(entry["target"])
    except (KeyError, TypeError, ValueError) as exc:
        raise ToleranceFileError(f"{where} has no figures of trainings: {exc!r}") from exc
    if rate not in rates:
        known = ", ".join(f"{each:g}" for each in sorted(rates))
        raise ToleranceFileError(
            f"{where} has no trainings that tolerate {rate:g}, only {known}; measure it with"
            " `switchfold tolerance --rates`, or give another --tolerance"
        )
    return Expected(target=target, epochs=rates[rate].mean_epochs)


@dataclass(frozen=True, kw_only=True)
class JobFigures:
    """A contender's trainings of one model under one condition, all seeds; times in seconds."""

    accuracy_s: float | None
    """Mean time to the target; None: a seed did not reach it."""
    epochs: float | None
    """Mean to the target."""
    metric: float
    """After the last epoch, mean."""
    missing: float
    """Mean share of gradients that was in no sum."""
    epoch_s: float
    """Mean."""
    compute_s: float
    steps: int
    sum_mean_s: float
    sum_p99_s: float
    formula_mean_s: float | None
    """By the formula with mean sums; None: the file of tolerances has no epochs."""
    formula_p99_s: float | None
    """With sums that all take the 99th percentile."""
    lost_share: float
    """Of the packets that came to a place of loss during trainings."""


def figures_of(parts: Sequence[TrainingParts], expected: Expected) -> JobFigures:
    """Return the figures of at least one training."""
    sums = [seconds for each in parts for seconds in each.sums]
    sum_mean_s, sum_p99_s = statistics.fmean(sums), float(np.percentile(sums, 99))
    compute_s = statistics.fmean(each.compute_s for each in parts)
    steps = parts[0].steps

    def formula(sum_s: float) -> float | None:
        if expected.epochs is None:
            return None
        return job_time_s(expected.epochs, compute_s, steps * sum_s / 2)

    trainings = [each.training for each in parts]
    return JobFigures(
        accuracy_s=_mean([each.seconds_to(expected.target) for each in trainings]),
        epochs=_mean([each.epochs_to(expected.target) for each in trainings]),
        metric=statistics.fmean(each.metrics[-1] for each in trainings),
        missing=statistics.fmean(each.missing for each in trainings),
        epoch_s=statistics.fmean(s for each in trainings for s in each.epoch_seconds),
        compute_s=compute_s,
        steps=steps,
        sum_mean_s=sum_mean_s,
        sum_p99_s=sum_p99_s,
        formula_mean_s=formula(sum_mean_s),
        formula_p99_s=formula(sum_p99_s),
        lost_share=statistics.fmean(each.dropped for each in trainings),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [each for each in values if each is not None]
    return statistics.fmean(known) if len(known) == len(values) else None


def gain(other: float | None, own: float | None) -> float | None:
    """Return a time of another contender over the own one: above 1, the own is faster."""
    return None if other is None or own is None else other / own


def rows_of(found: Mapping[str, JobFigures]) -> dict[str, dict[str, Any]]:
    """Return the figures of a model's contenders as plain data, with gains over repair."""
    base = found.get(REPAIR)
    return {
        name: {
            **asdict(each),
            "gains": {
                field: gain(getattr(base, field), getattr(each, field)) if base else None
                for field in ("accuracy_s", "formula_mean_s", "formula_p99_s")
            },
        }
        for name, each in found.items()
    }


HEADING = (
    "| contender | time to accuracy against repair: measured, formula, formula with p99"
    " | seconds to accuracy | by formula, with p99 | epochs, expected | metric | missing"
    " | epoch, s | of it compute | sum: mean, p99, ms | lost |\n"
    "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
)


def line_of(title: str, row: Mapping[str, Any], expected: Expected) -> str:
    """Return a contender's line of the table."""
    gains = ", ".join(_text(each, ".2f") for each in row["gains"].values())
    formula = f"{_text(row['formula_mean_s'], '.1f')}, {_text(row['formula_p99_s'], '.1f')}"
    return (
        f"| {title} | {gains} | {_text(row['accuracy_s'], '.1f')} | {formula}"
        f" | {_text(row['epochs'], '.1f')}, {_text(expected.epochs, '.1f')} | {row['metric']:.3f}"
        f" | {row['missing']:.3f} | {row['epoch_s']:.2f} | {row['compute_s']:.2f}"
        f" | {1e3 * row['sum_mean_s']:.0f}, {1e3 * row['sum_p99_s']:.0f}"
        f" | {100 * row['lost_share']:.1f} % |"
    )


def _text(value: float | None, form: str) -> str:
    return "-" if value is None or not math.isfinite(value) else format(value, form)
