# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Weighted max-min fairness of slots, over all switches at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Demand:
    """The slots that one job would take if it were alone."""

    key: int
    weight: float
    limit: int
    """Most slots that it can use."""
    usage: Mapping[str, float]
    """Slots of each switch that one slot of the job takes: 1 if all of its trees use the switch,
    less if only some do."""


def fair_shares(demands: Sequence[Demand], capacity: Mapping[str, int]) -> dict[int, int]:
    """Return the slots of each job: no job can get more unless a job with fewer loses some.

    All shares grow together, in proportion to their weights. A job's share stops at the job's limit
    or when a switch that the job uses is full.
    """
    level = {demand.key: 0.0 for demand in demands}
    left = {switch: float(slots) for switch, slots in capacity.items()}
    growing = list(demands)
    while growing:
        load: dict[str, float] = {}
        for demand in growing:
            for switch, usage in demand.usage.items():
                load[switch] = load.get(switch, 0.0) + usage * demand.weight
        step = min((demand.limit - level[demand.key]) / demand.weight for demand in growing)
        for switch, rate in load.items():
            step = min(step, max(left[switch], 0.0) / rate)
        for demand in growing:
            level[demand.key] += step * demand.weight
        for switch, rate in load.items():
            left[switch] -= step * rate
        full = {switch for switch in load if left[switch] < _ROUNDING}
        growing = [
            demand
            for demand in growing
            if demand.limit - level[demand.key] > _ROUNDING and not full & demand.usage.keys()
        ]
    return {key: int(share + _ROUNDING) for key, share in level.items()}


_ROUNDING = 1e-6
