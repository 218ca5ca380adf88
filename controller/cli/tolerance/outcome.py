# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Which loss a model bears, from trainings with several tolerances and seeds.

Two criteria, each against training without loss:

x1  all seeds reach the target, after at most one epoch more on average
x2  the final metric is at most one standard deviation of the seeds lower on average

The target is a part of what training without loss gains. A tolerance counts only if all lower ones
pass as well: one that passes beyond one that fails does so by luck.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from .errors import ToleranceRunError

TARGET_SHARE: Final = 0.95
"""Of the gain from the untrained to the trained model without loss."""
MORE_EPOCHS: Final = 1.0
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, kw_only=True)
class TrainingOutcome:
    """How one training went."""

    rate: float
    """Share of contributions that sums might lack, and that links lost."""
    seed: int
    metrics: tuple[float, ...]
    """Of the untrained model, and after each epoch."""
    missing: float
    """Share of all ranks' gradients that was in no sum."""
    most_missing: float
    """The same of the sum that lacked most."""
    dropped: float
    """Share of the ranks' packets that links dropped."""
    epoch_seconds: tuple[float, ...]
    """How long each epoch took, without the metric."""

    def __post_init__(self) -> None:
        """Check that there is something to judge."""
        if len(self.metrics) < 2:
            raise ValueError("a training has a metric before its first epoch and after each")

    def epochs_to(self, target: float) -> int | None:
        """Return the first epoch after which the metric is at the target; None: it never is."""
        for epoch, metric in enumerate(self.metrics[1:], 1):
            if metric >= target:
                return epoch
        return None

    def seconds_to(self, target: float) -> float | None:
        """Return how long the epochs to the target took; None: it is never reached."""
        epochs = self.epochs_to(target)
        return None if epochs is None else math.fsum(self.epoch_seconds[:epochs])


@dataclass(frozen=True, kw_only=True)
class RateResult:
    """All seeds of one tolerance."""

    rate: float
    missing: float
    """Mean share of gradients that were in no sum."""
    most_missing: float
    """Of any sum."""
    dropped: float
    """Mean share of packets that links dropped."""
    epochs: tuple[int | None, ...]
    """To the target, by seed; None: not reached."""
    metrics: tuple[float, ...]
    """After the last epoch, by seed."""
    has_equal_epochs: bool
    has_equal_metric: bool | None
    """None: a single seed has no standard deviation to compare with."""

    @property
    def mean_epochs(self) -> float | None:
        """Mean of the seeds; None if one did not reach the target."""
        reached = [epoch for epoch in self.epochs if epoch is not None]
        return statistics.fmean(reached) if len(reached) == len(self.epochs) else None

    @property
    def shown_epochs(self) -> str:
        """The mean, or how many seeds reached the target."""
        mean = self.mean_epochs
        reached = sum(epoch is not None for epoch in self.epochs)
        return f"{reached} of {len(self.epochs)}" if mean is None else f"{mean:.1f}"

    @property
    def mean_metric(self) -> float:
        """Mean of the seeds."""
        return statistics.fmean(self.metrics)

    @property
    def deviation(self) -> float | None:
        """Standard deviation of the final metric; None of a single seed."""
        return statistics.stdev(self.metrics) if len(self.metrics) > 1 else None

    @property
    def is_tried(self) -> bool:
        """Whether any sum lacked anything; small tensors lack nothing at low rates."""
        return self.missing > 0


@dataclass(frozen=True, kw_only=True)
class FoundTolerance:
    """What a model bears."""

    model: str
    target: float
    rates: tuple[RateResult, ...]
    """Rising; the first is without loss."""

    @property
    def equal_epochs(self) -> float:
        """Largest tolerance with equal epochs (x1); 0: none was found."""
        return self._largest(lambda each: each.has_equal_epochs)

    @property
    def equal_metric(self) -> float | None:
        """Largest tolerance with an equal final metric (x2); 0: none, None: one seed only."""
        if self.rates[0].deviation is None:
            return None
        return self._largest(lambda each: bool(each.has_equal_metric))

    @property
    def loss(self) -> float:
        """Largest tolerance by both criteria, as far as both are known."""
        by_metric = self.equal_metric
        return self.equal_epochs if by_metric is None else min(self.equal_epochs, by_metric)

    def _largest(self, passes: Callable[[RateResult], bool]) -> float:
        largest = 0.0
        for each in self.rates[1:]:
            if not each.is_tried:
                continue
            if not passes(each):
                break
            largest = each.rate
        return largest

    def entry(self, **circumstances: Any) -> dict[str, Any]:
        """Return what `hostlib.tolerance_file` stores of a model."""
        return {
            "loss": self.loss,
            "worker_floor": None,
            "x1": self.equal_epochs,
            "x2": self.equal_metric,
            **circumstances,
            "target": self.target,
            "rates": [_stored(each) for each in self.rates],
        }


def result_of(fields: Mapping[str, Any]) -> RateResult:
    """Return what `FoundTolerance.entry` stored of a rate; else raises KeyError or TypeError."""
    metrics = tuple(math.nan if metric is None else metric for metric in fields["metrics"])
    changed: dict[str, Any] = {**fields, "epochs": tuple(fields["epochs"]), "metrics": metrics}
    return RateResult(**changed)


def judge(model: str, outcomes: Sequence[TrainingOutcome]) -> FoundTolerance:
    """Compare trainings with those of the same seeds without loss.

    Raises ValueError unless there is one training for each rate, 0 included, and seed, and
    ToleranceRunError if training without loss gains nothing.
    """
    by_rate: dict[float, dict[int, TrainingOutcome]] = {}
    for each in outcomes:
        of_rate = by_rate.setdefault(each.rate, {})
        if each.seed in of_rate:
            raise ValueError(f"{model}: rate {each.rate:g} and seed {each.seed} came twice")
        of_rate[each.seed] = each
    if 0.0 not in by_rate:
        raise ValueError(f"{model}: no training without loss, with which others are compared")
    seeds = sorted(by_rate[0.0])
    wrong = [rate for rate, of_rate in by_rate.items() if sorted(of_rate) != seeds]
    if wrong:
        raise ValueError(f"{model}: rates {wrong} have other seeds than {seeds}")
    whole = [by_rate[0.0][seed] for seed in seeds]
    target = _target(model, whole)
    results: list[RateResult] = []
    for rate in sorted(by_rate):
        of_seeds = [by_rate[rate][seed] for seed in seeds]
        results.append(_result(of_seeds, target, results[0] if results else None))
    return FoundTolerance(model=model, target=target, rates=tuple(results))


def _target(model: str, whole: Sequence[TrainingOutcome]) -> float:
    """Return a metric that training without loss reaches, for all seeds."""
    before = statistics.fmean(each.metrics[0] for each in whole)
    after = statistics.fmean(each.metrics[-1] for each in whole)
    if not after > before:
        raise ToleranceRunError(
            f"{model}: training without loss gains nothing: its metric is {before:.4g} before and"
            f" {after:.4g} after it. More is better; train longer, or mend the task"
        )
    wanted = before + TARGET_SHARE * (after - before)
    return min(wanted, *(max(each.metrics[1:]) for each in whole))


def _result(
    of_seeds: Sequence[TrainingOutcome], target: float, whole: RateResult | None
) -> RateResult:
    metrics = tuple(each.metrics[-1] for each in of_seeds)
    epochs = tuple(each.epochs_to(target) for each in of_seeds)
    return RateResult(
        rate=of_seeds[0].rate,
        missing=statistics.fmean(each.missing for each in of_seeds),
        most_missing=max(each.most_missing for each in of_seeds),
        dropped=statistics.fmean(each.dropped for each in of_seeds),
        epochs=epochs,
        metrics=metrics,
        has_equal_epochs=_has_equal_epochs(epochs, whole),
        has_equal_metric=_has_equal_metric(metrics, whole),
    )


def _stored(result: RateResult) -> dict[str, Any]:
    """Return the fields for JSON, which has no NaN and no infinity."""
    finite = [metric if math.isfinite(metric) else None for metric in result.metrics]
    return {**asdict(result), "metrics": finite}


def _has_equal_epochs(epochs: Sequence[int | None], whole: RateResult | None) -> bool:
    reached = [epoch for epoch in epochs if epoch is not None]
    if len(reached) < len(epochs):
        return False
    if whole is None:
        return True
    least = whole.mean_epochs
    assert least is not None, "training without loss reaches its own target"
    return statistics.fmean(reached) <= least + MORE_EPOCHS + _ROUNDING


def _has_equal_metric(metrics: Sequence[float], whole: RateResult | None) -> bool | None:
    if len(metrics) < 2:
        return None
    if not all(map(math.isfinite, metrics)):
        return False
    if whole is None:
        return True
    deviation = whole.deviation
    assert deviation is not None, "as many seeds as without loss"
    return statistics.fmean(metrics) >= whole.mean_metric - deviation - _ROUNDING
