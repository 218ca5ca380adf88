# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Ranks of `switchfold tolerance` on the workers of the fabric whose switches add."""

from __future__ import annotations

import os
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self, final

from benchmarks.transport.conditions import LOSSLESS, LossCondition
from benchmarks.transport.contenders import TransportContender
from benchmarks.transport.fabrics import (
    WORKERS,
    fabric,
    host_named,
    impair_workers,
    module_environment,
)
from benchmarks.transport.job_time import TrainingParts
from benchmarks.transport.readings import LinkReading
from switchfold.bmv2_topos import Testbed
from switchfold.controller.cli.tolerance.errors import ToleranceRunError
from switchfold.controller.cli.tolerance.ranks import TrainingRanks
from switchfold.controller.cli.tolerance.rig import TrainingPlan, outcome_of

_MODULE: Final = f"{__package__}.training_rank"


@dataclass(frozen=True, kw_only=True)
class TrainingCase:
    """One training."""

    plan: TrainingPlan
    """Of which the rates and seeds are not used."""
    contender: TransportContender
    condition: LossCondition
    seed: int
    rounds: int
    """Sums that are timed before it."""

    def __str__(self) -> str:
        return (
            f"condition {self.condition.name}, {self.plan.source}, {self.contender.name},"
            f" seed {self.seed}"
        )


@final
class TrainingRig:
    """The fabric and its ranks, up until the end of a `with` block.

    TCP crosses the same switches as ordinary packets, so all contenders have the same links.
    """

    def __init__(self, rate_bits_per_s: int) -> None:
        """Make nothing yet."""
        self._testbed = Testbed(fabric(rate_bits_per_s), name=f"ta{os.getpid()}")
        hosts = [host_named(self._testbed.topology, name) for name in WORKERS]
        self._addresses = [host.address for host in hosts]
        self._ranks = TrainingRanks(self._testbed, hosts, _MODULE, module_environment())

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

    def train(self, case: TrainingCase) -> TrainingParts:
        """Train once, and time its parts. Links lose nothing until the model is made.

        Raises ToleranceRunError if a rank ended, a sum was wrong or lacked more than is tolerated,
        or ranks ended with different weights; the rig is of no use then.
        """
        rate = case.contender.tolerance or 0.0
        request = {
            **case.plan.request(rate, case.seed),
            "contender": case.contender.name,
            "addresses": self._addresses,
        }
        impair_workers(self._testbed, LOSSLESS, seed=case.seed)
        self._ask(request, case)
        computed = self._ask({"verb": "compute"}, case)
        self._sum(0, case)  # connects, where it goes by TCP
        impair_workers(self._testbed, case.condition, seed=case.seed)
        sums = [self._sum(number, case) for number in range(1, case.rounds + 1)]
        before = LinkReading.of(self._testbed)
        said = self._ask({"verb": "train"}, case)
        after = LinkReading.of(self._testbed)
        impair_workers(self._testbed, LOSSLESS, seed=case.seed)
        lost = (after.lost - before.lost) / max(1, after.seen - before.seen)
        return TrainingParts(
            compute_s=max(each["compute_s"] for each in computed),
            steps=computed[0]["steps"],
            sums=sums,
            training=outcome_of(said, (rate, case.seed), str(case), dropped=lost),
        )

    def _sum(self, number: int, case: TrainingCase) -> float:
        """Sum once; return how long it took, from the first rank's start to the last one's end."""
        said = self._ask({"verb": "sum", "round": number}, case)
        if len({each["checksum"] for each in said}) > 1:
            raise ToleranceRunError(f"{case}: ranks hold different sums of round {number}")
        return max(each["ended_s"] for each in said) - min(each["began_s"] for each in said)

    def _ask(self, request: dict[str, Any], case: TrainingCase) -> list[dict[str, Any]]:
        return self._ranks.ask(request, case.plan.timeout_s, str(case))
