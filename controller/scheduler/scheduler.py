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

from .checks import check_whole
from .errors import (
    ClockError,
    DuplicateTransferError,
    InvalidTransferError,
    UnknownStationError,
    UnknownTransferError,
)
from .grouping import AggregationPlaces
from .network import ResidualNetwork, TransferNetwork
from .planning.allreduce_plan import check_allreduce
from .server_queue import ServerQueue
from .state.expiry import Expiry
from .state.model_transfers import ModelTransfers
from .state.open_allreduces import AllreduceGrant, OpenAllreduces
from .state.open_groups import OpenGroups
from .state.open_transfers import OpenTransfers
from .state.server_replica import Promotion, ReplicaOptions, ServerReplica
from .state.server_transfers import ServerTransfers
from .tally import WorkerTally
from .training.commit_order import CommitOrder
from .training.options import SchedulerOptions
from .training.training_modes import StaleSynchronousTraining, WorkerClocks
from .transfers import (
    ModelGrant,
    ModelRequest,
    TransferDecision,
    TransferDrop,
    TransferGrant,
    TransferGroup,
    TransferRequest,
)

__all__ = ["SchedulerOptions", "TransferDecision", "TransferScheduler"]


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
        self._places = self._options.places
        self._open = OpenTransfers(network)
        self._tallies: defaultdict[str, WorkerTally] = defaultdict(WorkerTally)
        self._groups = OpenGroups(self._open)
        self._allreduces = OpenAllreduces(self._open)
        self._servers: dict[str, ServerTransfers] = {}
        for server, version in servers.items():
            check_whole(f"version of {server}", version, 0)
            self._servers[server] = ServerTransfers(
                ServerQueue(server, version), self._options, self._open, self._groups, self._tallies
            )
        for server in self._options.replicas:
            self._server(server)
        self._check_stations(network)
        mode = self._options.mode
        self._clocks = WorkerClocks(mode) if isinstance(mode, StaleSynchronousTraining) else None
        if isinstance(mode, StaleSynchronousTraining):
            for worker in mode.workers or ():
                network.check_host(worker, "worker")
        most_queued = None if mode else self._options.most_queued_updates
        self._models = ModelTransfers(servers, self._open, self._clocks, most_queued)
        self._now_s = -math.inf
        self._server_of: dict[int, str] = {}
        """By id of each transfer that waits or is granted."""
        self._last_ids: dict[str, int] = {}
        """By worker."""

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
        return self._server(server).queue.version

    def submit(self, request: TransferRequest, now_s: float) -> None:
        """Take a request; `decide` answers it."""
        self._check_clock(now_s)
        self._network.check_host(request.worker, "worker")
        queue = self._server(request.server).queue
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
        self._models.update_requested(request.worker, request.server, now_s)
        tally = self._tallies[request.worker]
        tally.pushes += 1
        tally.waiting += 1

    def next_due_s(self) -> float | None:
        """Return when `decide` or `grant_models` has something to do, None if nothing waits."""
        due = [self._due_s(each.queue) for each in self._servers.values()]
        due.append(self._models.next_due_s(self._options, self._now_s))
        return min((each for each in due if each is not None), default=None)

    def decide(self, now_s: float) -> list[TransferDecision]:
        """Close the batches that are due; return the decisions, by server and in commit order."""
        self._check_clock(now_s)
        self._look_ahead(now_s)
        decisions: list[TransferDecision] = []
        for server in self._servers.values():
            due_s = self._due_s(server.queue)
            if due_s is not None and due_s <= now_s:
                decisions += server.decide(now_s, self._places)
        for each in decisions:
            if isinstance(each, TransferDrop):
                del self._server_of[each.request.transfer_id]
        return decisions

    def delivered(self, transfer_ids: Iterable[int], now_s: float) -> list[TransferGrant]:
        """Note that one message has brought these updates to their server.

        Returns the grants that the server can apply now, in commit order.
        """
        grants = {transfer_id: self._on_its_way(transfer_id) for transfer_id in transfer_ids}
        self._check_clock(now_s)
        self._now_s = now_s
        ready: list[TransferGrant] = []
        for transfer_id in grants:
            ready += self._servers[self._server_of[transfer_id]].arrive(transfer_id, now_s)
        return self._applied(ready)

    def withdraw(self, transfer_id: int, now_s: float) -> Sequence[TransferGrant]:
        """Give up a transfer whose worker is gone or whose update is lost.

        Returns the grants that the server can apply now, since it need not wait for this one.
        """
        server = self._server_of.get(transfer_id)
        if server is None or transfer_id not in self._servers[server].queue:
            self._on_its_way(transfer_id)
        self._check_clock(now_s)
        self._now_s = now_s
        ready = self._servers[self._server_of.pop(transfer_id)].withdraw(transfer_id, now_s)
        return self._applied(ready)

    def leave(self, worker: str, now_s: float) -> None:
        """Note that a worker is gone: nobody waits for it, as in stale synchronous training.

        Its transfers stay until they are withdrawn.
        """
        self._check_clock(now_s)
        self._now_s = now_s
        if self._clocks:
            self._clocks.leave(worker)
        self._models.leave(worker)

    def gathered(self, transfer_id: int, now_s: float) -> TransferGroup | None:
        """Note that an update is at the host that gathers its group.

        Returns the group when all members are there: the host sends the sum in its spans, which
        are planned again if the last member is late.
        """
        grant = self._on_its_way(transfer_id)
        self._check_clock(now_s)
        group = self._servers[grant.request.server].gather(grant, now_s)
        self._now_s = now_s
        return group

    def next_expiry_s(self) -> float | None:
        """Return when `expire` has something to do if nothing else happens, None for never."""
        times = [each.next_expiry_s() for each in self._servers.values()]
        return min((each for each in times if each is not None), default=None)

    def expire(self, now_s: float) -> Expiry:
        """Give up what is too late, and let hosts send sums without it.

        A transfer is lost that takes `lost_after` times as long as planned. With `gather_slack_s`,
        a host sends its sum that long after the planned time, without the members that are
        missing. Both are withdrawn: an update that comes nevertheless must not be applied.
        """
        self._check_clock(now_s)
        self._look_ahead(now_s)
        expiries = [each.expire(now_s) for each in self._servers.values()]
        withdrawn = [grant for each in expiries for grant in each.withdrawn]
        for grant in withdrawn:
            del self._server_of[grant.request.transfer_id]
        return Expiry(
            withdrawn=withdrawn,
            partial_sums=[partial for each in expiries for partial in each.partial_sums],
            ready=self._applied([grant for each in expiries for grant in each.ready]),
        )

    def replica_received(self, transfer_ids: Iterable[int], now_s: float) -> list[TransferGrant]:
        """Note that the replica of a server has these updates.

        Returns the grants that the server can apply now, since it is less far ahead.
        """
        holders: dict[int, ServerTransfers] = {}
        for transfer_id in transfer_ids:
            for server in self._servers.values():
                if server.replica and server.replica.is_expected(transfer_id):
                    holders[transfer_id] = server
            if transfer_id not in holders:
                raise UnknownTransferError(
                    f"transfer {transfer_id} is not on its path to a replica: it is unknown, waits "
                    "for a decision, or is there, or the replica has been removed"
                )
        self._check_clock(now_s)
        self._now_s = now_s
        ready: list[TransferGrant] = []
        for transfer_id, server in holders.items():
            ready += server.replica_received(transfer_id, now_s)
        return self._applied(ready)

    def replica_version(self, server: str) -> int:
        """Return the number of updates that the model of a server's replica contains."""
        return self._replica_of(server).version

    def replica_distance(self, server: str) -> float:
        """Return the most by which a server's model differs from its replica's."""
        return self._replica_of(server).distance

    def joins(self, sender: str, receiver: str) -> bool:
        """Return whether a route leads from one station to another one."""
        return self._network.joins(sender, receiver)

    def is_expected_at_replica(self, server: str, transfer_id: int) -> bool:
        """Return whether an update is on its path to the replica of a server."""
        return self._replica_of(server).is_expected(transfer_id)

    def add_replica(
        self, server: str, options: ReplicaOptions, now_s: float, *, catches_up: bool = False
    ) -> None:
        """Replicate a server from now on, to a model that equals the server's.

        It needs `CommitOrder.SEQUENCE`, and a moment without open grants. With `catches_up`, there
        may be some: the replica gets these updates, and those before, otherwise. Later ones are
        planned for it, too, but no commit waits for it until `replica_caught_up`. Raises
        UnknownStationError and InvalidTransferError.
        """
        if self._options.commit_order is not CommitOrder.SEQUENCE:
            raise InvalidTransferError(
                "replicas apply updates in the sequence of grants: give CommitOrder.SEQUENCE"
            )
        self._network.check_host(options.host, "replica")
        found = self._server(server)
        self._check_clock(now_s)
        found.add_replica(options, catches_up=catches_up)
        self._now_s = now_s

    def replica_caught_up(self, server: str, earlier_step: float) -> None:
        """Note that a replica has all that was granted before it was added.

        `earlier_step`: the most by which the momentum of its model can move that at once.
        """
        self._replica_of(server).caught_up(earlier_step)

    def is_catching_up(self, server: str) -> bool:
        """Return whether a server's replica lacks updates that were granted before it was added."""
        return self._replica_of(server).is_catching_up

    def remove_replica(self, server: str, now_s: float) -> list[TransferGrant]:
        """Go on without a server's replica; return the grants that the server can apply now."""
        self._replica_of(server)
        self._check_clock(now_s)
        self._now_s = now_s
        return self._applied(self._servers[server].remove_replica(now_s))

    def promote_replica(self, server: str, now_s: float) -> Promotion:
        """Let the replica take the place of a server that is gone.

        First let the replica get what is on its path, if workers still send it. What is under way
        to the old server is withdrawn, models as well. Requests name the replica's host from now
        on; those that wait are moved, unless their model is newer than the replica's.
        """
        replica = self._replica_of(server)
        if replica.host in self._servers:
            raise InvalidTransferError(f"the replica on {replica.host} is on the host of a server")
        if replica.is_catching_up:
            raise InvalidTransferError(
                f"the replica on {replica.host} catches up with {server}: it lacks updates"
            )
        self._check_clock(now_s)
        self._now_s = now_s
        old = self._servers.pop(server)
        withdrawn = old.abandon(now_s)
        replica.release_all(now_s)
        queue = ServerQueue(replica.host, replica.version)
        new = ServerTransfers(queue, self._options, self._open, self._groups, self._tallies)
        self._servers[replica.host] = new
        self._models.replace_server(server, replica.host, now_s)
        refused = old.queue.move_waiting(queue, now_s)
        for request in refused:
            self._tallies[request.worker].waiting -= 1
            self._tallies[request.worker].withdrawn += 1
        for request in [*refused, *(grant.request for grant in withdrawn)]:
            del self._server_of[request.transfer_id]
        for transfer_id in [*queue.waiting]:
            self._server_of[transfer_id] = replica.host
        return Promotion(
            server=replica.host,
            version=replica.version,
            lost=[each.request.transfer_id for each in replica.lacked],
            distance=replica.distance,
            withdrawn=withdrawn,
            refused=refused,
        )

    def request_model(self, request: ModelRequest, now_s: float) -> None:
        """Take a worker's request for a model; `grant_models` answers it."""
        self._check_clock(now_s)
        self._network.check_host(request.worker, "worker")
        self._server(request.server)
        self._models.submit(request, now_s)
        self._now_s = now_s

    def grant_models(self, now_s: float) -> list[ModelGrant]:
        """Close the batches of models that are due; return the grants, by server and in order."""
        self._check_clock(now_s)
        self._look_ahead(now_s)
        waiting = {name: len(server.queue.waiting) for name, server in self._servers.items()}
        return self._models.grant(now_s, self._options, waiting)

    def model_delivered(self, transfer_id: int, now_s: float) -> None:
        """Note that a model is at its worker."""
        self._models.check_granted(transfer_id)
        self._check_clock(now_s)
        self._models.end(transfer_id, now_s)
        self._now_s = now_s

    def withdraw_model(self, transfer_id: int, now_s: float) -> None:
        """Give up a model that waits or is on its way, whose worker is gone."""
        self._check_clock(now_s)
        self._models.withdraw(transfer_id, now_s)
        self._now_s = now_s

    def allreduce(
        self, members: Sequence[str], size_bytes: int, now_s: float, *, value_bytes: int = 1
    ) -> AllreduceGrant:
        """Plan the sum of one vector of each member, which all of them get.

        It begins now, in what is free beside all that is granted. Idle hosts of the present places
        may add, too. No leg begins or ends within a value of `value_bytes`. Raises
        InvalidTransferError, UnknownStationError and NoRouteError.
        """
        self._check_clock(now_s)
        check_allreduce(self._network, members, size_bytes, value_bytes=value_bytes)
        idle = self._places.hosts if self._places else ()
        helpers = [
            host
            for host in idle
            if host not in members
            and all(self.joins(host, each) and self.joins(each, host) for each in members)
        ]
        self._look_ahead(now_s)
        return self._allreduces.begin(members, size_bytes, now_s, helpers, value_bytes)

    def allreduce_ended(self, number: int, now_s: float) -> None:
        """Note that all members of an allreduce have its sum, or that it was given up."""
        self._check_clock(now_s)
        self._allreduces.end(number, now_s)
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
        for server in self._servers.values():
            server.queue.sort_out(lambda each: network.joins(each.worker, each.server))
        self._models.sort_out()

    def replace_places(self, places: AggregationPlaces) -> None:
        """Add later batches up at these places, instead of those of the options.

        The network must have them. Groups that are planned stay as they are.
        """
        self._check_places(self._network, places)
        self._places = places

    @property
    def _network(self) -> TransferNetwork:
        return self._open.residual.network

    def _check_stations(self, network: TransferNetwork) -> None:
        """Raise UnknownStationError unless a network has the servers and all aggregators."""
        for server in self._servers:
            network.check_host(server, "server")
        for each in self._servers.values():
            if each.replica:
                network.check_host(each.replica.host, "replica")
        self._check_places(network, self._places or AggregationPlaces())

    def _check_places(self, network: TransferNetwork, places: AggregationPlaces) -> None:
        for host in places.hosts:
            network.check_host(host, "aggregator")
        for switch, below in places.switches.items():
            if switch not in network.switches:
                known = ", ".join(sorted(network.switches)) or "none"
                raise UnknownStationError(f"no switch {switch!r} to aggregate at; known: {known}")
            for host in below:
                network.check_host(host, f"below {switch},")

    def _due_s(self, queue: ServerQueue) -> float | None:
        """Return when a server's batch is due."""
        options = self._options
        places = self._places or AggregationPlaces()
        has_switch = any(self._network.has_routes([each], queue.server) for each in places.switches)
        idle_wait_s = options.switch_wait_s if has_switch else 0.0
        if (places.hosts or has_switch) and options.gather_wait_s > options.batch_wait_s:
            waits_s = options.batch_wait_s, options.gather_wait_s
            return queue.gathering_due_s(options.batch_max, *waits_s, idle_wait_s)
        return queue.due_s(options.batch_max, options.batch_wait_s, idle_wait_s)

    def _server(self, server: str) -> ServerTransfers:
        found = self._servers.get(server)
        if found is None:
            known = ", ".join(sorted(self._servers)) or "none"
            raise UnknownStationError(f"{server!r} is no server of the job; its servers: {known}")
        return found

    def _replica_of(self, server: str) -> ServerReplica:
        replica = self._server(server).replica
        if replica is None:
            raise UnknownStationError(f"{server} has no replica: give one in SchedulerOptions")
        return replica

    def _on_its_way(self, transfer_id: int) -> TransferGrant:
        server = self._server_of.get(transfer_id)
        grant = self._servers[server].under_way(transfer_id) if server is not None else None
        if grant is None:
            raise UnknownTransferError(
                f"transfer {transfer_id} is not granted and under way: it is unknown, waits for a "
                "decision, or has arrived, been dropped or been withdrawn"
            )
        return grant

    def _applied(self, grants: list[TransferGrant]) -> list[TransferGrant]:
        """Return grants that are done; forget their ids, and move their workers' clocks."""
        for grant in grants:
            del self._server_of[grant.request.transfer_id]
            if self._clocks:
                self._clocks.applied(grant.request)
        if self._clocks and grants:
            self._models.sort_out()
        return grants

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
