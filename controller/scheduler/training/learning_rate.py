# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Factors by which a learning rate falls with an update's delay.

That rates should follow the delays seen is MLfabric's, after AdaDelay (Sra et al., AISTATS 2016),
whose form is `AdaDelayRate`. The other two are ours, for training with a schedule of its own.
All are 1 without delay, and fall with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..checks import check_finite, check_whole
from ..errors import InvalidTransferError


@dataclass(frozen=True, kw_only=True)
class SquareRootRate:
    """lr(t) * sqrt((t + 1) / (t + 1 + kappa * delay)), with t updates applied before."""

    kappa: float = 1.0

    def __post_init__(self) -> None:
        check_finite("kappa", self.kappa, 0)

    def factor(self, delay: int, applied: int) -> float:
        """Return the factor for an update with a delay, after `applied` updates."""
        _check(delay, applied)
        return math.sqrt((applied + 1) / (applied + 1 + self.kappa * delay))


@dataclass(frozen=True, kw_only=True)
class InverseRate:
    """lr(t) / (1 + delay): updates weigh less the older they are, at all times."""

    def factor(self, delay: int, applied: int) -> float:
        """Return the factor for an update with a delay, after `applied` updates."""
        _check(delay, applied)
        return 1 / (1 + delay)


@dataclass(frozen=True, kw_only=True)
class AdaDelayRate:
    """1 / (L + c * sqrt(t + delay)), relative to the rate without delay, after t updates.

    Use it where both constants are known, with the base rate 1 / (L + c * sqrt(t)).
    """

    smoothness: float
    """L: greatest curvature of the loss, above 0."""
    noise: float
    """c, from the gradients' noise and the size of the domain."""

    def __post_init__(self) -> None:
        check_finite("smoothness", self.smoothness, 0)
        check_finite("noise", self.noise, 0)
        if self.smoothness == 0:
            raise InvalidTransferError("smoothness is 0; it must be above 0")

    def factor(self, delay: int, applied: int) -> float:
        """Return the factor for an update with a delay, after `applied` updates."""
        _check(delay, applied)
        without = self.smoothness + self.noise * math.sqrt(applied)
        return without / (self.smoothness + self.noise * math.sqrt(applied + delay))


LearningRateRule = SquareRootRate | InverseRate | AdaDelayRate


def _check(delay: int, applied: int) -> None:
    check_whole("delay", delay, 0)
    check_whole("number of applied updates", applied, 0)
