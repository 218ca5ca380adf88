# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Simulated time: flows that share links, and calls at given times. Nothing here is random."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
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
    left: float = field(init=False)
    """Bits that have not moved."""
    rate: float = 0.0

    def __post_init__(self) -> None:
        self.left = self.bits


class FluidNetwork:
    """Links, the flows on them, and the clock. Times are seconds, rates are bits/s.

    Rates are computed again only if a flow, a cap or a capacity has changed at the present time.
    """

    def __init__(self, capacities: Mapping[str, float]) -> None:
        self.now_s = 0.0
        self._number = {link: number for number, link in enumerate(capacities)}
        self._capacities = np.array(list(capacities.values()), np.float64)
        self._flows: dict[int, FluidFlow] = {}
        self._left = np.zeros(0)
        self._rates = np.zeros(0)
        self._calls: list[tuple[float, int, Callable[[], None]]] = []
        self._tickets = itertools.count()
        self._is_changed = True
        self._moved = np.zeros(len(self._capacities))
        self.num_events = 0
        """Times at which something happened."""

    @property
    def moved_bits(self) -> Mapping[str, float]:
        """By link, what ended flows have moved and open ones have moved so far."""
        self._store()
        moved = self._moved.copy()
        for flow in self._flows.values():
            moved[flow.links] += flow.bits - flow.left
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
        self._change()
        self._flows[id(flow)] = flow
        return flow

    def cap(self, flow: FluidFlow, cap_bits_per_s: float) -> None:
        """Limit a flow from now on; what has ended stays as it is."""
        if id(flow) in self._flows and flow.cap_bits_per_s != cap_bits_per_s:
            self._change()
            flow.cap_bits_per_s = cap_bits_per_s

    def set_capacities(self, capacities: Mapping[str, float]) -> None:
        """Change the rates of links from now on."""
        self._change()
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
                heapq.heappop(self._calls)[2]()

    def _change(self) -> None:
        if not self._is_changed:
            self._store()
            self._is_changed = True

    def _store(self) -> None:
        """Write the arrays' state back to the flows."""
        if not self._is_changed:
            for flow, left in zip(self._flows.values(), self._left.tolist(), strict=True):
                flow.left = left

    def _compute_rates(self) -> None:
        flows: Sequence[FluidFlow] = list(self._flows.values())
        self._left = np.array([flow.left for flow in flows], np.float64)
        sizes = [len(flow.links) for flow in flows]
        starts = np.concatenate(([0], np.cumsum(sizes)))[:-1].astype(np.int64)
        links = np.concatenate([flow.links for flow in flows]) if flows else np.zeros(0, np.int64)
        caps = np.array([flow.cap_bits_per_s for flow in flows], np.float64)
        weights = np.array([flow.weight for flow in flows], np.float64)
        self._rates = max_min_rates(self._capacities, starts, links, caps, weights)
        self._is_changed = False

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
        self._change()
        flows = list(self._flows.values())
        ended = [flows[number] for number in numbers]
        for flow in ended:
            del self._flows[id(flow)]
            flow.left = 0.0
            self._moved[flow.links] += flow.bits
        return ended
