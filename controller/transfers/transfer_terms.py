# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What the stations of a job must agree on."""

from __future__ import annotations

from dataclasses import dataclass

from ...hostlib.control.transfers_api import transfers_pb2 as pb
from ..scheduler.training.training_modes import (
    StaleSynchronousTraining,
    SynchronousTraining,
    TrainingMode,
)


@dataclass(frozen=True, kw_only=True)
class TransferTerms:
    """The options of a job, as each of its stations states them."""

    tau_max: int | None = None
    div_max: float | None = None
    staleness: int | None = None
    """None: asynchronous; 0: synchronous."""

    @classmethod
    def of(cls, request: pb.Register) -> TransferTerms:
        """Return the terms that a station states."""
        return cls(
            tau_max=request.tau_max if request.HasField("tau_max") else None,
            div_max=request.div_max if request.HasField("div_max") else None,
            staleness=request.staleness if request.HasField("staleness") else None,
        )

    @property
    def mode(self) -> TrainingMode | None:
        """How workers wait for each other; None: not at all."""
        if self.staleness is None:
            return None
        if not self.staleness:
            return SynchronousTraining()
        return StaleSynchronousTraining(staleness=self.staleness, workers=None)

    def __str__(self) -> str:
        values = {"tau_max": self.tau_max, "div_max": self.div_max}
        texts = [
            f"no {name}" if value is None else f"{name} {value:g}" for name, value in values.items()
        ]
        if self.staleness is not None:
            texts.append(f"staleness {self.staleness}")
        return ", ".join(texts)
