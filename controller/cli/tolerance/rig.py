# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A testbed whose ranks train again and again, while its links lose what the command says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self, final

from ....bmv2_topos import Testbed, single_switch
from ....bmv2_topos.impairment.impaired_links import ImpairedDirection
from ....softswitch.switch.impairments import Impairments
from .errors import ToleranceRunError
from .outcome import TrainingOutcome
from .ranks import TrainingRanks

_ROUNDING: Final = 1e-9


@dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    """Trainings of one model."""

    source: str
    """A built-in model, or a script's function."""
    rates: Sequence[float]
    """Shares of contributions that sums may lack, and that links lose; rising."""
    seeds: Sequence[int]
    fill: str = "mean"
    epochs: int | None = None
    """None: as many as the model's own."""
    timeout_s: float = 600.0
    """Of one training."""

    def request(self, rate: float, seed: int) -> dict[str, Any]:
        """Return what ranks are asked to prepare."""
        return {
            "verb": "prepare",
            "source": self.source,
            "rate": rate,
            "seed": seed,
            "fill": self.fill,
            "epochs": self.epochs,
        }


def outcome_of(
    said: Sequence[Mapping[str, Any]], drawn: tuple[float, int], where: str, *, dropped: float
) -> TrainingOutcome:
    """Return what ranks say of a training with a rate and a seed.

    Raises ToleranceRunError if they ended with different weights, or if a sum lacked too much.
    """
    rate, seed = drawn
    if len({each["weights"] for each in said}) > 1:
        raise ToleranceRunError(f"{where}: ranks ended with different weights")
    first = said[0]
    if first["most_missing"] > rate + _ROUNDING:
        raise ToleranceRunError(
            f"{where}: a sum lacked {first['most_missing']:.4f}, more than was tolerated"
        )
    return TrainingOutcome(
        rate=rate,
        seed=seed,
        metrics=tuple(first["metrics"]),
        missing=first["missing"],
        most_missing=first["most_missing"],
        dropped=dropped,
        epoch_seconds=tuple(first["epoch_seconds"]),
    )


@final
class ToleranceRig:
    """Ranks in namespaces around one switch; started once, for all trainings.

    Each link loses packets from its rank to the switch. Results are not lost: they would be sent
    again in any case. Needs root.
    """

    def __init__(self, num_ranks: int) -> None:
        """Make nothing yet."""
        self._testbed = Testbed(single_switch(num_ranks))
        self._ranks = TrainingRanks(self._testbed, self._testbed.topology.hosts)
        self._num_trainings = 0

    def __enter__(self) -> Self:
        self._ranks.__enter__()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ranks.__exit__(exc_type, exc, traceback)

    def run(self, plan: TrainingPlan) -> Iterator[TrainingOutcome]:
        """Train with each rate and seed, and return what came of each training when it ends.

        Raises ToleranceRunError with the log of a rank that ended, or if ranks ended with different
        weights, or a sum lacked more than was tolerated.
        """
        for rate in plan.rates:
            for seed in plan.seeds:
                yield self._train(plan, rate, seed)

    def _train(self, plan: TrainingPlan, rate: float, seed: int) -> TrainingOutcome:
        self._num_trainings += 1
        where = f"{plan.source}, tolerance {rate:g}, seed {seed}"
        self._ranks.ask(plan.request(rate, seed), plan.timeout_s, where)
        if rate:
            self._impair(rate)
        said = self._ranks.ask({"verb": "train"}, plan.timeout_s, where)
        cleared = self._testbed.clear_impairments() if rate else []
        return outcome_of(said, (rate, seed), where, dropped=_dropped_share(cleared))

    def _impair(self, rate: float) -> None:
        """Let each rank's link lose packets to the switch, others in each training."""
        topology = self._testbed.topology
        settings = Impairments(loss=rate, seed=self._num_trainings)
        for host in topology.hosts:
            link = topology.link_of(host)
            self._testbed.impaired_links.impair(link, settings, sender=host.name)


def _dropped_share(directions: Sequence[ImpairedDirection]) -> float:
    seen = sum(each.counters["seen"] for each in directions)
    return sum(each.dropped for each in directions) / seen if seen else 0.0
