# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Synchronous training whose allreduces the transfer scheduler plans."""

from __future__ import annotations

from collections import Counter
from functools import partial

from benchmarks.simulator.asynchronous import ComputeTimes
from benchmarks.simulator.paced import send_paced
from benchmarks.simulator.scenario import Scenario
from benchmarks.simulator.synchronous import SynchronousRun
from switchfold.controller.scheduler.planning.allreduce_plan import ChunkLeg
from switchfold.controller.scheduler.scheduler import TransferScheduler
from switchfold.controller.scheduler.state.open_allreduces import AllreduceGrant


class PlannedAllreduce(SynchronousRun):
    """Roots by free bandwidth: members send them their parts, and get the sums.

    A worker asks and hears in half of the control round trip each. All legs keep their planned
    rates, and a sum leaves its root once all parts are there.
    """

    def __init__(self, scenario: Scenario, computing: ComputeTimes | None = None) -> None:
        super().__init__(scenario, computing)
        servers = dict.fromkeys(scenario.servers, 0)
        self._scheduler = TransferScheduler(scenario.network(), servers)
        self._missing: Counter[tuple[str, int]] = Counter()
        """By root and first byte of a piece, parts that are not there."""
        self._parts: dict[tuple[str, int], list[ChunkLeg]] = {}
        """Likewise: the legs of the sum."""

    def on_rates(self, period: int) -> None:
        """Tell the scheduler; allreduces under way keep their plans."""
        network = self.scenario.network(period)
        half_s = self.scenario.control_rtt_s / 2
        self.links.call_after(
            half_s, lambda: self._scheduler.replace_network(network, self.links.now_s)
        )

    def all_computed(self) -> None:
        self.links.call_after(self.scenario.control_rtt_s / 2, self._plan)

    def _plan(self) -> None:
        size_bytes = self.scenario.update_bytes
        grant = self._scheduler.allreduce(self.scenario.workers, size_bytes, self.links.now_s)
        self.links.call_after(self.scenario.control_rtt_s / 2, partial(self._send, grant))

    def _send(self, grant: AllreduceGrant) -> None:
        plan = grant.plan
        self.begin_step(len(plan.down))
        self._missing = Counter((leg.receiver, leg.start_byte) for leg in plan.up)
        self._parts = {}
        for leg in plan.down:
            self._parts.setdefault((leg.sender, leg.start_byte), []).append(leg)
        for leg in plan.up:
            self._start(leg, partial(self._at_root, grant, leg))

    def _at_root(self, grant: AllreduceGrant, arrived: ChunkLeg) -> None:
        key = arrived.receiver, arrived.start_byte
        self._missing[key] -= 1
        if not self._missing[key]:
            for leg in self._parts[key]:
                self._start(leg, partial(self._at_member, grant))

    def _at_member(self, grant: AllreduceGrant) -> None:
        if self.transferred():
            self._scheduler.allreduce_ended(grant.number, self.links.now_s)
            self.commit_all()
            self.next_iteration()

    def _start(self, leg: ChunkLeg, on_end: partial[None]) -> None:
        bits = 8 * (leg.stop_byte - leg.start_byte)
        send_paced(self.links, leg.links, leg.spans, bits, on_end)
