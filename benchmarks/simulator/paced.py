# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Flows that keep the rates of a grant."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial

from benchmarks.simulator.fluid import FluidFlow, FluidNetwork
from switchfold.controller.scheduler.residual_rate import RateSpan


def send_paced(
    network: FluidNetwork,
    links: Sequence[str],
    spans: Sequence[RateSpan],
    bits: int,
    on_end: Callable[[], None],
) -> None:
    """Start a flow once its first span has begun; behind the last one, it goes on at its rate."""
    now_s = network.now_s
    ahead = [span for span in spans if span.end_s > now_s] or [spans[-1]]
    begin = partial(_begin, network, links, ahead, bits, on_end)
    if ahead[0].start_s > now_s:
        network.call_at(ahead[0].start_s, begin)
    else:
        begin()


def _begin(
    network: FluidNetwork,
    links: Sequence[str],
    spans: Sequence[RateSpan],
    bits: int,
    on_end: Callable[[], None],
) -> None:
    flow: FluidFlow = network.start(links, bits, on_end, cap_bits_per_s=spans[0].rate_bits_per_s)
    for span, following in itertools.pairwise(spans):
        if following.start_s > span.end_s:
            network.call_at(span.end_s, partial(network.cap, flow, 0))
        change = partial(network.cap, flow, following.rate_bits_per_s)
        network.call_at(following.start_s, change)
