# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The rate that reservations leave free on one link, as a step function of time."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple


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

    __slots__ = ("_steps", "rates", "times")

    def __init__(self, times: Sequence[float], rates: Sequence[int]) -> None:
        self.times = times
        """Where each step begins, rising; the first is minus infinity."""
        self.rates = rates
        """Free rate of each step, bits/s; the last step has no end."""
        self._steps: tuple[tuple[float, ...], tuple[int, ...]] | None = None

    @property
    def steps(self) -> tuple[tuple[float, ...], tuple[int, ...]]:
        """Times and rates, which are equal for equal functions."""
        if self._steps is None:
            self._steps = tuple(self.times), tuple(self.rates)
        return self._steps

    @classmethod
    def of(cls, capacity_bits_per_s: int) -> ResidualRate:
        """Return a link without reservations."""
        return cls((-math.inf,), (capacity_bits_per_s,))

    def rate_at(self, time_s: float) -> int:
        """Return the free rate at a time."""
        return self.rates[bisect_right(self.times, time_s) - 1]

    def free_from(self, time_s: float, least: int) -> float:
        """Return the first time, from one on, at which so much is free. It comes in the end."""
        steps = zip((*self.times[1:], math.inf), self.times, self.rates, strict=True)
        for end_s, begin_s, rate in steps:
            if end_s > time_s and rate >= least:
                return max(begin_s, time_s)
        return time_s

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
            first = bisect_left(times, start_s)
            if first == len(times) or times[first] != start_s:
                times.insert(first, start_s)
                rates.insert(first, rates[first - 1])
            last = bisect_left(times, end_s, first)
            if last == len(times) or times[last] != end_s:
                times.insert(last, end_s)
                rates.insert(last, rates[last - 1])
            for step in range(first, last):
                rates[step] += sign * rate
                assert may_exceed or rates[step] >= 0, "a reservation beyond what is free"
            if rates[last] == rates[last - 1]:
                del times[last], rates[last]
            if rates[first] == rates[first - 1]:
                del times[first], rates[first]
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
        return ResidualRate((-math.inf, *self.times[step + 1 :]), self.rates[step:])

    def spans(self, start_s: float, bits: float, most_bits_per_s: int) -> tuple[RateSpan, ...]:
        """Return the spans in which a transfer would end earliest that had this link for itself.

        It is no faster than `most_bits_per_s`, which does not change. Cost: O(steps).
        """
        times, rates = self.times, self.rates
        step = bisect_right(times, start_s)
        begin_s = now_s = start_s
        found: list[RateSpan] = []
        last = 0
        for next_s, free in zip((*times[step:], math.inf), rates[step - 1 :], strict=True):
            rate = free if free < most_bits_per_s else most_bits_per_s
            if rate != last:
                if last > 0:
                    found.append(RateSpan(begin_s, now_s, last))
                begin_s, last = now_s, rate
            if rate > 0:
                end_s = now_s + bits / rate
                if end_s <= next_s:
                    append_span(found, RateSpan(begin_s, end_s, rate))
                    return tuple(found)
                bits -= rate * (next_s - now_s)
                if bits <= 0:  # by rounding
                    append_span(found, RateSpan(begin_s, next_s, rate))
                    return tuple(found)
            now_s = next_s
        raise AssertionError("reservations end, and capacities are positive")

    def earliest_end_s(
        self, start_s: float, bits: float, most_bits_per_s: float = math.inf
    ) -> float:
        """Return when a transfer would end that had this link for itself.

        It is no faster than `most_bits_per_s`. Cost: O(steps).
        """
        times, rates = self.times, self.rates
        step = bisect_right(times, start_s)
        now_s = start_s
        for next_s, free in zip(times[step:], rates[step - 1 :], strict=False):
            if free > 0:
                rate = free if free < most_bits_per_s else most_bits_per_s
                end_s = now_s + bits / rate
                if end_s <= next_s:
                    return end_s
                bits -= rate * (next_s - now_s)
            now_s = next_s
        return now_s + bits / min(rates[-1], most_bits_per_s)


def append_span(spans: list[RateSpan], span: RateSpan) -> None:
    """Add a span; it joins the last one if it goes on at the same rate."""
    if span.end_s <= span.start_s:
        return  # shorter than a float can tell
    last = spans[-1] if spans else None
    if last and last.end_s == span.start_s and last.rate_bits_per_s == span.rate_bits_per_s:
        spans[-1] = last._replace(end_s=span.end_s)
    else:
        spans.append(span)
