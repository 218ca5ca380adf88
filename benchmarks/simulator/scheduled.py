# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Asynchronous training whose updates are granted by the transfer scheduler itself.

A request, a decision and a delivery each take half of the control round trip. A decision costs the
scheduler a stated simulated time; what it costs this machine is measured beside it, and does not
change the run. A sender keeps its grant's rates, and goes on at the last one if it is late. Links
that are slower than the scheduler knows slow all flows on them, as they do for the others.
"""

from __future__ import annotations

import enum
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from benchmarks.simulator.asynchronous import AsynchronousRun, ComputeTimes
from benchmarks.simulator.paced import send_paced
from benchmarks.simulator.scenario import Scenario
from benchmarks.simulator.timeline import TimelineKind
from switchfold.controller.scheduler.grouping import AggregationPlaces
from switchfold.controller.scheduler.residual_rate import RateSpan
from switchfold.controller.scheduler.scheduler import (
    SchedulerOptions,
    TransferDecision,
    TransferScheduler,
)
from switchfold.controller.scheduler.transfers import (
    ModelGrant,
    ModelRequest,
    TransferDrop,
    TransferGroup,
    TransferRequest,
)


class GroupPlaces(enum.Enum):
    """Where the scheduler may add updates up."""

    NOWHERE = "nowhere"
    HOSTS = "hosts"
    SWITCHES = "switches"


class ScheduledRun(AsynchronousRun):
    """The same `TransferScheduler` object as in a controller, with simulated time."""

    def __init__(
        self,
        scenario: Scenario,
        computing: ComputeTimes | None = None,
        *,
        places: GroupPlaces = GroupPlaces.NOWHERE,
        options: SchedulerOptions | None = None,
    ) -> None:
        """`places` are those of the scenario, whatever the options say."""
        super().__init__(scenario, computing)
        found = {
            GroupPlaces.NOWHERE: None,
            GroupPlaces.HOSTS: AggregationPlaces(hosts=scenario.adders),
            GroupPlaces.SWITCHES: AggregationPlaces(switches=scenario.leaves),
        }[places]
        self._scheduler = TransferScheduler(
            scenario.network(),
            dict.fromkeys(scenario.servers, 0),
            replace(options or SchedulerOptions(), places=found),
        )
        self._num_requests = 0
        self._num_model_requests = 0
        self._due_s: float | None = None
        self._free_s = 0.0
        """When the scheduler has done all of its work so far."""
        self._ungathered: dict[int, set[int]] = {}
        """By group at a host, the members that are not there."""
        self.num_decisions = 0
        self.decision_costs_s: list[float] = []
        """By batch, this machine's processor time for each of its decisions."""
        self.num_groups = 0

    @property
    def median_cost_s(self) -> float:
        """Median of `decision_costs_s`, which other programs' load moves little."""
        return statistics.median(self.decision_costs_s) if self.decision_costs_s else 0.0

    def push(self, worker: str, server: str) -> None:
        request = TransferRequest(
            transfer_id=self._num_requests,
            worker=worker,
            server=server,
            size_bytes=self.scenario.shard_bytes,
            version=self.progress[worker].versions[server],
        )
        self._num_requests += 1
        self._after_half_trip(partial(self._submit, request))

    def _after_half_trip(self, function: Callable[[], None]) -> None:
        self.links.call_after(self.scenario.control_rtt_s / 2, function)

    def get(self, worker: str, server: str) -> None:
        if not self.scenario.has_models:
            super().get(worker, server)
            return
        request = ModelRequest(
            transfer_id=self._num_model_requests,
            worker=worker,
            server=server,
            size_bytes=self.scenario.shard_bytes,
            may_relay=True,
        )
        self._num_model_requests += 1
        self._after_half_trip(partial(self._request_model, request))

    def on_rates(self, period: int) -> None:
        """Tell the scheduler; grants that are open stay as they are."""
        network = self.scenario.network(period)
        self._after_half_trip(lambda: self._scheduler.replace_network(network, self.links.now_s))

    def _request_model(self, request: ModelRequest) -> None:
        self._scheduler.request_model(request, self.links.now_s)
        self._plan_decision()

    def _enforce_models(self, grants: Sequence[ModelGrant]) -> None:
        """Let servers send models as they are told; the version is that of the first byte."""
        chains: list[list[ModelGrant]] = []
        for grant in grants:
            if grant.relayed_by is None:
                chains.append([])
            chains[-1].append(grant)
        for chain in chains:
            begin_s = max(chain[0].spans[0].start_s, self.links.now_s)
            self.links.call_at(begin_s, partial(self._send_model, chain))

    def _send_model(self, chain: Sequence[ModelGrant]) -> None:
        """Send a model to a worker, or along a chain of workers, which all have it at once."""
        for grant in chain:
            self.fix_version(grant.request.worker, grant.request.server)
        links = [link for grant in chain for link in grant.links]
        requests = [grant.request for grant in chain]
        self._send(links, chain[0].spans, requests[0].bits, partial(self._models_sent, requests))

    def _models_sent(self, requests: Sequence[ModelRequest]) -> None:
        for request in requests:
            self._after_half_trip(partial(self._model_delivered, request.transfer_id))
            self.got(request.worker, request.server)

    def _model_delivered(self, transfer_id: int) -> None:
        self._scheduler.model_delivered(transfer_id, self.links.now_s)
        self._plan_decision()

    def _submit(self, request: TransferRequest) -> None:
        self._scheduler.submit(request, self.links.now_s)
        self._plan_decision()

    def _plan_decision(self) -> None:
        due_s = self._scheduler.next_due_s()
        if due_s is not None:
            due_s = max(due_s, self._free_s, self.links.now_s)
            if self._due_s is None or due_s < self._due_s:
                self._due_s = due_s
                self.links.call_at(due_s, partial(self._decide, due_s))

    def _decide(self, due_s: float) -> None:
        if self._due_s != due_s:
            return  # an earlier one has taken its place
        self._due_s = None
        began_s = time.thread_time()
        models = self._scheduler.grant_models(self.links.now_s)
        decisions = self._scheduler.decide(self.links.now_s)
        took_s = time.thread_time() - began_s
        num_decided = len(decisions) + len(models)
        if num_decided:
            self.decision_costs_s.append(took_s / num_decided)
        self.num_decisions += num_decided
        self._free_s = self.links.now_s + num_decided * self.scenario.decision_s
        tell_s = self._free_s + self.scenario.control_rtt_s / 2
        self.links.call_at(tell_s, partial(self._enforce_models, models))
        self.links.call_at(tell_s, partial(self._enforce, decisions))
        self._plan_decision()

    def _enforce(self, decisions: Sequence[TransferDecision]) -> None:
        """Let hosts do what they are told."""
        begun: set[int] = set()
        for decision in decisions:
            request = decision.request
            if isinstance(decision, TransferDrop):
                self.drop(request.worker, request.server)
                continue
            group = decision.group
            if group is None:
                deliver = partial(self._deliver, [decision.request])
                self._send(decision.planned.links, decision.spans, request.bits, deliver)
                continue
            if group.group_id not in begun:
                begun.add(group.group_id)
                self.num_groups += 1
                self._begin_group(group)
            if not group.is_switch:
                arrived = partial(self._gather, group, request.transfer_id)
                self._send(decision.planned.links, decision.spans, request.bits, arrived)

    def _begin_group(self, group: TransferGroup) -> None:
        requests = [member.request for member in group.members]
        if group.is_switch:
            bits = max(request.bits for request in requests)
            self._send(group.links, group.spans, bits, partial(self._deliver, requests))
        else:
            self._ungathered[group.group_id] = {each.transfer_id for each in requests}

    def _gather(self, group: TransferGroup, transfer_id: int) -> None:
        waiting = self._ungathered[group.group_id]
        waiting.remove(transfer_id)
        if not waiting:
            del self._ungathered[group.group_id]
            requests = [member.request for member in group.members]
            bits = max(request.bits for request in requests)
            self._send(group.links, group.spans, bits, partial(self._deliver, requests))

    def _deliver(self, requests: Sequence[TransferRequest]) -> None:
        """Note one message's arrival at its server."""
        for request in requests:
            self.note(TimelineKind.SENT, request.worker, request.server)
        ids = [request.transfer_id for request in requests]
        self._after_half_trip(partial(self._delivered, ids))

    def _delivered(self, ids: Sequence[int]) -> None:
        for grant in self._scheduler.delivered(ids, self.links.now_s):
            self.commit(grant.request.worker, grant.request.server)
        self._plan_decision()

    def _send(
        self,
        links: Sequence[str],
        spans: Sequence[RateSpan],
        bits: int,
        on_end: Callable[[], None],
    ) -> None:
        send_paced(self.links, links, spans, bits, on_end)
