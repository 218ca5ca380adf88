# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What each host's link carries at present, by the rates that transfers achieve.

MLfabric plans for bandwidths that change; how it measures them was not available to us. All rules
here are ours. Time is counted in reports: one for each interval in which a host had transfers.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ..checks import check_finite, check_whole
from ..errors import UnknownStationError

_NEW_SHARE: Final = 0.5
"""Of a new rate in the average."""
_PROBE: Final = 1.25
"""Factor of an estimate after an interval in which nothing fell short of its grant."""
MUCH_MORE: Final = 1.1
"""A link that carries so many times its estimate does not do so by chance."""
WHOLE: Final = 0.95
"""A link that carries this share of its rate gives all that it has."""
CHANGE: Final = 0.1
"""Relative change of an estimate from which on a new plan is worth it."""


class TransferDirection(enum.Enum):
    """Of a host's link."""

    UP = "up"
    DOWN = "down"


@dataclass(kw_only=True)
class _Estimate:
    link_bits_per_s: int
    average: float | None = None
    """Of achieved rates; None while the link gives all that it has."""
    clean_reports: int = 0
    """Since the last transfer that fell short."""
    planned_bits_per_s: int
    """What plans use."""

    @property
    def bits_per_s(self) -> int:
        if self.average is None:
            return self.link_bits_per_s
        probed = self.average * _PROBE**self.clean_reports
        return max(1, min(self.link_bits_per_s, round(probed)))


class BandwidthEstimates:
    """Estimates of all hosts' links, up and down, in whole bits/s."""

    def __init__(self, links_bits_per_s: Mapping[str, tuple[int, int]]) -> None:
        """`links_bits_per_s` has each host's rates (up, down), which no estimate exceeds."""
        self._estimates: dict[tuple[str, TransferDirection], _Estimate] = {}
        for host, rates in links_bits_per_s.items():
            for direction, rate in zip(TransferDirection, rates, strict=True):
                check_whole(f"rate {direction.value} of {host}", rate, 1)
                self._estimates[host, direction] = _Estimate(
                    link_bits_per_s=rate, planned_bits_per_s=rate
                )

    def fell_short(
        self, host: str, direction: TransferDirection, achieved_bits_per_s: float
    ) -> None:
        """Note the rate of transfers that were slower than granted, all together.

        The first one is the estimate; later ones count half, and earlier ones the rest.
        """
        check_finite(f"achieved rate of {host}", achieved_bits_per_s, 0)
        found = self._find(host, direction)
        earlier = achieved_bits_per_s if found.average is None else found.average
        found.average = _NEW_SHARE * achieved_bits_per_s + (1 - _NEW_SHARE) * earlier
        found.clean_reports = 0

    def was_clean(self, host: str, direction: TransferDirection) -> None:
        """Note an interval in which all transfers had the rates of their grants."""
        found = self._find(host, direction)
        if found.average is not None:
            found.clean_reports += 1
            if found.bits_per_s == found.link_bits_per_s:
                found.average, found.clean_reports = None, 0

    def carried(self, host: str, direction: TransferDirection, achieved_bits_per_s: float) -> None:
        """Note what a link has carried at once, if it has an estimate.

        Much more becomes the estimate; otherwise it counts half.
        """
        check_finite(f"achieved rate of {host}", achieved_bits_per_s, 0)
        found = self._find(host, direction)
        if found.average is None:
            return
        earlier = float(found.bits_per_s)
        is_much_more = achieved_bits_per_s > MUCH_MORE * earlier
        found.average = achieved_bits_per_s if is_much_more else (earlier + achieved_bits_per_s) / 2
        found.clean_reports = 0
        if found.bits_per_s >= WHOLE * found.link_bits_per_s:
            found.average = None

    def bits_per_s(self, host: str, direction: TransferDirection) -> int:
        """Return the estimate for one link."""
        return self._find(host, direction).bits_per_s

    def take_change(self) -> Mapping[str, tuple[int, int]] | None:
        """Return new rates (up, down) of all hosts if a plan is worth it, else None.

        It is if an estimate differs by more than a tenth from what was last returned, or if a link
        gives all that it has again. Give the rates to `TransferScheduler.replace_network`, which
        leaves grants as they are and plans what waits.
        """
        estimates = self._estimates.values()
        if not any(_is_change(each) for each in estimates):
            return None
        for each in estimates:
            each.planned_bits_per_s = each.bits_per_s
        hosts = dict.fromkeys(host for host, _ in self._estimates)
        return {
            host: (
                self.bits_per_s(host, TransferDirection.UP),
                self.bits_per_s(host, TransferDirection.DOWN),
            )
            for host in hosts
        }

    def _find(self, host: str, direction: TransferDirection) -> _Estimate:
        found = self._estimates.get((host, direction))
        if found is None:
            raise UnknownStationError(f"no link of a host {host!r}: name one that was given")
        return found


def _is_change(estimate: _Estimate) -> bool:
    now, planned = estimate.bits_per_s, estimate.planned_bits_per_s
    is_whole_again = now == estimate.link_bits_per_s and now != planned
    return is_whole_again or abs(now - planned) > CHANGE * planned
