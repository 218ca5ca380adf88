# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What the sums of a training step may lack, by what the steps before have shown.

All workers must give a sum the same tolerance, or they wait for each other. No worker asks the
others: each decides by itself, before a step's first sum, from what is the same on all of them: the
bytes of earlier results, and who is in them. All numbers of a decision are integers or fractions; a
sum of floats would depend on the order, which numpy chooses by the processor.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from .errors import ConfigurationError
from .loss_tolerance import Delivery, LossTolerance, strictest

_logger = logging.getLogger(__name__)
_NORM_BITS: Final = 20
"""Bits of the largest value that its square has in a norm: 2^16 squares fit into an int64."""
_PIECE: Final = 1 << 16
_LEAST_EXPONENT: Final = -1000
"""Of the largest value in a norm, so that the scale is a float64: vectors of smaller ones are 0."""


@dataclass(frozen=True, kw_only=True)
class CriticalRegimes:
    """Where training bears less loss, and how such a critical regime is detected.

    Every `interval` steps, the L2 norm of the mean gradient is compared with that of the check
    before. If it has changed by `eta` of that or more, the regime is critical until the next check:
    sums then lack what `low` allows, if that is less than what they may lack otherwise. Training
    begins in a critical regime, which lasts for at least two checks. A norm that is not finite is
    no check. The detector, and the value of `eta`, are those of DBLP (arXiv 2605.01989).
    """

    low: LossTolerance
    """What sums may lack in a critical regime."""
    eta: float = 0.5
    """Share by which the norm must change."""
    interval: int = 10
    """Steps from one check to the next."""

    def __post_init__(self) -> None:
        """Check ranges."""
        if not isinstance(self.low, LossTolerance):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError(f"low is {self.low!r}; give a LossTolerance")
        if not 0 < self.eta < math.inf:
            raise ConfigurationError(
                f"eta is {self.eta}; it is the share by which the gradient's norm must change,"
                " above 0, such as 0.5"
            )
        if self.interval < 1:
            raise ConfigurationError(
                f"interval is {self.interval}; it is the number of steps between two checks, 1 or"
                " more"
            )


def squared_norm(values: NDArray[Any]) -> Fraction | None:
    """Return the square of the L2 norm of floats in a row; None if it is not finite.

    The same on every processor. Each value is rounded to 20 bits below the largest one; squares are
    added up as integers. So the norm is off by at most sqrt(n) * 2^-20 of itself.
    """
    pieces = [values[start : start + _PIECE] for start in range(0, len(values), _PIECE)]
    # As a list of floats: the largest of several numbers does not depend on their order.
    largest = [float(np.abs(piece).max()) for piece in pieces]
    if not all(map(math.isfinite, largest)):
        return None
    exponent = max(math.frexp(max(largest, default=0.0))[1], _LEAST_EXPONENT)
    scale = 2.0 ** (_NORM_BITS - exponent)
    total = 0
    for piece in pieces:
        rounded = np.rint(piece.astype(np.float64) * scale).astype(np.int64)
        total += int(np.dot(rounded, rounded))
    return Fraction(total) * Fraction(2) ** (2 * (exponent - _NORM_BITS))


@final
class StepTolerance:
    """Decides what the sums of each step may lack; one for each model, alike on all workers."""

    def __init__(self, critical: CriticalRegimes | None = None, tolerance: object = None) -> None:
        """`tolerance`: what sums may lack otherwise; a LossTolerance is compared with `low`.

        Raises ConfigurationError if sums may lack nothing, or no more than in critical regimes.
        """
        if critical is not None:
            _check_low(critical.low, tolerance)
        self._critical = critical
        self._is_critical = critical is not None
        self._last: Fraction | None = None  # squared norm of the last check
        self._norms: dict[object, Fraction | None] = {}
        self._num_steps = 0

    @property
    def is_critical(self) -> bool:
        """Whether the last step that has begun is in a critical regime."""
        return self._is_critical

    @property
    def num_steps(self) -> int:
        """Number of steps that have begun."""
        return self._num_steps

    def restart(self) -> None:
        """Begin as at first, where the next sums are of other gradients than before."""
        self._is_critical = self._critical is not None
        self._last = None
        self._norms.clear()

    def begin_step(self) -> None:
        """Decide by what the sums of the step before have shown: they have ended on this worker."""
        if self._num_steps:
            self._check_norm()
        self._norms.clear()
        self._num_steps += 1

    def of(self, tolerance: LossTolerance | None) -> LossTolerance | None:
        """Return what a sum of this step may lack, which may lack `tolerance` by itself."""
        if tolerance is None or self._critical is None or not self._is_critical:
            return tolerance
        return strictest([tolerance, self._critical.low])

    def note(self, key: object, values: NDArray[Any], delivery: Delivery | None) -> None:
        """Take the result of a sum of this step, floats in a row; `key` is the sum's own."""
        if self._measures_norm:
            self._norms[key] = squared_norm(values)

    @property
    def _measures_norm(self) -> bool:
        """Whether the end of this step is a check."""
        critical = self._critical
        return critical is not None and self._num_steps % critical.interval == 0

    def _check_norm(self) -> None:
        critical = self._critical
        found = list(self._norms.values())
        if critical is None or not self._measures_norm or not found or None in found:
            return
        # The order does not matter: fractions are exact.
        squared = sum((each for each in found if each is not None), Fraction(0))
        before, self._last = self._last, squared
        if before is None:
            return
        was_critical, self._is_critical = (
            self._is_critical,
            _has_changed(before, squared, Fraction(critical.eta)),
        )
        if self._is_critical != was_critical:
            _logger.info(
                "step %d: %s critical regime: the norm of gradients was %.3g, and is %.3g",
                self._num_steps,
                "begins a" if self._is_critical else "ends the",
                _root(before),
                _root(squared),
            )


def _check_low(low: LossTolerance, tolerance: object) -> None:
    if tolerance is None:
        raise ConfigurationError(
            "critical regimes of sums that lack nothing in any case: give a tolerance, too, or"
            " leave them out"
        )
    if isinstance(tolerance, LossTolerance) and low.loss >= tolerance.loss:
        raise ConfigurationError(
            f"sums may lack {low.loss:g} in critical regimes, and {tolerance.loss:g} otherwise: the"
            " first must be less"
        )


def _has_changed(before: Fraction, now: Fraction, eta: Fraction) -> bool:
    """Return whether a norm has changed by `eta` of it or more, both given as squares."""
    if not before:
        return now > 0
    has_grown = now >= (1 + eta) ** 2 * before
    return has_grown or (eta <= 1 and now <= (1 - eta) ** 2 * before)


def _root(squared: Fraction) -> float:
    """Return the square root for a log, of any size."""
    try:
        return math.sqrt(squared)
    except OverflowError:
        return math.inf
