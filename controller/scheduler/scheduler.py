# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The transfer scheduler of one job: requests in, decisions out, with time as an argument.

It has no clock, threads, or input and output of its own, so the same object serves a live
controller and a simulator. Order, bound on delay and groups follow MLfabric; what is ours is said
in each module, and in docs/scheduler.md.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from .checks import check_finite, check_whole
from .delay_bound import DelayBound
from .errors import (
    ClockError,
    DuplicateTransferError,
    UnknownStationError,
    UnknownTransferError,
)
from .grouping import AggregationPlaces, plan_groups
from .model_transfers import ModelTransfers
from .network import ResidualNetwork, TransferNetwork
from .open_transfers import Carried, OpenTransfers
from .ordering import order_transfers
from .server_queue import ServerQueue
from .tally import WorkerTally
from .transfers import (
    ModelGrant,
    ModelRequest,
    PlannedTransfer,
    TransferDrop,
    TransferGrant,
    TransferGroup,
    TransferRequest,
)

TransferDecision = TransferGrant | TransferDrop


@dataclass(frozen=True, kw_only=True)
class SchedulerOptions:
    """How a job's transfers are scheduled."""

    bound: DelayBound | None = None
    """Without one, nothing is dropped."""
    places: AggregationPlaces | None = None
    """Without any, all updates go to their server directly."""
    batch_max: int = 64
    """So many waiting requests become a batch at once. Ours."""
    batch_wait_s: float = 0.05
    """After so long, the oldest waiting request's batch is closed. Ours."""

    def __post_init__(self) -> None:
        check_whole("batch_max", self.batch_max, 1)
        check_finite("batch_wait_s", self.batch_wait_s, 0)


class TransferScheduler:
    """Decides on every transfer of a job.

    Each accepted request gets exactly one decision, unless it is withdrawn before. What a call
    refuses with a SchedulerError changes nothing.

    Cost: `submit`, `delivered` and `withdraw` take O(links x steps). `decide` costs what ordering
    a batch does (see `ordering`), and with aggregators what planning its groups does (`grouping`).
    """

    def __init__(
        self,
        network: TransferNetwork,
        servers: Mapping[str, int],
        options: SchedulerOptions | None = None,
    ) -> None:
        """`servers` are hosts, with the number of updates that each one's model contains now."""
        self._options = options or SchedulerOptions()
        self._open = OpenTransfers(network)
        self._servers: dict[str, ServerQueue] = {}
        for server, version in servers.items():
            check_whole(f"version of {server}", version, 0)
            self._servers[server] = ServerQueue(server, version)
        self._check_stations(network)
        self._models = ModelTransfers(servers, self._open)
        self._now_s = -math.inf
        self._server_of: dict[int, str] = {}
        """By id of each transfer that waits or is granted."""
        self._last_ids: dict[str, int] = {}
        """By worker."""
        self._tallies: defaultdict[str, WorkerTally] = defaultdict(WorkerTally)
        self._arrived: set[int] = set()
        """Transfers that are at their server, which has not applied them yet."""
        self._num_groups = 0
        self._open_groups: dict[int, set[int]] = {}
        """Groups with the members that have not arrived."""

    @property
    def tallies(self) -> Mapping[str, WorkerTally]:
        """By worker, what has become of its updates."""
        return dict(self._tallies)

    @property
    def residual(self) -> ResidualNetwork:
        """A copy of the network with all reservations; no rate is below 0."""
        return self._open.residual.at_least_0()

    def version(self, server: str) -> int:
        """Return the number of updates that a server's model contains."""
        return self._queue(server).version

    def submit(self, request: TransferRequest, now_s: float) -> None:
        """Take a request; `decide` answers it."""
        self._check_clock(now_s)
        self._network.check_host(request.worker, "worker")
        queue = self._queue(request.server)
        last = self._last_ids.get(request.worker, -1)
        if request.transfer_id <= last or request.transfer_id in self._server_of:
            raise DuplicateTransferError(
                f"transfer {request.transfer_id} of {request.worker} was submitted before, or "
                f"follows a higher id ({last}): number the transfers of a worker upwards, and give "
                "no two workers the same number"
            )
        self._network.route(request.worker, request.server)
        queue.add(request, now_s)
        self._now_s = now_s
        self._last_ids[request.worker] = request.transfer_id
        self._server_of[request.transfer_id] = request.server
        tally = self._tallies[request.worker]
        tally.pushes += 1
        tally.waiting += 1

    def next_due_s(self) -> float | None:
        """Return when `decide` or `grant_models` has something to do, None if nothing waits."""
        options = self._options
        due = [q.due_s(options.batch_max, options.batch_wait_s) for q in self._servers.values()]
        due.append(self._models.next_due_s(options.batch_max, options.batch_wait_s))
        return min((each for each in due if each is not None), default=None)

    def decide(self, now_s: float) -> list[TransferDecision]:
        """Close the batches that are due; return the decisions, by server and in commit order."""
        self._check_clock(now_s)
        self._look_ahead(now_s)
        decisions: list[TransferDecision] = []
        for queue in self._servers.values():
            due_s = queue.due_s(self._options.batch_max, self._options.batch_wait_s)
            if due_s is not None and due_s <= now_s:
                decisions += self._decide_batch(queue, now_s)
        return decisions

    def delivered(self, transfer_ids: Iterable[int], now_s: float) -> list[TransferGrant]:
        """Note that one message has brought these updates to their server.

        Returns the grants that the server can apply now, in commit order.
        """
        grants = {transfer_id: self._on_its_way(transfer_id) for transfer_id in transfer_ids}
        self._check_clock(now_s)
        self._now_s = now_s
        ready: list[TransferGrant] = []
        for grant in grants.values():
            self._release(grant, now_s)
            self._arrived.add(grant.request.transfer_id)
            queue = self._servers[grant.request.server]
            ready += self._commit(queue, queue.commits.arrive(grant.sequence, grant))
        return ready

    def withdraw(self, transfer_id: int, now_s: float) -> Sequence[TransferGrant]:
        """Give up a transfer whose worker is gone or whose update is lost.

        Returns the grants that the server can apply now, since it need not wait for this one.
        """
        server = self._server_of.get(transfer_id)
        is_waiting = server is not None and transfer_id in self._servers[server]
        grant = None if is_waiting else self._on_its_way(transfer_id)
        self._check_clock(now_s)
        self._now_s = now_s
        queue = self._servers[self._server_of.pop(transfer_id)]
        if grant is None:
            tally = self._tallies[queue.remove(transfer_id).worker]
            tally.waiting -= 1
            tally.withdrawn += 1
            return []
        tally = self._tallies[grant.request.worker]
        tally.granted -= 1
        tally.withdrawn += 1
        self._release(grant, now_s)
        del queue.granted[transfer_id]
        return self._commit(queue, queue.commits.skip(grant.sequence))

    @property
    def _network(self) -> TransferNetwork:
        return self._open.residual.network

    def _check_stations(self, network: TransferNetwork) -> None:
        """Raise UnknownStationError unless a network has the servers and all aggregators."""
        for server in self._servers:
            network.check_host(server, "server")
        places = self._options.places or AggregationPlaces()
        for host in places.hosts:
            network.check_host(host, "aggregator")
        for switch, below in places.switches.items():
            if switch not in network.switches:
                known = ", ".join(sorted(network.switches)) or "none"
                raise UnknownStationError(f"no switch {switch!r} to aggregate at; known: {known}")
            for host in below:
                network.check_host(host, f"below {switch},")

    def _queue(self, server: str) -> ServerQueue:
        found = self._servers.get(server)
        if found is None:
            known = ", ".join(sorted(self._servers)) or "none"
            raise UnknownStationError(f"{server!r} is no server of the job; its servers: {known}")
        return found

    def _on_its_way(self, transfer_id: int) -> TransferGrant:
        server = self._server_of.get(transfer_id)
        grant = self._servers[server].granted.get(transfer_id) if server is not None else None
        if grant is None or transfer_id in self._arrived:
            raise UnknownTransferError(
                f"transfer {transfer_id} is not granted and under way: it is unknown, waits for a "
                "decision, or has arrived, been dropped or been withdrawn"
            )
        return grant

    def request_model(self, request: ModelRequest, now_s: float) -> None:
        """Take a worker's request for a model; `grant_models` answers it."""
        self._check_clock(now_s)
        self._network.check_host(request.worker, "worker")
        self._queue(request.server)
        self._models.submit(request, now_s)
        self._now_s = now_s

    def grant_models(self, now_s: float) -> list[ModelGrant]:
        """Close the batches of models that are due; return the grants, by server and in order."""
        self._check_clock(now_s)
        self._look_ahead(now_s)
        return self._models.grant(now_s, self._options.batch_max, self._options.batch_wait_s)

    def model_delivered(self, transfer_id: int, now_s: float) -> None:
        """Note that a model is at its worker."""
        self._models.check_granted(transfer_id)
        self.withdraw_model(transfer_id, now_s)

    def withdraw_model(self, transfer_id: int, now_s: float) -> None:
        """Give up a model that waits or is on its way, whose worker is gone."""
        self._check_clock(now_s)
        self._models.end(transfer_id, now_s)
        self._now_s = now_s

    def replace_network(self, network: TransferNetwork, now_s: float) -> None:
        """Go on with changed capacities or routes.

        Open grants stay as they are, on the links of their plans, even if these can no longer
        carry them. All that waits is planned in what they leave. A request without a route waits
        for a network that has one. The network must have all servers and aggregators.
        """
        self._check_clock(now_s)
        self._check_stations(network)
        self._now_s = now_s
        self._open.residual.replace_network(network)
        for queue in self._servers.values():
            queue.sort_out(network)
        self._models.sort_out(network)

    def _look_ahead(self, now_s: float) -> None:
        """Bring the reservations up to date before a plan."""
        self._now_s = now_s
        self._open.residual.forget(now_s)
        self._open.extend_late(now_s)

    def _check_clock(self, now_s: float) -> None:
        if not math.isfinite(now_s) or now_s < self._now_s:
            raise ClockError(
                f"now_s is {now_s}, after {self._now_s}: give finite times that do not go back"
            )

    def _decide_batch(self, queue: ServerQueue, now_s: float) -> list[TransferDecision]:
        requests = list(queue.waiting.values())
        trial = self._open.residual.fork()
        first_commit = queue.next_commit
        ordered, drops = order_transfers(trial, requests, now_s, first_commit, self._options.bound)
        grants = self._plan(queue, ordered, trial, now_s)
        for request in requests:
            queue.remove(request.transfer_id)
        for grant in grants:
            queue.granted[grant.request.transfer_id] = grant
            planned = grant.planned
            self._open.hold(
                (Carried.UPDATE, grant.request.transfer_id),
                planned.links,
                planned.spans,
                may_be_late=grant.group is None,
            )
            tally = self._tallies[grant.request.worker]
            tally.waiting -= 1
            tally.granted += 1
        for drop in drops:
            del self._server_of[drop.request.transfer_id]
            tally = self._tallies[drop.request.worker]
            tally.waiting -= 1
            tally.drops += 1
        return [*grants, *drops]

    def _plan(
        self,
        queue: ServerQueue,
        ordered: Sequence[PlannedTransfer],
        trial: ResidualNetwork,
        now_s: float,
    ) -> list[TransferGrant]:
        """Plan groups, if there are places for them, and reserve; return the grants in order."""
        planned: dict[int, PlannedTransfer] = {p.request.transfer_id: p for p in ordered}
        group_of: dict[int, TransferGroup] = {}
        if self._options.places:
            plan = plan_groups(
                self._open.residual,
                [each.request for each in ordered],
                now_s,
                self._options.places,
                earliest_commit_s=queue.last_commit_s,
            )
            planned |= {each.request.transfer_id: each for each in plan.direct}
            for group in plan.groups:
                numbered = self._number(group)
                for member in group.members:
                    planned[member.request.transfer_id] = member
                    group_of[member.request.transfer_id] = numbered
            trial = plan.residual
        self._open.residual.adopt(trial)
        grants: list[TransferGrant] = []
        first_commit = queue.next_commit
        for position, transfer_id in enumerate(planned):
            group = group_of.get(transfer_id)
            end_s = group.end_s if group else planned[transfer_id].end_s
            queue.last_commit_s = max(queue.last_commit_s, end_s)
            grants.append(
                TransferGrant(
                    planned=planned[transfer_id],
                    sequence=queue.next_sequence,
                    delay=first_commit + position - planned[transfer_id].request.version,
                    commit_s=queue.last_commit_s,
                    group=group,
                )
            )
            queue.next_sequence += 1
        return grants

    def _number(self, group: TransferGroup) -> TransferGroup:
        numbered = replace(group, group_id=self._num_groups)
        self._num_groups += 1
        ids = {member.request.transfer_id for member in group.members}
        self._open_groups[numbered.group_id] = ids
        self._open.hold((Carried.SUM, numbered.group_id), group.links, group.spans)
        return numbered

    def _release(self, grant: TransferGrant, now_s: float) -> None:
        """Give back what is left of the reservations for an update, and for its group's sum."""
        self._open.release((Carried.UPDATE, grant.request.transfer_id), now_s)
        if grant.group:
            group_id = grant.group.group_id
            members = self._open_groups[group_id]
            members.discard(grant.request.transfer_id)
            if not members:
                self._open.release((Carried.SUM, group_id), now_s)
                del self._open_groups[group_id]

    def _commit(
        self, queue: ServerQueue, grants: Sequence[TransferGrant]
    ) -> Sequence[TransferGrant]:
        """Count what the server applies now; return it."""
        for grant in grants:
            transfer_id = grant.request.transfer_id
            queue.version += 1
            del queue.granted[transfer_id], self._server_of[transfer_id]
            self._arrived.discard(transfer_id)
            tally = self._tallies[grant.request.worker]
            tally.granted -= 1
            tally.commits += 1
        return grants
