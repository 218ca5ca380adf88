# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Simulated time: flows that share links, and calls at given times. Nothing here is random."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulator.max_min import max_min_rates

_ROUNDING_S = 1e-9
"""What would end within this time ends now: rounding must not make events of its own."""


@dataclass(eq=False)
class FluidFlow:
    """Bytes on their path; the network moves them."""

    links: NDArray[np.int64]
    """Numbers of the links that it crosses at one rate, int64."""
    bits: float
    on_end: Callable[[], None]
    cap_bits_per_s: float = math.inf
    weight: float = 1.0
    is_open: bool = field(default=True, init=False)


class FluidNetwork:
    """Links, the flows on them, and the clock. Times are seconds, rates are bits/s.

    Rates are computed again only if a flow, a cap or a capacity has changed at the present time.
    """

    def __init__(self, capacities: Mapping[str, float]) -> None:
        self.now_s = 0.0
        self._number = {link: number for number, link in enumerate(capacities)}
        self._capacities = np.array(list(capacities.values()), np.float64)
        self._flows: list[FluidFlow] = []
        """Those whose state the arrays below hold, in the order of their starts."""
        self._started: list[FluidFlow] = []
        """Those of the present moment, which are not in the arrays."""
        self._sizes = np.zeros(0, np.int64)
        """Numbers of links that each flow crosses."""
        self._links = np.zeros(0, np.int64)
        self._bits, self._left, self._caps, self._weights, self._rates = np.zeros((5, 0))
        self._calls: list[tuple[float, int, Callable[[], None]]] = []
        self._tickets = itertools.count()
        self._is_changed = True
        self._are_caps_changed = False
        self._moved = np.zeros(len(self._capacities))
        """By link, bits of ended flows."""
        self.num_events = 0
        """Times at which something happened."""

    @property
    def moved_bits(self) -> Mapping[str, float]:
        """By link, what ended flows have moved and open ones have moved so far."""
        moved = self._moved.copy()
        np.add.at(moved, self._links, np.repeat(self._bits - self._left, self._sizes))
        return dict(zip(self._number, (float(each) for each in moved), strict=True))

    def call_at(self, time_s: float, function: Callable[[], None]) -> None:
        """Call a function when the clock gets there; calls of one time keep their order."""
        heapq.heappush(self._calls, (max(time_s, self.now_s), next(self._tickets), function))

    def call_after(self, wait_s: float, function: Callable[[], None]) -> None:
        """Call a function after some time."""
        self.call_at(self.now_s + wait_s, function)

    def start(
        self,
        links: Iterable[str],
        bits: float,
        on_end: Callable[[], None],
        *,
        cap_bits_per_s: float = math.inf,
        weight: float = 1.0,
    ) -> FluidFlow:
        """Start a flow; `on_end` is called when its last bit has moved. No links: at once."""
        numbers = np.array([self._number[link] for link in links], np.int64)
        flow = FluidFlow(numbers, float(bits), on_end, cap_bits_per_s, weight)
        if not len(numbers):
            self.call_at(self.now_s, on_end)
            return flow
        self._is_changed = True
        self._started.append(flow)
        return flow

    def cap(self, flow: FluidFlow, cap_bits_per_s: float) -> None:
        """Limit a flow from now on; what has ended stays as it is."""
        if flow.is_open and flow.cap_bits_per_s != cap_bits_per_s:
            self._is_changed = self._are_caps_changed = True
            flow.cap_bits_per_s = cap_bits_per_s

    def set_capacities(self, capacities: Mapping[str, float]) -> None:
        """Change the rates of links from now on."""
        self._is_changed = True
        for link, capacity in capacities.items():
            self._capacities[self._number[link]] = capacity

    def run(self, until_s: float, is_done: Callable[[], bool] = lambda: False) -> None:
        """Let time pass until a moment, until nothing is left to do, or until `is_done`."""
        while not is_done():
            if self._is_changed:
                self._compute_rates()
            next_s = min(self._next_end_s(), self._calls[0][0] if self._calls else math.inf)
            if next_s > until_s or math.isinf(next_s):
                self._pass_time(until_s if math.isfinite(until_s) else self.now_s)
                return
            self.num_events += 1
            self._pass_time(next_s)
            ended = self._take_ended()
            for flow in ended:
                flow.on_end()
            while self._calls and self._calls[0][0] <= self.now_s + _ROUNDING_S:
                time_s, _, function = heapq.heappop(self._calls)
                # A call that waits for just this time must not wait for ever.
                self._pass_time(time_s)
                function()

    def _compute_rates(self) -> None:
        if self._started:
            self._add_started()
        if self._are_caps_changed:
            self._caps = np.array([flow.cap_bits_per_s for flow in self._flows], np.float64)
            self._are_caps_changed = False
        starts = np.cumsum(self._sizes) - self._sizes
        self._rates = max_min_rates(
            self._capacities, starts, self._links, self._caps, self._weights
        )
        self._is_changed = False

    def _add_started(self) -> None:
        flows = self._started
        self._started = []
        self._flows += flows
        sizes = np.array([len(flow.links) for flow in flows], np.int64)
        bits = np.array([flow.bits for flow in flows], np.float64)
        caps = np.array([flow.cap_bits_per_s for flow in flows], np.float64)
        weights = np.array([flow.weight for flow in flows], np.float64)
        self._sizes = np.concatenate((self._sizes, sizes))
        self._links = np.concatenate((self._links, *(flow.links for flow in flows)))
        self._bits = np.concatenate((self._bits, bits))
        self._left = np.concatenate((self._left, bits))
        self._caps = np.concatenate((self._caps, caps))
        self._weights = np.concatenate((self._weights, weights))

    def _next_end_s(self) -> float:
        moving = self._rates > 0
        if not moving.any():
            return math.inf
        return self.now_s + max(0.0, float((self._left[moving] / self._rates[moving]).min()))

    def _pass_time(self, time_s: float) -> None:
        if time_s > self.now_s:
            self._left = self._left - self._rates * (time_s - self.now_s)
            self.now_s = time_s

    def _take_ended(self) -> list[FluidFlow]:
        """Remove the flows whose last bit has moved; return them in the order of their starts."""
        numbers = np.flatnonzero((self._rates > 0) & (self._left <= self._rates * _ROUNDING_S))
        if not len(numbers):
            return []
        self._is_changed = True
        ended = [self._flows[number] for number in numbers]
        for flow in ended:
            flow.is_open = False
            self._moved[flow.links] += flow.bits
        stays = np.ones(len(self._flows), bool)
        stays[numbers] = False
        self._flows = [flow for flow in self._flows if flow.is_open]
        self._links = self._links[np.repeat(stays, self._sizes)]
        self._sizes = self._sizes[stays]
        self._bits, self._left = self._bits[stays], self._left[stays]
        self._caps, self._weights = self._caps[stays], self._weights[stays]
        self._rates = self._rates[stays]
        return ended
