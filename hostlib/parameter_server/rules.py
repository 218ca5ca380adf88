# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Rules by which a server turns the summed updates of a pair into an answer."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ..errors import ConfigurationError

Values = NDArray[np.float32]

as_workers_sent = np.errstate(over="ignore", invalid="ignore")
"""For sums of gradients: infinity and not-a-number are results and cause no warning."""


class RuleKind(enum.Enum):
    """Names of rules on the command line."""

    SUM = "sum"
    """Answer the sum of the updates; nothing is kept."""
    MEAN = "mean"
    """Answer the sum divided by the number of contributors; nothing is kept."""
    SGD = "sgd"
    """Keep parameters, step against the mean of the updates, answer the parameters."""


@final
class PairParameters:
    """State of SGD for a pair: float32 arrays of the pair's length."""

    def __init__(self, values: Values, velocity: Values | None = None, applied: int = -1) -> None:
        self.values = values
        self.velocity = velocity
        """None until the first step with momentum."""
        self.applied = applied
        """Last iteration whose updates are in `values`; -1: none."""


@final
@dataclass(frozen=True, kw_only=True)
class UpdateRule:
    """A rule with its numbers; `learning_rate` and `momentum` belong to SGD.

    With gradient g (mean of the contributors' updates): v = momentum * v + g, and
    parameters -= learning_rate * v; all in float32.
    """

    kind: RuleKind = RuleKind.SUM
    learning_rate: float = 0.0
    momentum: float = 0.0

    def __post_init__(self) -> None:
        if self.kind is RuleKind.SGD:
            if not (0 < self.learning_rate < float("inf") and 0 <= self.momentum < 1):
                raise ConfigurationError(
                    f"sgd with learning rate {self.learning_rate} and momentum {self.momentum};"
                    " give a rate above 0 and a momentum from 0 to below 1"
                )
        elif self.learning_rate or self.momentum:
            raise ConfigurationError(
                f"the {self.kind.value} rule takes no learning rate and no momentum; use sgd"
            )

    @property
    def keeps_parameters(self) -> bool:
        """Whether there is something to initialise and to checkpoint."""
        return self.kind is RuleKind.SGD

    @as_workers_sent
    def apply(self, total: Values, num_contributors: int, kept: PairParameters | None) -> None:
        """Turn the sum of the updates into the answer, in place."""
        if self.kind is not RuleKind.SUM and num_contributors > 1:
            np.divide(total, np.float32(num_contributors), out=total)
        if self.kind is not RuleKind.SGD:
            return
        assert kept is not None
        step = total
        if self.momentum:
            if kept.velocity is None:
                kept.velocity = np.zeros_like(kept.values)
            np.multiply(kept.velocity, np.float32(self.momentum), out=kept.velocity)
            np.add(kept.velocity, total, out=kept.velocity)
            step = kept.velocity
        np.multiply(step, np.float32(self.learning_rate), out=total)
        np.subtract(kept.values, total, out=kept.values)
        np.copyto(total, kept.values)
