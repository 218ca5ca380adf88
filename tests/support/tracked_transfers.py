# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Granted updates in simulated time over links that nobody tells the scheduler of."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from benchmarks.simulator.fluid import FluidNetwork
from switchfold.controller.scheduler.network import TransferNetwork
from switchfold.controller.scheduler.planning.bandwidth_estimate import TransferDirection
from switchfold.controller.scheduler.scheduler import SchedulerOptions, TransferScheduler
from switchfold.controller.scheduler.transfers import TransferGrant, TransferRequest
from switchfold.controller.transfers.rates.link_tracking import LinkTracker, RateVerdict, SentUpdate
from transfer_cases import MBIT


@dataclass(frozen=True, kw_only=True)
class TrackedUpdate:
    """One granted update, as it went."""

    worker: str
    server: str
    granted_bits_per_s: float
    """Mean rate of its plan."""
    planned_end_s: float
    ended_s: float
    verdict: RateVerdict | None


class TrackedTransfers:
    """Hosts around one switch; each worker pushes again `pause_s` after its update is there."""

    def __init__(
        self,
        workers: Mapping[str, str],
        *,
        servers: tuple[str, ...] = ("h0",),
        rate_bits_per_s: int = 100 * MBIT,
        size_bytes: int = 2_500_000,
        pause_s: float = 0.01,
    ) -> None:
        """`workers` have their servers."""
        hosts = dict.fromkeys((*servers, *workers), (rate_bits_per_s, rate_bits_per_s))
        network = TransferNetwork.star(hosts)
        links = {f"{host}>s1": (host, TransferDirection.UP) for host in hosts}
        links |= {f"s1>{host}": (host, TransferDirection.DOWN) for host in hosts}
        self.tracker = LinkTracker(links, hosts)
        self.scheduler = TransferScheduler(
            network, dict.fromkeys(servers, 0), SchedulerOptions(batch_wait_s=0.01)
        )
        self.fluid = FluidNetwork(network.capacities_bits_per_s)
        self.sent: list[TrackedUpdate] = []
        self.processor_bits_per_s: dict[str, float] = {}
        """Of workers that cannot send faster."""
        self._size_bytes, self._pause_s = size_bytes, pause_s
        self._ids = itertools.count(1)
        for worker, server in workers.items():
            self.fluid.call_at(0.0, partial(self._push, worker, server))

    def set_rate(self, host: str, direction: TransferDirection, mbits_per_s: float) -> None:
        link = f"{host}>s1" if direction is TransferDirection.UP else f"s1>{host}"
        self.fluid.set_capacities({link: mbits_per_s * MBIT})

    def run(self, until_s: float) -> list[TrackedUpdate]:
        """Return the updates that have ended since the last call."""
        before = len(self.sent)
        self.fluid.run(until_s)
        return self.sent[before:]

    def mbits(self, host: str, direction: TransferDirection) -> float:
        """Return what a host's link is estimated to carry."""
        slowed = self.tracker.slowed().get(host)
        rates = slowed[0] if slowed else (100 * MBIT, 100 * MBIT)
        return rates[0 if direction is TransferDirection.UP else 1] / MBIT

    def _push(self, worker: str, server: str) -> None:
        request = TransferRequest(
            transfer_id=next(self._ids),
            worker=worker,
            server=server,
            size_bytes=self._size_bytes,
            version=0,
        )
        self.scheduler.submit(request, self.fluid.now_s)
        self._decide_in_time()

    def _decide_in_time(self) -> None:
        due_s = self.scheduler.next_due_s()
        if due_s is not None:
            self.fluid.call_at(due_s, self._decide)

    def _decide(self) -> None:
        for grant in self.scheduler.decide(self.fluid.now_s):
            assert isinstance(grant, TransferGrant)
            key, links = (0, grant.request.transfer_id), grant.planned.links
            headroom = self.tracker.headroom(links)
            self.tracker.granted(key, links, grant.spans, grant.request.bits, headroom)
            self.fluid.call_at(grant.spans[0].start_s, partial(self._send, grant, headroom))
        self._decide_in_time()

    def _send(self, grant: TransferGrant, headroom: float) -> None:
        most = self.processor_bits_per_s.get(grant.request.worker, float("inf"))
        began_s = self.fluid.now_s
        flow = self.fluid.start(
            grant.planned.links,
            grant.request.bits,
            partial(self._sent, grant, began_s, most),
            cap_bits_per_s=min(most, headroom * grant.spans[0].rate_bits_per_s),
        )
        for span, following in itertools.pairwise(grant.spans):
            if following.start_s > span.end_s:
                self.fluid.call_at(span.end_s, partial(self.fluid.cap, flow, 0))
            rate = min(most, headroom * following.rate_bits_per_s)
            self.fluid.call_at(following.start_s, partial(self.fluid.cap, flow, rate))

    def _sent(self, grant: TransferGrant, began_s: float, most_bits_per_s: float) -> None:
        now_s, request = self.fluid.now_s, grant.request
        planned_s = grant.spans[-1].end_s - grant.spans[0].start_s
        is_own = most_bits_per_s < grant.request.bits / planned_s
        late_s = max(0.0, now_s - began_s - planned_s)
        sent = SentUpdate(now_s - began_s, 0.0 if is_own else late_s)
        verdict = self.tracker.observe((0, request.transfer_id), sent, now_s)
        active_s = sum(span.end_s - span.start_s for span in grant.spans)
        self.sent.append(
            TrackedUpdate(
                worker=request.worker,
                server=request.server,
                granted_bits_per_s=request.bits / active_s,
                planned_end_s=grant.planned.end_s,
                ended_s=now_s,
                verdict=verdict,
            )
        )
        rates = self.tracker.take_change()
        if rates is not None:
            self.scheduler.replace_network(TransferNetwork.star(rates), now_s)
        self.scheduler.delivered([request.transfer_id], now_s)
        self.fluid.call_after(self._pause_s, partial(self._push, request.worker, request.server))
        self._decide_in_time()
