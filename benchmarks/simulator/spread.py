# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Median and range of one figure over seeds."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Spread:
    """A figure of all seeds that have it."""

    median: float
    least: float
    most: float
    num_missing: int = 0
    """Seeds without the figure: what was to happen did not."""
    num_seeds: int = 1

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return the spread of at least one value."""
        return cls(
            median=statistics.median(values),
            least=min(values),
            most=max(values),
            num_seeds=len(values),
        )

    @classmethod
    def of_known(cls, values: Sequence[float | None]) -> Spread:
        """Return the spread of the values that are not None."""
        known = [value for value in values if value is not None]
        if not known:
            return cls(median=0, least=0, most=0, num_missing=len(values), num_seeds=len(values))
        found = cls.of(known)
        return cls(
            median=found.median,
            least=found.least,
            most=found.most,
            num_missing=len(values) - len(known),
            num_seeds=len(values),
        )

    def text(self, digits: int) -> str:
        """Return the median with its range, and how many seeds never got there."""
        if self.num_missing == self.num_seeds:
            return "never"
        middle, least, most = (f"{x:.{digits}f}" for x in (self.median, self.least, self.most))
        text = middle if least == most else f"{middle} ({least} .. {most})"
        return f"{text}, {self.num_missing} never" if self.num_missing else text
