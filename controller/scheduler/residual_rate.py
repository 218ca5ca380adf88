# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The rate that reservations leave free on one link, as a step function of time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class RateSpan(NamedTuple):
    """A time in which a transfer moves at one rate."""

    start_s: float
    end_s: float
    rate_bits_per_s: int


class ResidualRate:
    """What is free of one link, by time. Immutable.

    A rate is below 0 where more is reserved than the link carries: its capacity has shrunk, or a
    transfer is late. Nothing is planned there. Rates are whole bits/s, so that a reservation and
    its release cancel without a remainder. Neighbouring steps differ: a link that is time-shared
    without gaps has two steps, however many transfers it carries.
    """

    __slots__ = ("rates", "times")

    def __init__(self, times: Sequence[float], rates: Sequence[int]) -> None:
        self.times = times
        """Where each step begins, rising; the first is minus infinity."""
        self.rates = rates
        """Free rate of each step, bits/s; the last step has no end."""

    @classmethod
    def of(cls, capacity_bits_per_s: int) -> ResidualRate:
        """Return a link without reservations."""
        return cls((-np.inf,), (capacity_bits_per_s,))

    def rate_at(self, time_s: float) -> int:
        """Return the free rate at a time."""
        return self.rates[bisect_right(self.times, time_s) - 1]

    def less(self, spans: Iterable[RateSpan], *, may_exceed: bool = False) -> ResidualRate:
        """Return what is left beside these spans; `may_exceed` lets them take more than is free.

        Cost: O(steps) for each span.
        """
        return self._changed(spans, -1, may_exceed)

    def more(self, spans: Iterable[RateSpan]) -> ResidualRate:
        """Return what is free without these spans, which were reserved."""
        return self._changed(spans, 1, True)

    def _changed(self, spans: Iterable[RateSpan], sign: int, may_exceed: bool) -> ResidualRate:
        times, rates = list(self.times), list(self.rates)
        for start_s, end_s, rate in spans:
            first, last = _split(times, rates, start_s), _split(times, rates, end_s)
            for step in range(first, last):
                rates[step] += sign * rate
                assert may_exceed or rates[step] >= 0, "a reservation beyond what is free"
            for step in (last, first):
                if rates[step] == rates[step - 1]:
                    del times[step], rates[step]
        return ResidualRate(times, rates)

    def shifted(self, by_bits_per_s: int) -> ResidualRate:
        """Return the same reservations on a link that carries so much more."""
        return ResidualRate(self.times, [rate + by_bits_per_s for rate in self.rates])

    def at_least_0(self) -> ResidualRate:
        """Return the function with 0 where it is below."""
        if min(self.rates) >= 0:
            return self
        times: list[float] = []
        rates: list[int] = []
        for time_s, rate in zip(self.times, self.rates, strict=True):
            free = max(rate, 0)
            if not rates or rates[-1] != free:
                times.append(time_s)
                rates.append(free)
        return ResidualRate(times, rates)

    def since(self, time_s: float) -> ResidualRate:
        """Return the function without its steps that end before a time."""
        step = bisect_right(self.times, time_s) - 1
        if step == 0:
            return self
        return ResidualRate((-np.inf, *self.times[step + 1 :]), self.rates[step:])

    def earliest_ends(
        self, start_s: float, bits: NDArray[np.float64], most_bits_per_s: float = np.inf
    ) -> NDArray[np.float64]:
        """Return when each of several transfers would end that had this link for itself.

        `bits` is float64; no transfer is faster than `most_bits_per_s`. Cost: O(steps + n log
        steps), in numpy.
        """
        step = bisect_right(self.times, start_s) - 1
        times = np.array(self.times[step:])
        times[0] = start_s
        rates = np.clip(np.array(self.rates[step:], np.float64), 0.0, most_bits_per_s)
        moved = np.concatenate(([0.0], np.cumsum(np.diff(times) * rates[:-1])))
        """Bits that the link could move until each step begins."""
        last = np.searchsorted(moved, bits, "left") - 1
        return times[last] + (bits - moved[last]) / rates[last]


def _split(times: list[float], rates: list[int], time_s: float) -> int:
    """Return the step that begins at a time; the step in which it lies is split there."""
    step = bisect_left(times, time_s)
    if step == len(times) or times[step] != time_s:
        times.insert(step, time_s)
        rates.insert(step, rates[step - 1])
    return step
