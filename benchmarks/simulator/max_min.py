# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Weighted max-min fair rates of flows over links; flows may have caps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_SLACK = 1e-9
"""Relative difference that counts as rounding."""


def max_min_rates(
    capacities: NDArray[np.float64],
    starts: NDArray[np.int64],
    links: NDArray[np.int64],
    caps: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return each flow's rate (float64, in the capacities' unit).

    Flow i crosses `links[starts[i] : starts[i + 1]]`, at least one and none twice; it never exceeds
    `caps[i]` (infinity: no cap). Where nothing else binds them, flows share a link in proportion to
    their `weights`, all above 0. A flow over many links moves at one rate on all of them, so a ring
    or a sum inside a switch is one flow.

    In each pass, a flow gets its final rate if its cap is below its links' fair shares, or if it
    crosses a link that is the tightest one of all flows there: what others free later does not help
    it. Cost: O(crossings) in numpy for each pass; one pass or two where hosts surround a switch.
    """
    num_flows = len(caps)
    rates = np.zeros(num_flows)
    if not num_flows:
        return rates
    owners = np.repeat(np.arange(num_flows), np.diff(np.append(starts, len(links))))
    left = capacities.astype(np.float64)
    tops = caps / weights
    """Caps as levels: the level of a flow is its rate over its weight."""
    open_flows = np.ones(num_flows, bool)
    while True:
        is_open = open_flows[owners]
        loads = np.bincount(links, np.where(is_open, weights[owners], 0.0), minlength=len(left))
        shares = np.divide(left, loads, out=np.full(len(left), np.inf), where=loads > 0)
        levels = np.minimum.reduceat(shares[links], starts)
        capped = open_flows & (tops <= levels * (1 + _SLACK))
        levels = np.minimum(levels, tops)
        least = np.full(len(left), np.inf)
        np.minimum.at(least, links[is_open], levels[owners[is_open]])
        tight = (loads > 0) & (least >= shares * (1 - _SLACK))
        done = open_flows & (capped | np.logical_or.reduceat(tight[links], starts))
        rates[done] = np.maximum(levels[done] * weights[done], 0.0)
        open_flows &= ~done
        if not open_flows.any():
            return rates
        used = done[owners]
        left -= np.bincount(links[used], rates[owners[used]], minlength=len(left))
        np.maximum(left, 0.0, out=left)
