# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Scheduled training as a controller plans it: it knows of links only what transfers show.

Rates of links change, and nobody tells the scheduler. Each transfer's time is reported at its end,
as by a worker whose own processor is fast enough; the controller's rules make estimates of it. As
in a controller, nobody reports of sums in a switch, nor of models that workers send on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from benchmarks.simulator.asynchronous import ComputeTimes
from benchmarks.simulator.scenario import Scenario
from benchmarks.simulator.scheduled import GroupPlaces, ScheduledRun
from switchfold.controller.scheduler.network import TransferNetwork
from switchfold.controller.scheduler.planning.bandwidth_estimate import TransferDirection
from switchfold.controller.scheduler.residual_rate import RateSpan
from switchfold.controller.scheduler.scheduler import SchedulerOptions
from switchfold.controller.scheduler.transfers import ModelGrant, TransferGroup
from switchfold.controller.transfers.rates.link_tracking import LinkTracker, SentUpdate

PLANNED_SHARE: Final = 0.96
"""Of what a link carries; a controller's `payload_share` leaves about as much aside, so that what
is late once does not stay so."""


class EstimatedRun(ScheduledRun):
    """Updates and models travel alone, in sums, and along chains of workers."""

    def __init__(
        self,
        scenario: Scenario,
        computing: ComputeTimes | None = None,
        *,
        places: GroupPlaces = GroupPlaces.NOWHERE,
        options: SchedulerOptions | None = None,
        planned_share: float = PLANNED_SHARE,
    ) -> None:
        """`planned_share`: of what links carry at their nominal rates, what plans use."""
        super().__init__(scenario, computing, places=places, options=options)
        links: dict[str, tuple[str, TransferDirection]] = {}
        rates: dict[str, tuple[int, int]] = {}
        for host in scenario.link_trace.hosts:
            links[f"{host}>"] = host, TransferDirection.UP
            links[f">{host}"] = host, TransferDirection.DOWN
            is_worker = host in scenario.workers
            rate = scenario.link_bits_per_s if is_worker else scenario.server_link_bits_per_s
            rates[host] = (round(planned_share * rate),) * 2
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
        self._send_observed(links, spans, bits, self.tracker.headroom(links), on_end)

    def _send_model(self, chain: Sequence[ModelGrant]) -> None:
        """Send a model along a chain; each worker sends on what it has got, as fast as it can."""
        headroom = min(self.tracker.headroom(grant.links) for grant in chain)
        hops = len(chain)
        has_ended = [False] * hops
        told = 0

        def end(hop: int) -> None:
            """Nobody has a model before the worker from which it comes."""
            nonlocal told
            has_ended[hop] = True
            while told < hops and has_ended[told]:
                told += 1
                self._models_sent([chain[told - 1].request])

        for hop, grant in enumerate(chain):
            self.fix_version(grant.request.worker, grant.request.server)
            bits = grant.request.bits
            if hop:
                self._note_grant(grant.links, grant.spans, bits, headroom)
                faster = _faster(grant.spans, headroom)
                super()._send(grant.links, faster, bits, partial(end, hop))
            else:
                self._send_observed(grant.links, grant.spans, bits, headroom, partial(end, hop))

    def _begin_group(self, group: TransferGroup) -> None:
        """Let a switch add up at the rates of the grant; nobody measures its packets."""
        if not group.is_switch:
            super()._begin_group(group)
            return
        requests = [member.request for member in group.members]
        bits = max(request.bits for request in requests)
        super()._send(group.links, group.spans, bits, partial(self._deliver, requests))

    def _note_grant(
        self, links: Sequence[str], spans: Sequence[RateSpan], bits: int, headroom: float
    ) -> tuple[int, int]:
        """Tell the estimates of a grant; return its key."""
        self._num_sent += 1
        key = 0, self._num_sent
        self.tracker.granted(key, links, spans, bits, headroom)
        return key

    def _send_observed(
        self,
        links: Sequence[str],
        spans: Sequence[RateSpan],
        bits: int,
        headroom: float,
        on_end: Callable[[], None],
    ) -> None:
        key = self._note_grant(links, spans, bits, headroom)
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

        super()._send(links, _faster(spans, headroom), bits, end)


def _faster(spans: Sequence[RateSpan], headroom: float) -> list[RateSpan]:
    """Return the spans of a grant that may be so many times as fast as its plan."""
    return [each._replace(rate_bits_per_s=round(headroom * each.rate_bits_per_s)) for each in spans]
