# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""RoundFigures of a contender under a condition: percentiles, ratios to others, bytes, coverage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks.transport.contenders import REPAIR, RING
from benchmarks.transport.rig import Round


@dataclass(frozen=True, kw_only=True)
class RoundFigures:
    """What the rounds of one contender say; times in seconds."""

    rounds: int
    p50_s: float
    p99_s: float
    mean_s: float
    most_s: float
    link_bytes: float
    """Mean of a round."""
    busiest_s: float
    """Median of a round: what the links allow at least for these bytes."""
    coverage: float
    """Mean."""
    least_coverage: float
    lost_share: float
    """Of the packets that came to a place of loss."""
    sent_again: float
    """Contributions that were sent again, for each that had to be sent."""
    busy_share: float
    """Median of the used share of all processors' time."""
    traffic_bits_per_s: float
    """Median rate of other traffic."""


def figures_of(rounds: Sequence[Round]) -> RoundFigures:
    """Return the figures of at least one round."""
    times = np.array([each.seconds for each in rounds])
    coverages = [each.coverage for each in rounds]
    sent = sum(each.sent for each in rounds)
    return RoundFigures(
        rounds=len(rounds),
        p50_s=float(np.percentile(times, 50)),
        p99_s=float(np.percentile(times, 99)),
        mean_s=float(times.mean()),
        most_s=float(times.max()),
        link_bytes=float(np.mean([each.link_bytes for each in rounds])),
        busiest_s=float(np.median([each.busiest_s for each in rounds])),
        coverage=float(np.mean(coverages)),
        least_coverage=min(coverages),
        lost_share=sum(each.lost for each in rounds) / max(1, sum(each.seen for each in rounds)),
        sent_again=sum(each.sent_again for each in rounds) / max(1, sent),
        busy_share=float(np.median([each.busy_share for each in rounds])),
        traffic_bits_per_s=float(np.median([each.traffic_bits_per_s for each in rounds])),
    )


@dataclass(frozen=True, kw_only=True)
class Ratios:
    """A contender beside others; None where the other one, or the lossless run, is not there."""

    repair_p50: float | None
    """Time of selective repair over its own: above 1, it is faster. The figure to quote."""
    repair_p99: float | None
    ring_p50: float | None
    """Time of TCP among hosts over its own."""
    ring_p99: float | None
    lossless_p50: float | None
    """Its time over its own without loss."""
    lossless_p99: float | None
    limit_p50: float
    """Its time over what the busiest link needs for the bytes that it sends without loss."""


def ratios_of(
    name: str, here: Mapping[str, RoundFigures], lossless: Mapping[str, RoundFigures]
) -> Ratios:
    """Return the ratios of a contender to those under the same condition, and without loss."""
    own = here[name]

    def gain(other: str, percentile: str) -> float | None:
        if other not in here:
            return None
        return getattr(here[other], percentile) / getattr(own, percentile)

    calm = lossless.get(name)
    return Ratios(
        repair_p50=gain(REPAIR, "p50_s"),
        repair_p99=gain(REPAIR, "p99_s"),
        ring_p50=gain(RING, "p50_s"),
        ring_p99=gain(RING, "p99_s"),
        lossless_p50=own.p50_s / calm.p50_s if calm else None,
        lossless_p99=own.p99_s / calm.p99_s if calm else None,
        limit_p50=own.p50_s / (calm or own).busiest_s,
    )


def rows_of(
    found: Mapping[str, Mapping[str, Sequence[Round]]], lossless: str
) -> dict[str, dict[str, dict[str, Any]]]:
    """Return figures and ratios as plain data, by condition and contender.

    `found` has the rounds by condition and contender; contenders without rounds are left out.
    """
    figures = {
        condition: {name: figures_of(rounds) for name, rounds in by_name.items() if rounds}
        for condition, by_name in found.items()
    }
    calm = figures.get(lossless, {})
    return {
        condition: {
            name: {**asdict(each), "ratios": asdict(ratios_of(name, here, calm))}
            for name, each in here.items()
        }
        for condition, here in figures.items()
    }
