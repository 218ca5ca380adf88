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
from collections import deque
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from .errors import ConfigurationError
from .loss_tolerance import NO_LOSS, Delivery, LossTolerance, strictest

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


@dataclass(frozen=True, kw_only=True)
class LossGuard:
    """When sums lack nothing for a while: where loss takes what they may lack.

    If so, the links lose about as much as is tolerated, or more, and the rest is sent again. If the
    sums of `window` steps together lack `share` of the contributions that they could, those of the
    next `reliable_steps` steps lack nothing. Then the guard measures again. Whatever is lost, sums
    lack less than they could, 0.7 to 0.97 of it: each worker may let go only a part.
    """

    share: float = 0.6
    """Of what the sums could lack, above 0 and at most 1."""
    window: int = 10
    """Number of steps that are measured together."""
    reliable_steps: int = 100
    """Number of steps that lack nothing."""
    least_coverage: float = 0.0
    """Coverage of a step below which `StepTolerance.should_skip` says so; 0: never."""

    def __post_init__(self) -> None:
        """Check ranges."""
        if not 0 < self.share <= 1:
            raise ConfigurationError(
                f"share is {self.share}; it is a share of what sums could lack, above 0 and at most"
                " 1"
            )
        for name, steps in (("window", self.window), ("reliable_steps", self.reliable_steps)):
            if steps < 1:
                raise ConfigurationError(f"{name} is {steps}; it is a number of steps, 1 or more")
        if not 0 <= self.least_coverage <= 1:
            raise ConfigurationError(
                f"least_coverage is {self.least_coverage}; it is a share of all contributions, 0"
                " to 1"
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

    def __init__(
        self,
        critical: CriticalRegimes | None = None,
        guard: LossGuard | None = None,
        *,
        tolerance: object = None,
    ) -> None:
        """`tolerance`: what sums may lack otherwise; a LossTolerance is compared with `low`.

        Raises ConfigurationError if sums may lack nothing, or no more than in critical regimes.
        """
        given: list[tuple[str, object, type]] = [
            ("critical", critical, CriticalRegimes),
            ("guard", guard, LossGuard),
        ]
        for name, option, kind in given:
            if option is not None and not isinstance(option, kind):
                raise ConfigurationError(f"{name} is {option!r}; give a {kind.__name__}, or None")
        for what, option in (("critical regimes", critical), ("a loss guard", guard)):
            if option is not None and tolerance is None:
                raise ConfigurationError(
                    f"{what} of sums that lack nothing in any case: give a tolerance, too, or leave"
                    " this out"
                )
        if critical is not None:
            _check_low(critical.low, tolerance)
        self._critical = critical
        self._is_critical = critical is not None
        self._last: Fraction | None = None  # squared norm of the last check
        self._norms: dict[object, Fraction | None] = {}
        self._guard = guard
        self._deliveries: dict[object, Delivery] = {}
        self._measured: deque[tuple[int, int]] = deque(maxlen=guard.window if guard else 0)
        self._reliable_left = 0
        self._num_guarded = self._num_skipped = self._num_steps = 0

    @property
    def is_critical(self) -> bool:
        """Whether the last step that has begun is in a critical regime."""
        return self._is_critical

    @property
    def is_reliable(self) -> bool:
        """Whether the guard lets the last step that has begun lack nothing."""
        return self._reliable_left > 0

    @property
    def num_guarded(self) -> int:
        """How often the guard has found that loss takes what is tolerated."""
        return self._num_guarded

    @property
    def should_skip(self) -> bool:
        """Whether the sums of the last step cover less than the guard's `least_coverage`."""
        given = list(self._deliveries.values())
        if self._guard is None or not given:
            return False
        total = sum(each.num_contributions for each in given)
        missing = sum(each.num_missing for each in given)
        return total - missing < self._guard.least_coverage * total

    @property
    def num_skipped(self) -> int:
        """How many steps were to be skipped, the last one included."""
        return self._num_skipped + self.should_skip

    @property
    def num_steps(self) -> int:
        """Number of steps that have begun."""
        return self._num_steps

    def restart(self) -> None:
        """Begin as at first, where the next sums are of other gradients than before."""
        self._is_critical = self._critical is not None
        self._last = None
        self._num_skipped = self.num_skipped
        self._norms.clear()
        self._deliveries.clear()
        self._measured.clear()

    def begin_step(self) -> None:
        """Decide by what the sums of the step before have shown: they have ended on this worker."""
        if self._num_steps:
            self._num_skipped = self.num_skipped
            self._check_norm()
            self._check_loss()
        self._norms.clear()
        self._deliveries.clear()
        self._num_steps += 1

    def of(self, tolerance: LossTolerance | None) -> LossTolerance | None:
        """Return what a sum of this step may lack, which may lack `tolerance` by itself."""
        if tolerance is None:
            return None
        if self.is_reliable:
            return NO_LOSS
        if self._critical is None or not self._is_critical:
            return tolerance
        return strictest([tolerance, self._critical.low])

    def note(self, key: object, values: NDArray[Any], delivery: Delivery | None) -> None:
        """Take the result of a sum of this step, floats in a row; `key` is the sum's own."""
        if self._measures_norm:
            self._norms[key] = squared_norm(values)
        if self._guard is not None and delivery is not None:
            self._deliveries[key] = delivery

    def _check_loss(self) -> None:
        guard = self._guard
        if guard is None:
            return
        if self._reliable_left:
            self._reliable_left -= 1
            if not self._reliable_left:
                _logger.info("step %d: sums may lack contributions again", self._num_steps)
            return
        given = self._deliveries.values()
        missing = sum(each.num_missing for each in given)
        self._measured.append((missing, sum(each.num_tolerated for each in given)))
        missing, tolerated = (sum(column) for column in zip(*self._measured, strict=True))
        is_full = len(self._measured) == guard.window
        if is_full and tolerated and missing >= guard.share * tolerated:
            self._measured.clear()
            self._reliable_left = guard.reliable_steps
            self._num_guarded += 1
            _logger.warning(
                "step %d: the sums of %d steps lack %d contributions, of %d that they could lack;"
                " those of the next %d steps lack nothing",
                self._num_steps,
                guard.window,
                missing,
                tolerated,
                guard.reliable_steps,
            )

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
