# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What limits a message of a batch on its path, found out once for all plans of the batch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from ..network import NO_LIMIT, Links, ResidualNetwork, spans_over
from ..residual_rate import RateSpan, ResidualRate


class PathLimits(NamedTuple):
    """Free rates along a route, from the time of the batch on."""

    links: Links
    steady_bits_per_s: int
    """Least free rate of the links on which it does not change any more."""
    changing: Sequence[ResidualRate]
    """What is free of other links on which no plan reserves."""
    taken: Links
    """Links on which plans of the batch reserve."""
    is_one_link: bool
    """Beside what is steady, one link limits, and plans reserve on it."""

    def spans(
        self, rate_of: Callable[[str], ResidualRate], bits: int, start_s: float
    ) -> tuple[RateSpan, ...]:
        """Return the spans in which a message would end earliest; none if it crosses no link.

        `rate_of` returns what is free of a link in `taken` now.
        """
        if not self.links:
            return ()
        if self.is_one_link:
            return rate_of(self.taken[0]).spans(start_s, bits, self.steady_bits_per_s)
        rates = [rate_of(link) for link in self.taken]
        return spans_over([*self.changing, *rates], bits, start_s, self.steady_bits_per_s)


def path_limits(
    residual: ResidualNetwork, links: Links, now_s: float, taken: Collection[str]
) -> PathLimits:
    """Return what limits messages that leave at `now_s` or later.

    `taken`: links on which plans of the batch reserve; on all others, they have what `residual`
    has.
    """
    changing: list[ResidualRate] = []
    steady_bits_per_s = NO_LIMIT
    for link in links:
        if link in taken:
            continue
        rate = residual.rate(link)
        if rate.times[-1] > now_s:
            changing.append(rate)
        elif rate.rates[-1] < steady_bits_per_s:
            steady_bits_per_s = rate.rates[-1]
    reserved = tuple([link for link in links if link in taken])
    is_one_link = len(reserved) == 1 and not changing
    return PathLimits(links, steady_bits_per_s, changing, reserved, is_one_link)
