# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The replicas of a job: they join, fall out, and take the place of servers that are gone.

A replica joins when all workers have given it the model, and its state is that of its server while
nothing is granted. One that can read its server's log joins while updates go on (`live_join`). From
then on the scheduler decides how far the server may be ahead of it.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from typing import Final

from ....hostlib.control.transfers_api import transfers_pb2 as pb
from ...errors import StationsDisagreeError
from ...jobs.punctual_timer import PunctualTimer
from ...scheduler.divergence import DivergenceBound
from ...scheduler.state.server_replica import ReplicaOptions
from ..live_station import LiveStation, StationRole
from ..server_place import ServerPlace
from ..transfer_config import TransferConfig, replica_name, server_name
from ..transfer_flow import TransferFlow
from ..transfer_messages import skipped_message
from ..transfer_record import TransferRecord, WorkerPlace
from .live_join import LiveJoin
from .replica_messages import (
    allowed_message,
    expected_replica_message,
    gone_message,
    joined_message,
    known_message,
    left_message,
    moved_message,
    promoted_message,
)
from .replica_place import ReplicaPlace, ReplicaState

_LOGGER = logging.getLogger(__name__)


class JobReplicas:
    """Decides which replicas a job has; all methods are for the thread of the event loop."""

    def __init__(  # noqa: PLR0913 - the parts of a job
        self,
        job_name: str,
        flow: TransferFlow,
        config: TransferConfig,
        div_max: float | None,
        *,
        workers: Mapping[int, WorkerPlace],
        servers: Mapping[int, ServerPlace],
        set_host: Callable[[str, str], None],
    ) -> None:
        """`set_host(name, host)`: a station at the scheduler is at that host from now on."""
        self._job_name = job_name
        self._flow = flow
        self._config = config
        self._div_max = div_max
        self._workers = workers
        self._servers = servers
        self._set_host = set_host
        self._books: Final = flow.replicas
        self._books.on_idle = self._server_is_idle
        self._books.on_granted = self._granted
        self._live = LiveJoin(
            job_name,
            flow,
            servers,
            math.inf if div_max is None else div_max,
            config.replica_wait_s,
            remove=self.remove,
            take_updates=self._take_updates,
            put_in_place=self._put_in_place,
        )
        self._moved: dict[int, pb.SchedulerMessage] = {}
        """By server: what workers are told of its present address."""
        self._promoted: dict[int, pb.SchedulerMessage] = {}
        """By server: what its process is told, which was the replica."""

    @property
    def stations(self) -> list[LiveStation]:
        """The replicas that are not lost."""
        return [replica.station for replica in self._books.replicas.values()]

    def station_of(self, server_id: int) -> LiveStation | None:
        """Return the replica of a server."""
        replica = self._books.replicas.get(server_id)
        return None if replica is None else replica.station

    def in_place(self, server_id: int) -> ReplicaPlace | None:
        """Return a server's replica if it may take the server's place."""
        replica = self._books.replicas.get(server_id)
        return replica if replica is not None and replica.is_in_place else None

    # Who comes.

    def take_in(self, station: LiveStation, request: pb.Register) -> None:
        """Let a replica wait until it can join."""
        server_id = station.station_id
        server = self._servers.get(server_id)
        names = server_name(server_id), replica_name(server_id)
        name = names[0] if server is not None and server.name == names[1] else names[1]
        replica = ReplicaPlace(
            server_id=server_id,
            station=station,
            address=request.address,
            port=request.port,
            name=name,
            catches_up=request.catches_up,
        )
        self._books.replicas[server_id] = replica
        self._set_host(name, station.host)
        self._tell_workers(known_message(replica))

    def greet(self, station: LiveStation, registered: pb.Registered) -> None:
        """Answer a replica's Register, and repeat what it may have missed."""
        replica = self._books.replicas[station.station_id]
        server = self._servers.get(replica.server_id)
        last = 0 if server is None else server.next_sequence
        registered.next_sequence = next(iter(replica.places), last)
        station.send(pb.SchedulerMessage(registered=registered))
        if replica.takes_updates:
            self._tell_places(replica)
        elif replica.is_served:
            self._live.greet(replica)
        else:
            self._try_to_join(replica)

    def _tell_places(self, replica: ReplicaPlace) -> None:
        """Tell a replica where it begins, and of the places from there on."""
        last = self._servers[replica.server_id].next_sequence
        replica.station.send(joined_message(next(iter(replica.places), last), 0.0))
        now_s = self._flow.schedule.now_s()
        for sequence, record in replica.places.items():
            is_open = record is not None
            replica.station.send(
                expected_replica_message(record, now_s) if is_open else skipped_message(sequence)
            )
        replica.station.send(allowed_message(replica.applied))

    def greet_worker(self, worker: WorkerPlace) -> None:
        """Tell a worker where replicas are, and which servers have moved."""
        if worker.station is None:
            return
        for message in self._moved.values():
            worker.station.send(message)
        for replica in [*self._books.replicas.values()]:
            worker.station.send(known_message(replica))
            if replica.is_served:
                self._check_worker(replica, worker.station)
            else:
                self._try_to_join(replica)

    def greet_server(self, server: ServerPlace, registered: pb.Registered) -> None:
        """Complete the answer to a server's Register."""
        replica = self._books.served(server.server_id)
        if replica is not None and not replica.is_in_place:
            # Without the scheduler, it has applied updates as they came.
            self.remove(replica, f"its server was disconnected while it {replica.state}")
        elif replica is not None:
            registered.has_replica, registered.allowed_sequence = True, replica.allowed
            waiting = min(server.arrived, default=registered.next_sequence)
            registered.next_sequence = min(registered.next_sequence, waiting)

    def server_is_greeted(self, server: ServerPlace) -> None:
        """Let a server's replica join, or go on; tell a former replica what it is now."""
        station = server.station
        promoted = self._promoted.get(server.server_id)
        if station is not None and promoted is not None:
            station.send(promoted)
        replica = self._books.replicas.get(server.server_id)
        if replica is None:
            return
        if replica.is_in_place and station is not None:
            station.send(joined_message(replica.allowed, self._hold_s))
        elif replica.state is ReplicaState.COMPARING:
            replica.state, replica.is_asked = ReplicaState.WAITING, False
        self._try_to_join(replica)

    # What replicas, their servers and workers say.

    def take(self, station: LiveStation, message: pb.StationMessage) -> bool:
        """Act on what concerns replicas; return whether it does."""
        kind = message.WhichOneof("message")
        replica = self._books.replicas.get(station.station_id)
        if kind == "state" and station.role is not StationRole.WORKER:
            if replica is not None and replica.is_served:
                self._live.take_state(replica, station.role, message.state)
            elif replica is not None and replica.is_asked:
                replica.reports[station.role] = message.state
                self._compare(replica)
        elif kind == "replica_ready" and station.role is StationRole.WORKER:
            self._note_ready(station.station_id, message.replica_ready)
        elif station.role is not StationRole.REPLICA:
            # A former replica may have said the other two before it knew.
            return kind in ("replica_received", "replica_failed")
        elif replica is None:
            return True  # it has been removed, and will hear of that
        elif kind == "replica_received":
            self._note_received(replica, message.replica_received)
        elif kind == "replica_failed":
            self.remove(replica, f"it cannot follow its server: {message.replica_failed.reason}")
        elif kind == "committed":
            replica.forget_applied(message.committed.next_sequence)
        else:
            return False
        return True

    def lose(self, station: LiveStation) -> None:
        """Go on without a replica that is gone."""
        replica = self._books.replicas.get(station.station_id)
        if replica is not None and replica.station is station:
            self.remove(replica, "it is gone")

    def lose_worker(self, worker_id: int) -> None:
        """Look for replicas that will never get what a worker had for them."""
        for replica in [*self._books.replicas.values()]:
            replica.ready.discard(worker_id)
            if replica.is_served and replica.lacks_of(worker_id):
                self.remove(replica, f"it lacks an update of worker {worker_id}, which is gone")
            else:
                self._try_to_join(replica)

    def lose_server(self, server: ServerPlace) -> bool:
        """Let the replica take the place of a server that is gone; return whether there is one."""
        replica = self._books.replicas.get(server.server_id)
        if replica is None:
            return False
        if replica.is_in_place and replica.station.is_attached:
            self._promote(server, replica)
            return True
        what = "is not connected" if replica.is_in_place else "lacks updates that its server had"
        self.remove(
            replica,
            f"its server is gone while it {replica.state}, and it {what}: it cannot take the"
            " server's place. Start the server again with its log, and then the replica",
        )
        return False

    def check_routes(self) -> None:
        """Remove replicas that a worker cannot reach."""
        for replica in [*self._books.replicas.values()]:
            for worker in self._workers.values():
                is_there = self._books.served(replica.server_id) is replica
                if is_there and worker.station is not None:
                    self._check_worker(replica, worker.station)

    def close(self) -> None:
        """End no wait any more."""
        for replica in self._books.replicas.values():
            replica.stop_timer()

    # Joining.

    @property
    def _hold_s(self) -> float:
        """A server that hears nothing waits until its replica has certainly been promoted."""
        return self._config.lease_s + self._config.promote_after_s

    def _note_ready(self, worker_id: int, ready: pb.ReplicaReady) -> None:
        replica = self._books.replicas.get(ready.server_id)
        if replica is not None and (ready.address, ready.port) == (replica.address, replica.port):
            replica.ready.add(worker_id)
            self._try_to_join(replica)

    def _try_to_join(self, replica: ReplicaPlace) -> None:
        """Ask server and replica for their state, when nothing is on its path to the server."""
        server = self._servers.get(replica.server_id)
        there = {number for number, worker in self._workers.items() if worker.station is not None}
        if replica.is_served or replica.is_asked or not there:
            return
        if replica.timer is None:  # requests wait meanwhile
            replica.timer = PunctualTimer(
                self._config.server_wait_s, lambda: self.remove(replica, f"it {replica.state}")
            )
        is_whole = server is not None and server.is_attached and replica.station.is_attached
        if server is None or not is_whole:
            return
        if replica.catches_up:
            if problem := self._bound_problem():
                self.remove(replica, problem)
            else:
                self._live.begin(replica, self._bound)
            return
        if not there <= replica.ready:
            return
        replica.state = ReplicaState.COMPARING
        if server.num_ahead:
            return
        replica.is_asked = True
        replica.reports.clear()
        for station in (server.station, replica.station):
            if station is not None:
                station.send(pb.SchedulerMessage(report_state=pb.ReportState()))

    def _server_is_idle(self, server: ServerPlace) -> None:
        replica = self._books.replicas.get(server.server_id)
        if replica is not None and replica.state is ReplicaState.COMPARING:
            self._try_to_join(replica)

    def _compare(self, replica: ReplicaPlace) -> None:
        if len(replica.reports) < 2:
            return
        ours, theirs = replica.reports[StationRole.REPLICA], replica.reports[StationRole.SERVER]
        server = self._servers[replica.server_id]
        server.report(theirs.version, self._flow.schedule.version(server))
        replica.stop_timer()
        if (ours.version, ours.checksum) != (theirs.version, theirs.checksum):
            self.remove(
                replica,
                f"it has version {ours.version} with checksum {ours.checksum:016x}, and its server"
                f" version {theirs.version} with {theirs.checksum:016x}; start it without a log"
                " before the first update, or with a copy of the server's log",
            )
            return
        problem = self._bound_problem()
        if problem:
            self.remove(replica, problem)
            return
        options = ReplicaOptions(host=replica.name, bound=self._bound, earlier_step=theirs.step)
        self._flow.schedule.add_replica(server, options)
        replica.allowed = replica.applied = server.next_sequence
        replica.station.send(joined_message(server.next_sequence, self._hold_s))
        self._put_in_place(replica)

    def _take_updates(self, replica: ReplicaPlace) -> None:
        """Let a replica that has caught up have what workers send."""
        self._tell_places(replica)
        self._watch(replica)

    def _put_in_place(self, replica: ReplicaPlace) -> None:
        """Let a replica take its server's place if need be, from now on."""
        server = self._servers[replica.server_id]
        replica.state, replica.is_asked = ReplicaState.IN_PLACE, False
        if server.station is not None:
            server.station.send(joined_message(replica.allowed, self._hold_s))
            server.station.grace_s = self._config.promote_after_s
        _LOGGER.info(
            "job %s: the replica of server %d at %s has joined at place %d",
            *(self._job_name, replica.server_id, replica.station.host, replica.allowed),
        )
        self._flow.note_replica(server)
        self.check_routes()
        self._flow.retry_parked()

    @property
    def _bound(self) -> DivergenceBound:
        return DivergenceBound(
            div_max=math.inf if self._div_max is None else self._div_max,
            momentum=max(self._momenta(), default=0.0),
        )

    def _momenta(self) -> set[float]:
        stations = [worker.station for worker in self._workers.values()]
        return {each.momentum for each in stations if each and each.momentum is not None}

    def _bound_problem(self) -> str:
        """Return why the workers' norms do not bound a replica's distance, "" if they do."""
        if self._div_max is None or math.isinf(self._div_max):
            return ""
        stations = [worker.station for worker in self._workers.values() if worker.station]
        if any(station.momentum is None for station in stations):
            return (
                "div_max bounds the distance only with the optimisers GradientSum and Sgd; use one"
                " of them, or give no div_max"
            )
        if len(self._momenta()) > 1:
            return f"workers have momenta {sorted(self._momenta())}; define the tensor alike"
        return ""

    def _check_worker(self, replica: ReplicaPlace, station: LiveStation) -> None:
        """Remove a replica that a worker cannot reach, or whose norms bound nothing."""
        if not self._flow.schedule.joins(station.host, replica.name):
            self.remove(replica, f"no route leads to it from {station} at {station.host}")
        elif problem := self._bound_problem():
            self.remove(replica, problem)

    # Updates.

    def _note_received(self, replica: ReplicaPlace, received: pb.ReplicaReceived) -> None:
        worker = self._workers.get(received.worker_id)
        record = worker.records.get(received.transfer_id) if worker is not None else None
        if record is None or replica.places.get(record.sequence) is not record:
            return
        if record.is_at_replica:
            return  # the message has come twice
        record.is_at_replica = True
        server = self._servers[replica.server_id]
        self._flow.replica_received(server, record)
        replica.stop_timer()
        self._watch(replica)
        self._live.settle(replica)

    def _granted(self, replica: ReplicaPlace, record: TransferRecord) -> None:
        self._watch(replica)
        self._live.granted(replica, record)

    def _watch(self, replica: ReplicaPlace) -> None:
        """Wait for the next update at a replica; it may come late, but some must come."""
        if replica.timer is None and replica.takes_updates:
            replica.timer = PunctualTimer(self._config.replica_wait_s, lambda: self._tire(replica))

    def _tire(self, replica: ReplicaPlace) -> None:
        replica.timer = None
        if replica.is_late(self._flow.schedule.now_s()):
            self.remove(replica, f"nothing has come to it in {self._config.replica_wait_s:g} s")
        elif replica.places:
            self._watch(replica)

    # Leaving.

    def remove(self, replica: ReplicaPlace, reason: str) -> None:
        """Go on without a replica; does nothing if it has been left."""
        if self._books.replicas.get(replica.server_id) is not replica:
            return
        _LOGGER.warning(
            "job %s: server %d goes on without its replica at %s: %s",
            *(self._job_name, replica.server_id, replica.station.host, reason),
        )
        del self._books.replicas[replica.server_id]
        replica.stop_timer()
        replica.station.end(
            StationsDisagreeError(f"{replica.station} of job {self._job_name!r}: {reason}")
        )
        self._tell_workers(gone_message(replica.server_id))
        server = self._servers.get(replica.server_id)
        if server is None:
            return
        if server.station is not None and replica.state is not ReplicaState.WAITING:
            server.station.grace_s = self._config.reconnect_grace_s
            server.station.send(left_message(reason))
        if replica.is_served:
            self._flow.remove_replica(server)
        self._flow.retry_parked()

    def _promote(self, server: ServerPlace, replica: ReplicaPlace) -> None:
        first_lost = replica.first_lost(server.next_sequence)
        del self._books.replicas[server.server_id]
        replica.stop_timer()
        station = replica.station
        station.role = StationRole.SERVER
        station.grace_s = self._config.reconnect_grace_s
        promotion = self._flow.promote(server, station, replica.name)
        _LOGGER.warning(
            "job %s: the replica at %s takes the place of server %d at version %d; it lacks %d"
            " updates that the server may have applied, which had moved the model by at most %g",
            *(self._job_name, station.host, server.server_id),
            *(promotion.version + server.version_shift, len(promotion.lost), promotion.distance),
        )
        message = promoted_message(first_lost, server.next_sequence)
        self._promoted[server.server_id] = message
        station.send(message)
        moved = moved_message(server.server_id, replica.address, replica.port)
        self._moved[server.server_id] = moved
        self._tell_workers(moved)
        self._flow.retry_parked()

    def _tell_workers(self, message: pb.SchedulerMessage) -> None:
        for worker in self._workers.values():
            if worker.station is not None:
                worker.station.send(message)
