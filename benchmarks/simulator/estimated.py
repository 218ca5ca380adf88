# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Scheduled training as a controller plans it: it knows of links only what transfers show.

Rates of links change, and nobody tells the scheduler. Each transfer's time is reported at its end,
as by a worker whose own processor is fast enough; the controller's rules make estimates of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from benchmarks.simulator.asynchronous import ComputeTimes
from benchmarks.simulator.scenario import Scenario
from benchmarks.simulator.scheduled import ScheduledRun
from switchfold.controller.scheduler.network import TransferNetwork
from switchfold.controller.scheduler.planning.bandwidth_estimate import TransferDirection
from switchfold.controller.scheduler.residual_rate import RateSpan
from switchfold.controller.scheduler.scheduler import SchedulerOptions
from switchfold.controller.transfers.rates.link_tracking import LinkTracker, SentUpdate

PLANNED_SHARE: Final = 0.96
"""Of what a link carries; a controller's `payload_share` leaves about as much aside, so that what
is late once does not stay so."""


class EstimatedRun(ScheduledRun):
    """Without sums: all transfers are whole updates and models."""

    def __init__(
        self,
        scenario: Scenario,
        computing: ComputeTimes | None = None,
        *,
        options: SchedulerOptions | None = None,
    ) -> None:
        super().__init__(scenario, computing, options=options)
        links: dict[str, tuple[str, TransferDirection]] = {}
        rates: dict[str, tuple[int, int]] = {}
        for host in scenario.link_trace.hosts:
            links[f"{host}>"] = host, TransferDirection.UP
            links[f">{host}"] = host, TransferDirection.DOWN
            is_worker = host in scenario.workers
            rate = scenario.link_bits_per_s if is_worker else scenario.server_link_bits_per_s
            rates[host] = (round(PLANNED_SHARE * rate),) * 2
        self.tracker = LinkTracker(links, rates)
        """Estimates of all hosts' links."""
        self._num_sent = 0
        self._scheduler.replace_network(self._network(rates), 0.0)

    def on_rates(self, period: int) -> None:
        """Tell the scheduler nothing."""

    def _network(self, rates: dict[str, tuple[int, int]]) -> TransferNetwork:
        known = self.scenario.network()
        capacities = dict(known.capacities_bits_per_s)
        for host, (up, down) in rates.items():
            capacities |= {f"{host}>": up, f">{host}": down}
        return TransferNetwork(
            capacities_bits_per_s=capacities,
            hosts=known.hosts,
            switches=known.switches,
            find_route=self.scenario.route,
        )

    def _send(
        self,
        links: Sequence[str],
        spans: Sequence[RateSpan],
        bits: int,
        on_end: Callable[[], None],
    ) -> None:
        """Send as a station does: as fast as its grant allows; report it at the end."""
        headroom = self.tracker.headroom(links)
        faster = [each._replace(rate_bits_per_s=round(headroom * each[2])) for each in spans]
        self._num_sent += 1
        key = 0, self._num_sent
        self.tracker.granted(key, links, spans, bits, headroom)
        began_s = max(spans[0].start_s, self.links.now_s)
        planned_s = spans[-1].end_s - spans[0].start_s

        def end() -> None:
            seconds = self.links.now_s - began_s
            sent = SentUpdate(seconds, max(0.0, seconds - planned_s))
            self.tracker.observe(key, sent, self.links.now_s)
            rates = self.tracker.take_change()
            if rates is not None:
                network = self._network(dict(rates))
                self._after_half_trip(
                    lambda: self._scheduler.replace_network(network, self.links.now_s)
                )
            on_end()

        super()._send(links, faster, bits, end)
