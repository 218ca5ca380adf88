# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The transfers of one job: its stations, and what they send."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Mapping
from typing import Final

from ...hostlib.control.transfers_api import transfers_pb2 as pb
from ..errors import InvalidJobError, TransferRefusedError
from ..jobs.job_request import JobToken
from ..scheduler.network import TransferNetwork
from .allreduces.live_allreduces import LiveAllreduces
from .live_station import LiveStation, StationRole
from .models.live_models import LiveModels
from .rates.link_tracking import LinkTracker
from .rates.observed_rates import ObservedRates
from .replicas.job_replicas import JobReplicas
from .server_place import ServerPlace
from .transfer_config import TransferConfig, server_name
from .transfer_flow import TransferFlow
from .transfer_log import TransferLog
from .transfer_messages import expected_message, refused_message, skipped_message
from .transfer_record import TransferState, WorkerCounts, WorkerPlace
from .transfer_terms import TransferTerms

_LOGGER = logging.getLogger(__name__)

NetworkOf = Callable[[Mapping[str, str], Mapping[str, tuple[int, int]]], TransferNetwork]
"""Returns the network of servers, by name with their hosts, which may grow, and of estimated rates
(up, down) of hosts' links."""


class JobTransfers:
    """Serves the messages of stations; TransferJobs decides who is one."""

    def __init__(  # noqa: PLR0913 - what its first station brings
        self,
        name: str,
        *,
        terms: TransferTerms,
        token: JobToken,
        config: TransferConfig,
        network_of: NetworkOf,
        tracker: LinkTracker,
        log: TransferLog,
        on_failed: Callable[[Exception], None],
        source: str = "",
    ) -> None:
        """`on_failed` gets what the scheduler raised when it should decide.

        `source`: where the first station calls from, "" for a Unix socket.
        """
        self.name: Final = name
        self.terms: Final = terms
        self.token: Final = token
        self.source: Final = source
        self.workers: dict[int, WorkerPlace] = {}
        self.servers: dict[int, ServerPlace] = {}
        self._forgotten = WorkerCounts()
        """Of workers that have no place any more."""
        self._config = config
        self._network_of = network_of
        self.tracker: Final = tracker
        """Estimates of what hosts' links carry."""
        self._rates: Mapping[str, tuple[int, int]] = {}
        self._server_hosts: dict[str, str] = {}
        self.flow = TransferFlow(
            name,
            network_of(self._server_hosts, self._rates),
            config.scheduler_options(terms.mode, terms.tau_max),
            config,
            log,
            tracker=tracker,
            workers=self.workers,
            servers=self.servers,
            on_failed=on_failed,
        )
        self._observed = ObservedRates(name, tracker, log, self.flow.schedule.now_s)
        self.models: Final = LiveModels(
            name,
            self.flow.schedule,
            tracker,
            config,
            log,
            workers=self.workers,
            servers=self.servers,
        )
        self.allreduces: Final = LiveAllreduces(name, self.flow.schedule, config, log, self.workers)
        self.replicas: Final = JobReplicas(
            name,
            self.flow,
            config,
            terms.div_max,
            workers=self.workers,
            servers=self.servers,
            set_host=self._set_host,
        )

    @property
    def counts(self) -> WorkerCounts:
        """What has become of all workers' updates, since the job began."""
        total = dataclasses.replace(self._forgotten)
        for worker in self.workers.values():
            total.add(worker.counts)
        return total

    @property
    def stations(self) -> list[LiveStation]:
        """All stations that are not lost."""
        places = (*self.workers.values(), *self.servers.values())
        there = [place.station for place in places if place.station is not None]
        return [*there, *self.replicas.stations]

    def station_in(self, role: StationRole, station_id: int) -> LiveStation | None:
        """Return the station that has a place, None if nobody has it."""
        if role is StationRole.REPLICA:
            return self.replicas.station_of(station_id)
        places = self.workers if role is StationRole.WORKER else self.servers
        place = places.get(station_id)
        return None if place is None else place.station

    def take_in(self, station: LiveStation, request: pb.Register, first_id: int) -> None:
        """Give a place, which nobody has, to a station; a new worker's ids are from `first_id`."""
        if station.role is StationRole.WORKER:
            self._forget_lost()
            worker = self.workers.setdefault(
                station.station_id, WorkerPlace(worker_id=station.station_id, first_id=first_id)
            )
            worker.take_place(station)
            self.flow.groups.note_station(station)
            return
        if station.role is StationRole.REPLICA:
            self.replicas.take_in(station, request)
            return
        name = server_name(station.station_id)
        server = self.servers.setdefault(
            station.station_id, ServerPlace(server_id=station.station_id, name=name)
        )
        server.station, server.identity = station, station.identity
        self.flow.groups.forget_switch(station.station_id)
        self._set_host(server.name, station.host)
        scheduled = self.flow.schedule.version(server)
        server.restart(request.version, scheduled, request.next_sequence)

    def greet(self, station: LiveStation, request: pb.Register) -> None:
        """Answer Register on a new stream, and repeat what the station may have missed."""
        registered = pb.Registered(
            grant_wait_s=self._config.grant_wait_s, lease_s=self._config.lease_s
        )
        if station.role is StationRole.WORKER:
            worker = self.workers[station.station_id]
            registered.next_transfer_id = worker.next_id
            station.send(pb.SchedulerMessage(registered=registered))
            self.replicas.greet_worker(worker)
            return
        if station.role is StationRole.REPLICA:
            self.replicas.greet(station, registered)
            return
        server = self.servers[station.station_id]
        registered.next_sequence = server.open_sequence
        self.replicas.greet_server(server, registered)
        station.send(pb.SchedulerMessage(registered=registered))
        now_s = self.flow.schedule.now_s()
        for sequence in range(server.open_sequence, server.next_sequence):
            if sequence in server.granted:
                station.send(expected_message(server.granted[sequence], now_s))
            elif sequence not in server.arrived:
                station.send(skipped_message(sequence))
        if not server.num_ahead:
            server.report(request.version, self.flow.schedule.version(server))
        self.replicas.server_is_greeted(server)
        self.flow.retry_parked()

    def lose(self, station: LiveStation) -> None:
        """Take a station out of its place: nobody waits for its transfers any longer."""
        if station.role is StationRole.WORKER:
            worker = self.workers[station.station_id]
            for record in worker.open_records:
                if record.state is not TransferState.ARRIVED:
                    self.flow.withdraw(record)
            worker.station = None
            self.models.lose_worker(station.station_id)
            self.allreduces.lose_worker(station.station_id)
            self.replicas.lose_worker(station.station_id)
            left = (each.station for each in self.workers.values())
            if not any(each is not None and each.host == station.host for each in left):
                self.flow.schedule.leave(station.host)
        elif station.role is StationRole.REPLICA:
            self.replicas.lose(station)
        else:
            server = self.servers[station.station_id]
            server.station = None
            self.models.abandon(server)
            if not self.replicas.lose_server(server):
                self.flow.abandon(server)

    def take(self, station: LiveStation, message: pb.StationMessage) -> None:
        """Act on a message of a station; JobError for one that makes no sense."""
        if message.HasField("heartbeat"):
            if station.role is StationRole.SERVER:
                server = self.servers[station.station_id]
                server.rest(self.flow.schedule.version(server))
        elif self.replicas.take(station, message):
            pass
        elif station.role is StationRole.WORKER:
            worker = self.workers[station.station_id]
            if not self.allreduces.take(worker, message):
                self._take_from_worker(worker, message)
        elif station.role is StationRole.SERVER:
            self._take_from_server(self.servers[station.station_id], message)
        else:
            kind = message.WhichOneof("message")
            raise InvalidJobError(f"unexpected message {kind!r} of a replica")

    def close(self) -> None:
        """Decide no more, and end no wait."""
        self.flow.close()
        self.models.close()
        self.allreduces.close()
        self.replicas.close()

    def replace_network(self, reason: str) -> None:
        """Plan in the network as it is now."""
        _LOGGER.info("job %s: transfers are planned in another network: %s", self.name, reason)
        self.flow.replace_network(self._network_of(self._server_hosts, self._rates))
        self.replicas.check_routes()

    def _set_host(self, name: str, host: str) -> None:
        """Plan with a server or replica at a host from now on."""
        before = self._server_hosts.get(name, host)
        self._server_hosts[name] = host
        if before != host:
            self.replace_network(f"{name} is at {host} now")

    def _take_from_worker(self, worker: WorkerPlace, message: pb.StationMessage) -> None:
        match message.WhichOneof("message"):
            case "requested":
                self._take_request(worker, message.requested)
            case "withdrawn":
                record = worker.records.get(message.withdrawn.transfer_id)
                if record and record.state.is_open and record.state is not TransferState.ARRIVED:
                    self.flow.withdraw(record)
            case "rate_observed":
                self._observed.note(worker, message.rate_observed)
                self._take_rates()
            case "gathered":
                self.flow.gathered(worker, message.gathered)
            case "left":
                self.flow.left_group(worker, message.left)
            case other:
                raise InvalidJobError(f"unexpected message {other!r} of a worker")

    def _take_rates(self) -> None:
        """Plan with estimates that have changed."""
        rates = self.tracker.take_change()
        if rates is not None:
            self._rates = rates
            self.replace_network("the estimates of what links carry have changed")

    def _take_request(self, worker: WorkerPlace, request: pb.TransferRequested) -> None:
        known = worker.records.get(request.transfer_id)
        try:
            if known is None:
                self.flow.request(worker, request)
            else:
                self.flow.answer_again(worker, known, request)
        except TransferRefusedError as exc:
            # The worker registers again, and goes on without this request.
            if worker.station is not None:
                worker.station.send(refused_message(request.transfer_id, exc))
            raise

    def _take_from_server(self, server: ServerPlace, message: pb.StationMessage) -> None:
        match message.WhichOneof("message"):
            case "delivered":
                server.reported_version = -1
                self._note_delivered(server, message.delivered)
            case "committed":
                version = message.committed.version
                self.flow.replicas.server_applied(server.server_id, message.committed.next_sequence)
                if server.report(version, self.flow.schedule.version(server)):
                    self.flow.retry_parked()
            case "switch_members":
                self.flow.groups.note_switch_members(server, message.switch_members)
            case _ if self.models.take(server, message):
                self._take_rates()
            case other:
                raise InvalidJobError(f"unexpected message {other!r} of a server")

    def _note_delivered(self, server: ServerPlace, message: pb.TransferDelivered) -> None:
        worker = self.workers.get(message.worker_id)
        record = worker.records.get(message.transfer_id) if worker is not None else None
        if record is None:
            if not message.transfer_id or server.is_first_report(
                message.worker_id, message.transfer_id
            ):
                self.flow.came_directly(server, message, None)
            return
        if record.server_id != server.server_id:
            raise TransferRefusedError(
                f"{record.name} is for server {record.server_id}, and server {server.server_id} "
                "reports it; report what has come to this server"
            )
        if record.state in (TransferState.ARRIVED, TransferState.COMMITTED):
            # The message has come twice, or the update has become too old in its place.
            if message.is_refused:
                self.flow.refused_late(server, record)
            return
        if message.is_early and worker is not None:
            worker.counts.early += 1
            if worker.counts.early == 1:
                _LOGGER.warning(
                    "job %s: %s has begun to come to server %d long before its granted time; does "
                    "the worker ignore its grants? Update it, or its library. This is said once",
                    *(self.name, record.name, server.server_id),
                )
        if record.state is TransferState.GRANTED and message.is_granted:
            self.flow.arrived(server, record, is_refused=message.is_refused)
        else:
            self.flow.came_directly(server, message, record)

    def _forget_lost(self) -> None:
        """Forget lost workers beyond the number of stations: ids may be chosen freely."""
        lost = [
            place
            for place in self.workers.values()
            if place.station is None and not place.open_records
        ]
        for place in lost[: max(0, len(self.workers) - self._config.max_stations)]:
            self._forgotten.add(place.counts)
            del self.workers[place.worker_id]
