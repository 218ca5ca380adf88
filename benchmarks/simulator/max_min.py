# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Max-min fair rates of flows over links, as long TCP flows share them; flows may have caps."""

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
) -> NDArray[np.float64]:
    """Return each flow's rate (float64, in the capacities' unit).

    Flow i crosses `links[starts[i] : starts[i + 1]]`, at least one and none twice; it never exceeds
    `caps[i]` (infinity: no cap). A flow over many links moves at one rate on all of them, so a ring
    or a sum inside a switch is one flow.

    In each pass, a flow gets its final rate if its cap is below its links' fair shares, or if it
    crosses a link that is the tightest one of all its flows: what others free later does not help
    it. Cost: O(crossings) in numpy for each pass; one pass or two where hosts surround a switch.
    """
    num_flows = len(caps)
    rates = np.zeros(num_flows)
    if not num_flows:
        return rates
    owners = np.repeat(np.arange(num_flows), np.diff(np.append(starts, len(links))))
    left = capacities.astype(np.float64)
    open_flows = np.ones(num_flows, bool)
    while True:
        counts = np.bincount(links[open_flows[owners]], minlength=len(left))
        shares = np.where(counts > 0, left / np.maximum(counts, 1), np.inf)
        bounds = np.minimum.reduceat(shares[links], starts)
        capped = open_flows & (caps <= bounds * (1 + _SLACK))
        bounds = np.minimum(bounds, caps)
        least = np.full(len(left), np.inf)
        is_open = open_flows[owners]
        np.minimum.at(least, links[is_open], bounds[owners[is_open]])
        tight = (counts > 0) & (least >= shares * (1 - _SLACK))
        done = open_flows & (capped | np.logical_or.reduceat(tight[links], starts))
        rates[done] = np.maximum(bounds[done], 0.0)
        open_flows &= ~done
        if not open_flows.any():
            return rates
        used = done[owners]
        left -= np.bincount(links[used], rates[owners[used]], minlength=len(left))
        np.maximum(left, 0.0, out=left)
