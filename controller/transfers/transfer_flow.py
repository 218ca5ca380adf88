# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What happens to the transfers of a job: they are asked for, decided, delivered or given up."""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from ...hostlib.control.transfers_api import transfers_pb2 as pb
from ..errors import TransferRefusedError
from ..jobs.punctual_timer import PunctualTimer
from ..scheduler.errors import NoRouteError, SchedulerError
from ..scheduler.network import TransferNetwork
from ..scheduler.scheduler import SchedulerOptions
from ..scheduler.state.server_replica import Promotion
from .live_groups import LiveGroups
from .live_schedule import LiveSchedule
from .live_station import LiveStation
from .rates.link_tracking import LinkTracker
from .replicas.replica_books import ReplicaBooks
from .server_place import ServerPlace
from .transfer_config import TransferConfig
from .transfer_log import TransferLog, planned_times
from .transfer_messages import (
    dropped_message,
    expected_message,
    granted_message,
    refused_message,
    skipped_message,
)
from .transfer_record import TransferRecord, TransferState, WorkerPlace

_LOGGER = logging.getLogger(__name__)
_SHOWN: Final = 64
"""Ended transfers that a report shows."""


class TransferFlow:
    """Moves transfers from state to state, and tells their stations.

    A request for a server that is not there, or of a version that it has not reported, is parked:
    its server's messages may be on their way.
    """

    def __init__(  # noqa: PLR0913 - the parts of a job
        self,
        job_name: str,
        network: TransferNetwork,
        options: SchedulerOptions,
        config: TransferConfig,
        log: TransferLog,
        *,
        tracker: LinkTracker,
        workers: Mapping[int, WorkerPlace],
        servers: Mapping[int, ServerPlace],
        on_failed: Callable[[Exception], None],
    ) -> None:
        """`tracker` learns of grants, and how they went.

        `workers` and `servers` are the job's places, by id; they may grow. `on_failed` gets what
        the scheduler raised when it should decide.
        """
        self.groups: Final = LiveGroups(
            job_name, config, workers, servers, lambda: self.open_records
        )
        self.schedule: Final = LiveSchedule(
            network,
            options,
            self._decided,
            self._given_up,
            places=self.groups.places,
            on_failed=on_failed,
        )
        self.began_s = self.schedule.now_s()
        self.drops: Counter[str] = Counter()
        """By reason."""
        self.ended: deque[TransferRecord] = deque(maxlen=_SHOWN)
        """Transfers that ended last."""
        self._tracker = tracker
        self._has_clocks = options.mode is not None
        # The delays of jobs that wait for slow workers say nothing about their updates.
        self._rate_rule = None if self._has_clocks else config.rate_rule
        self.replicas: Final = ReplicaBooks()
        """The servers' replicas, which hear of what is granted to their servers."""
        self._job_name = job_name
        self._config = config
        self._log = log
        self._workers = workers
        self._servers = servers
        self._parked: dict[tuple[int, int], TransferRecord] = {}
        """By (worker, transfer)."""

    @property
    def open_records(self) -> list[TransferRecord]:
        """What waits or is under way."""
        return [*self.schedule.records, *self._parked.values()]

    def request(self, worker: WorkerPlace, request: pb.TransferRequested) -> None:
        """Take a new request; TransferRefusedError or NoRoomError if it is refused."""
        worker.check_new(request, self._config.max_open_per_worker)
        record = TransferRecord(
            worker_id=worker.worker_id, request=request, requested_s=self.schedule.now_s()
        )
        age_s = self.schedule.now_s() - self.began_s
        if request.server_id not in self._servers and age_s >= self._config.server_wait_s:
            raise self._refusal(record, self._problem(record))
        worker.add(record)
        worker.counts.pushes += 1
        self._note("requested", record)
        self._try(record)

    def answer_again(
        self, worker: WorkerPlace, record: TransferRecord, request: pb.TransferRequested
    ) -> None:
        """Answer a request that has come twice; TransferRefusedError if it is another one."""
        if record.request != request:
            raise TransferRefusedError(
                f"{record.name} was requested before with another server, size, version or norm; "
                "give each transfer an id of its own"
            )
        if worker.station is None:
            return
        if record.state in (TransferState.GRANTED, TransferState.ARRIVED):
            worker.station.send(granted_message(record, self.schedule.now_s()))
        elif record.state is TransferState.DROPPED:
            worker.station.send(dropped_message(record))

    def withdraw(self, record: TransferRecord) -> None:
        """Give up a transfer that is parked, waits or is granted; nobody waits for it any more."""
        was_granted = record.state is TransferState.GRANTED
        self._parked.pop((record.worker_id, record.transfer_id), None)
        ready = self.schedule.withdraw(record)
        self._note_withdrawn(record)
        if was_granted:
            self._skip(record)
            self._applied(self._servers[record.server_id], ready)

    def gathered(self, worker: WorkerPlace, message: pb.UpdateGathered) -> None:
        """Note that an aggregator has an update of a group."""
        record = self.groups.gathered(worker, message)
        if record is not None:
            self._note("gathered", record)
            self.schedule.gathered(record)

    def left_group(self, worker: WorkerPlace, message: pb.GroupLeft) -> None:
        """Note that a member sends its update to the server itself."""
        record = self.groups.left(worker, message)
        if record is not None:
            self._tracker.withdrawn(record.key)  # it is sent over another path than planned
            self._note("left", record)

    def arrived(self, server: ServerPlace, record: TransferRecord, *, is_refused: bool) -> None:
        """Note a granted update at its server."""
        record.stop_timer()
        del server.granted[record.sequence]
        if not is_refused:
            server.arrived.add(record.sequence)
            self._note("delivered", record)
            self._applied(server, self.schedule.delivered(record))
            return
        record.is_refused = True
        self._workers[record.worker_id].counts.refused += 1
        self._note("refused", record)
        ready = self.schedule.withdraw(record)
        record.state = TransferState.COMMITTED  # it does not come once more
        self._end(record)
        self.replicas.skipped(record.server_id, record.sequence)
        self._applied(server, ready)

    def refused_late(self, server: ServerPlace, record: TransferRecord) -> None:
        """Note that a server does not apply an update that it has reported before."""
        if record.is_refused:
            return
        record.is_refused = True
        counts = self._workers[record.worker_id].counts
        counts.refused += 1
        self._note("refused", record)
        server.note_applied(self.schedule.version(server), -1)  # the scheduler counts it
        if record.state is TransferState.COMMITTED:
            counts.refuse_late(is_direct=record.is_direct)
        if record.grant is not None and not record.is_direct:
            self.replicas.skipped(record.server_id, record.sequence)
            self._applied(server, self.schedule.replica_received(server, record))

    def came_directly(
        self, server: ServerPlace, message: pb.TransferDelivered, record: TransferRecord | None
    ) -> None:
        """Note an update that came without a grant; `record` is None if nobody asked for one."""
        if record is not None:
            if record.state.is_open:
                self.withdraw(record)
            record.state = TransferState.COMMITTED
            record.is_direct, record.is_refused = True, message.is_refused
        worker = self._workers.get(message.worker_id)
        self._log.note(
            "refused" if message.is_refused else "ungranted",
            job=self._job_name,
            worker=message.worker_id,
            server=server.server_id,
            transfer=message.transfer_id,
            bytes=record.request.size_bytes if record else None,
        )
        if worker is not None and message.is_refused:
            worker.counts.refused += 1
        elif worker is not None:
            worker.counts.ungranted += 1
        if not message.is_refused:
            server.note_applied(self.schedule.version(server))
            self.retry_parked()

    def abandon(self, server: ServerPlace) -> None:
        """Withdraw what is granted for a server; what waits for it is parked."""
        for record in [*server.granted.values()]:
            self.withdraw(record)
        for worker in self._workers.values():
            for record in worker.open_records:
                is_its = record.server_id == server.server_id
                if is_its and record.state is TransferState.WAITING:
                    self.schedule.withdraw(record)
                    self._park(record, f"server {server.server_id} is gone")

    def replica_received(self, server: ServerPlace, record: TransferRecord) -> None:
        """Note that a server's replica has an update's bytes."""
        self._applied(server, self.schedule.replica_received(server, record))
        self.note_replica(server)

    def remove_replica(self, server: ServerPlace) -> None:
        """Go on without a server's replica."""
        self._applied(server, self.schedule.remove_replica(server))

    def promote(self, server: ServerPlace, station: LiveStation, name: str) -> Promotion:
        """Let a replica, which the scheduler knows by that name, take its server's place.

        What is granted is withdrawn. What waits is granted by the new server, unless it is on a
        newer model than that server's.
        """
        records = [
            record
            for worker in self._workers.values()
            for record in worker.open_records
            if record.server_id == server.server_id
        ]
        promotion, refused = self.schedule.promote(server)
        server.name, server.station, server.identity = name, station, station.identity
        server.granted.clear()
        server.arrived.clear()
        for record in records:
            if record in refused:
                self._drop(record, "its server has an older model")
            elif record.state in (TransferState.GRANTED, TransferState.ARRIVED):
                record.state, record.number = TransferState.WITHDRAWN, None
                self._tracker.withdrawn(record.key)
                self._note_withdrawn(record)
        version = self.schedule.version(server) + server.version_shift
        fields = {"version": version, "lost": len(promotion.lost), "distance": promotion.distance}
        self._log.note("promoted", job=self._job_name, server=server.server_id, **fields)
        return promotion

    def note_replica(self, server: ServerPlace) -> None:
        """Log how far a server is ahead of its replica, if that is in place."""
        state = self.schedule.replica_state(server)
        if state is not None and self.replicas.is_in_place(server.server_id):
            version, distance = state
            self._log.note(
                "replicated",
                job=self._job_name,
                server=server.server_id,
                version=self.schedule.version(server) + server.version_shift,
                replica_version=version + server.version_shift,
                distance=distance,
            )

    def replace_network(self, network: TransferNetwork) -> None:
        """Plan in another network from now on; what is granted keeps its plan."""
        self.schedule.replace_network(network)
        self.retry_parked()

    def retry_parked(self) -> None:
        """Try again what could not be scheduled before."""
        for record in [*self._parked.values()]:
            if record.state is TransferState.PARKED:
                self._try(record)

    def close(self) -> None:
        """Decide no more, and end no wait."""
        self.schedule.close()
        for worker in self._workers.values():
            for record in worker.open_records:
                record.stop_timer()

    def _given_up(self, records: list[TransferRecord], ready: list[TransferRecord]) -> None:
        """Go on without members that have not come to their aggregators."""
        for record in records:
            _LOGGER.warning(
                "job %s: %s has not come to its group in time; the others go on without it",
                *(self._job_name, record.name),
            )
            self.groups.gave_up(record)
            self._note_withdrawn(record)
            self._skip(record)
        for record in ready:
            self._applied(self._servers[record.server_id], [record])

    def _note_withdrawn(self, record: TransferRecord) -> None:
        record.stop_timer()
        self._workers[record.worker_id].counts.withdrawn += 1
        self._note("withdrawn", record)
        self._end(record)

    def _skip(self, record: TransferRecord) -> None:
        """Tell a server that nothing comes for a place."""
        self._tracker.withdrawn(record.key)
        server = self._servers[record.server_id]
        del server.granted[record.sequence]
        if server.station is not None:
            server.station.send(skipped_message(record.sequence))
        self.replicas.skipped(record.server_id, record.sequence)

    def _decided(self, records: list[TransferRecord]) -> None:
        """Tell stations of a batch."""
        self.groups.announce(records)
        for record in records:
            if record.state is TransferState.DROPPED:
                self._drop(record, record.drop_reason)
            else:
                self._grant(record)

    def _grant(self, record: TransferRecord) -> None:
        worker, server = self._workers[record.worker_id], self._servers[record.server_id]
        assert record.grant is not None, "it is granted"
        record.sequence = server.next_sequence
        if self._rate_rule is not None:
            delay = record.grant.delay
            record.rate_factor = self._rate_rule.factor(delay, record.request.version + delay)
        server.num_granted += 1
        server.granted[record.sequence] = record
        worker.counts.grants += 1
        grant = record.grant
        if grant.group is None:
            record.headroom = self._tracker.headroom(grant.planned.links)
        if grant.group is None or not grant.group.is_switch:  # nobody measures its packets
            links, bits = grant.planned.links, grant.request.bits
            self._tracker.granted(record.key, links, grant.spans, bits, record.headroom)
        self._note("granted", record)
        if server.station is not None:
            server.station.send(expected_message(record, record.decided_s))
        if worker.station is not None:
            worker.station.send(granted_message(record, record.decided_s))
        self.replicas.granted(record)
        planned_s = record.grant.commit_s - record.decided_s
        overdue_s = max(self._config.overdue_ratio * planned_s, self._config.overdue_least_s)
        record.timer = PunctualTimer(overdue_s, lambda: self._overdue(record))

    def _drop(self, record: TransferRecord, reason: str) -> None:
        record.state, record.drop_reason = TransferState.DROPPED, reason
        worker = self._workers[record.worker_id]
        worker.counts.drops += 1
        self.drops[reason] += 1
        self._note("dropped", record)
        self._end(record)
        if worker.station is not None:
            worker.station.send(dropped_message(record))

    def _overdue(self, record: TransferRecord) -> None:
        """Give up a granted update that does not come."""
        self._workers[record.worker_id].counts.overdue += 1
        _LOGGER.warning(
            "job %s: %s is overdue; its place %d at server %d is skipped",
            *(self._job_name, record.name, record.sequence, record.server_id),
        )
        self.withdraw(record)

    def _applied(self, server: ServerPlace, records: Iterable[TransferRecord]) -> None:
        """Note what a server applies now."""
        records = list(records)
        for record in records:
            server.arrived.discard(record.sequence)
            if not record.is_refused:
                self._workers[record.worker_id].counts.commits += 1
                self._note("committed", record)
            self._end(record)
        server.note_highest(self.schedule.version(server))
        if records:
            self.note_replica(server)
        self.replicas.allow(server, records)

    def _problem(self, record: TransferRecord) -> str:
        """Return what a request waits for, "" if nothing."""
        server = self._servers.get(record.server_id)
        if server is None or not server.is_attached:
            return f"server {record.server_id} is not registered"
        if problem := self.replicas.problem(record.server_id):
            return problem
        known = self._last_version(server)
        if record.request.version > known:
            return f"server {record.server_id} has version {known}"
        return ""

    def _last_version(self, server: ServerPlace) -> int:
        """Return a server's version once it has applied all that is granted."""
        return self.schedule.version(server) + server.version_shift + server.num_ahead

    def _try(self, record: TransferRecord) -> None:
        """Give a request to the scheduler, or let it wait."""
        problem = self._problem(record)
        if not problem:
            worker, server = self._workers[record.worker_id], self._servers[record.server_id]
            assert worker.station is not None, "requests of lost workers are withdrawn"
            try:
                self.schedule.submit(record, worker.station.host, server)
            except NoRouteError as exc:
                problem = str(exc)
            except SchedulerError as exc:
                self._refuse(record, str(exc))
                return
            else:
                record.stop_timer()
                self._parked.pop((record.worker_id, record.transfer_id), None)
                return
        server = self._servers.get(record.server_id)
        if server is not None and server.is_attached and self._is_outdated(record, server):
            record.stop_timer()
            self._parked.pop((record.worker_id, record.transfer_id), None)
            self._drop(record, "its server has an older model")
            return
        self._park(record, problem)

    def _is_outdated(self, record: TransferRecord, server: ServerPlace) -> bool:
        """Whether an update is on a model that its server had before it was started again."""
        return self._last_version(server) < record.request.version <= server.highest_version

    def _park(self, record: TransferRecord, problem: str) -> None:
        record.state, record.parked_for = TransferState.PARKED, problem
        self._parked[record.worker_id, record.transfer_id] = record
        if record.timer is None:
            record.timer = PunctualTimer(self._config.server_wait_s, lambda: self._tire(record))

    def _tire(self, record: TransferRecord) -> None:
        """Wait no longer; a worker whose request can never be met hears so."""
        server = self._servers.get(record.server_id)
        if server is None or (server.is_attached and self._problem(record)):
            self._refuse(record, record.parked_for)
            return
        _LOGGER.info(
            "job %s: %s is not answered: %s", self._job_name, record.name, record.parked_for
        )
        self.withdraw(record)

    def _refuse(self, record: TransferRecord, problem: str) -> None:
        """End the stream of a request's worker."""
        error = self._refusal(record, problem)
        self.withdraw(record)
        station = self._workers[record.worker_id].station
        if station is not None:
            _LOGGER.info("job %s: %s is disconnected: %s", self._job_name, station, error)
            station.send(refused_message(record.transfer_id, error))
            station.refuse(error)

    def _refusal(self, record: TransferRecord, problem: str) -> TransferRefusedError:
        known = ", ".join(str(number) for number in sorted(self._servers)) or "none"
        return TransferRefusedError(
            f"{record.name} on version {record.request.version} cannot be scheduled: {problem}; "
            f"servers of job {self._job_name!r}: {known}. Send the version of the model that the "
            "worker got from its server"
        )

    def _end(self, record: TransferRecord) -> None:
        record.ended_s = self.schedule.now_s()
        self.ended.append(record)

    def _note(self, event: str, record: TransferRecord) -> None:
        fields: dict[str, Any] = {}
        if record.grant is not None:
            fields = {"sequence": record.sequence, "delay": record.grant.delay}
            if event == "granted":
                fields |= planned_times(record.grant.spans, record.decided_s)
            if record.hop is not None:
                fields["group"] = record.hop.group_id
                if record.hop.kind == pb.GroupHop.HOST:
                    fields["aggregator"] = record.hop.worker_id
        elif record.drop is not None:
            fields = {"delay": record.drop.delay, "reason": record.drop_reason}
        if self._has_clocks:
            fields["clock"] = record.request.clock
        self._log.note(
            event,
            job=self._job_name,
            worker=record.worker_id,
            server=record.server_id,
            transfer=record.transfer_id,
            bytes=record.request.size_bytes,
            **fields,
        )
