# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""All jobs with live transfers: who is a station of which job, and for how long."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable, Mapping
from typing import Final

from ...hostlib.control.transfers_api import transfers_pb2 as pb
from ..errors import (
    ControllerError,
    ControllerStoppingError,
    InvalidJobError,
    NoRoomError,
    SchedulerFailedError,
    SourceLimitError,
    StationsDisagreeError,
    TransferRefusedError,
    UnknownJobError,
    WorkerSilentError,
    WorkerTakenError,
)
from ..fabric.fabric import Fabric
from ..jobs.job_request import NO_TOKEN, JobToken, wrong_token
from ..scheduler.network import TransferNetwork
from .fabric_network import host_places, hosts_without_rate, link_tracker, transfer_network
from .job_transfers import JobTransfers
from .live_station import LiveStation, StationOutbox, StationRole, check_places
from .transfer_config import MAX_SERVERS, TransferConfig
from .transfer_log import TransferLog
from .transfer_terms import TransferTerms

_LOGGER = logging.getLogger(__name__)
_IDENTITY_BYTES: Final = 16
_TERM_BITS: Final = 20
_ID_BITS: Final = 32
"""Ids of a worker that a controller has never seen begin above its term, shifted by so many bits:
no earlier controller has given them. None is 0: servers report that for an update without an id."""


class TransferJobs:
    """Keeps jobs in memory alone: after a restart of the controller, stations register again."""

    def __init__(
        self,
        config: TransferConfig,
        fabric: Callable[[], Fabric],
        token_of: Callable[[str], JobToken | None],
        term: Callable[[], int],
    ) -> None:
        """`token_of` returns the token of a session job by name, None if no such job lives.

        `term` is this controller's. Raises ConfigError if the transfer log cannot be written.
        """
        self._config = config
        self._fabric = fabric
        self._token_of = token_of
        self._term = term
        self._jobs: dict[str, JobTransfers] = {}
        self._log = TransferLog(config.log)
        self._is_closing = False
        self._has_said_default = False

    @property
    def jobs(self) -> Mapping[str, JobTransfers]:
        """The jobs that have stations, by name."""
        return self._jobs

    def job(self, name: str) -> JobTransfers:
        """Return a job; UnknownJobError if no station of it is registered."""
        job = self._jobs.get(name)
        if job is None:
            known = ", ".join(sorted(self._jobs)[:8]) or "none"
            raise UnknownJobError(
                f"no job {name!r} has registered workers or servers for transfers; jobs that have: "
                f"{known}"
            )
        return job

    def check_open(self) -> None:
        """Raise ControllerStoppingError unless stations may still come."""
        if self._is_closing:
            raise _stopping()

    def register(
        self, role: StationRole, request: pb.Register, source: str = ""
    ) -> tuple[LiveStation, StationOutbox]:
        """Take in a station, or a new stream of one that is known; JobError if it is refused.

        `source` is where it calls from, "" for a Unix socket.
        """
        self.check_open()
        who = f"{role} {request.station_id}"
        if not request.job_name:
            raise InvalidJobError(f"{who}: the job's name is empty; name the job")
        token = JobToken.of(request)
        job = self._jobs.get(request.job_name)
        # Before all else: a stranger learns nothing of the job.
        wanted = job.token if job is not None else self._token_of(request.job_name)
        if wanted is not None and not wanted.is_same(token):
            raise wrong_token(request.job_name, who, token, wanted)
        self._check(role, request, who)
        if job is None:
            job = self._new_job(request, token or NO_TOKEN, source)
        elif job.terms != TransferTerms.of(request):
            raise StationsDisagreeError(
                f"{who} of job {job.name!r} has {TransferTerms.of(request)}, and the job's first "
                f"station has {job.terms}; start all of its workers and servers with the same"
            )
        self._jobs[job.name] = job
        station = self._placed(job, role, request)
        outbox = station.attach()
        job.greet(station, request)
        return station, outbox

    def take(self, station: LiveStation, message: pb.StationMessage) -> None:
        """Act on a message of a station that is in its place."""
        station.renew()
        self._jobs[station.job_name].take(station, message)

    def stream_ended(self, station: LiveStation, outbox: StationOutbox) -> None:
        """Note that a stream broke; the station may come back for a while."""
        if station.detach(outbox) and self._is_closing:
            station.release()

    def fabric_changed(self, fabric: Fabric, reason: str) -> None:
        """Plan all transfers in the changed fabric."""
        for job in self._jobs.values():
            job.replace_network(reason)

    def close(self) -> None:
        """End all streams; stations go on without the scheduler until a controller is back."""
        self._is_closing = True
        for job in self._jobs.values():
            _end(job, _stopping())
        self._jobs.clear()
        self._log.close()

    def _check(self, role: StationRole, request: pb.Register, who: str) -> None:
        if role is not StationRole.WORKER and request.station_id >= MAX_SERVERS:
            raise TransferRefusedError(
                f"{who} of job {request.job_name!r}: ids of servers lie below {MAX_SERVERS}"
            )
        if len(request.identity) != _IDENTITY_BYTES:
            raise InvalidJobError(
                f"{who}: an identity of {len(request.identity)} bytes; {_IDENTITY_BYTES} random "
                "ones are needed"
            )
        check_places(role, request, who)
        if request.HasField("staleness") and request.HasField("tau_max"):
            raise InvalidJobError(
                f"{who} of job {request.job_name!r}: staleness {request.staleness} and tau_max "
                f"{request.tau_max}; a job that waits for slow workers drops nothing: leave out one"
            )
        if role is StationRole.REPLICA and request.HasField("staleness"):
            raise InvalidJobError(
                f"{who} of job {request.job_name!r}: staleness {request.staleness}; servers of "
                "jobs that wait for slow workers have no replicas: leave one of them out"
            )
        if role is StationRole.REPLICA and not _is_address(request.address, request.port):
            raise TransferRefusedError(
                f"{who} of job {request.job_name!r}: address {request.address!r} and port"
                f" {request.port}; workers need an IPv4 address and a port to reach it"
            )
        places = host_places(self._fabric())
        if request.host not in places:
            known = ", ".join(sorted(places)[:8]) or "none"
            more = ", ..." if len(places) > 8 else ""
            raise TransferRefusedError(
                f"{who} of job {request.job_name!r}: no host {request.host!r} in the controller's "
                f"file, which has {len(places)} ({known}{more}); register with one of these names"
            )

    def _new_job(self, request: pb.Register, token: JobToken, source: str) -> JobTransfers:
        most = self._config.max_jobs
        if len(self._jobs) >= most:
            raise NoRoomError(
                f"{most} jobs have live transfers, and no more may; end one of them, or raise "
                "max_jobs of [transfers]"
            )
        share = max(1, most // 2)
        if source and [job.source for job in self._jobs.values()].count(source) >= share:
            raise SourceLimitError(
                f"{share} jobs of callers at {source} have live transfers, and no more of one "
                "address may; end one of them, or raise max_jobs of [transfers]"
            )
        self._say_default()
        terms = TransferTerms.of(request)
        _LOGGER.info("job %s has live transfers: %s", request.job_name, terms)
        return JobTransfers(
            request.job_name,
            terms=terms,
            token=token,
            config=self._config,
            network_of=self._network_of,
            tracker=link_tracker(self._fabric(), self._config),
            log=self._log,
            on_failed=lambda cause: self._failed(request.job_name, cause),
            source=source,
        )

    def _placed(self, job: JobTransfers, role: StationRole, request: pb.Register) -> LiveStation:
        """Return the station that a request is from, in its place."""
        known = job.station_in(role, request.station_id)
        if role is StationRole.REPLICA:
            server = job.servers.get(request.station_id)
            if server is not None and server.identity == request.identity:
                known = server.station  # it has become the server, and has not heard of it
        if known is not None and known.identity == request.identity and known.host == request.host:
            return known
        if known is not None and known.is_attached and known.identity != request.identity:
            raise WorkerTakenError(
                f"{known} of job {job.name!r} is registered from host {known.host}, and it is "
                f"another process; give every {role} its own id"
            )
        if known is None and len(job.stations) >= self._config.max_stations:
            raise NoRoomError(
                f"job {job.name!r} has {self._config.max_stations} stations, and no more may "
                "register; raise max_stations of [transfers]"
            )
        if known is not None:
            known.end(_replaced(known))
            job.lose(known)
            if job.station_in(role, request.station_id) is not None:
                raise WorkerTakenError(
                    f"{known} of job {job.name!r} was gone, and its replica has taken its place;"
                    " start this process as a replica of the server, with a copy of its log"
                )
        station = LiveStation(
            role,
            request,
            lease_s=self._config.lease_s,
            grace_s=self._config.reconnect_grace_s,
            on_lost=self._lost,
        )
        first_id = (self._term() % (1 << _TERM_BITS) + 1) << _ID_BITS
        job.take_in(station, request, first_id)
        return station

    def _lost(self, station: LiveStation) -> None:
        job = self._jobs[station.job_name]
        _LOGGER.warning("job %s: %s is lost", job.name, station)
        station.end(
            WorkerSilentError(
                f"{station} of job {job.name!r} was silent for {self._config.lease_s:g} s (its "
                "lease); a Heartbeat is due every 2 s: register again, and see whether its process "
                "was stopped or its machine is overloaded"
            )
        )
        job.lose(station)
        if not job.stations:
            job.close()
            del self._jobs[job.name]
            _LOGGER.info("job %s has no live transfers any more", job.name)

    def _failed(self, name: str, cause: Exception) -> None:
        """Forget a job whose scheduler failed: its stations begin again with a new one."""
        job = self._jobs.pop(name)
        _LOGGER.error(
            "job %s: its transfer scheduler failed at a batch; its stations register again",
            name,
            exc_info=cause,
        )
        error = SchedulerFailedError(
            f"the transfer scheduler of job {name!r} failed ({type(cause).__name__}, see the "
            "controller's log): register again, to have a new one"
        )
        _end(job, error)

    def _network_of(
        self, servers: Mapping[str, str], estimates: Mapping[str, tuple[int, int]]
    ) -> TransferNetwork:
        return transfer_network(self._fabric(), servers, self._config, estimates)

    def _say_default(self) -> None:
        """Log once for which hosts a rate is assumed."""
        unstated = hosts_without_rate(self._fabric())
        if unstated and not self._has_said_default:
            _LOGGER.warning(
                "transfers of %s are planned at %d bit/s each direction: their rate_bits_per_s is"
                " not in the file; state it, or set default_rate_bits_per_s of [transfers]",
                ", ".join(unstated), self._config.default_rate_bits_per_s,
            )  # fmt: skip
        self._has_said_default = True


def _end(job: JobTransfers, error: ControllerError) -> None:
    """Decide no more for a job, and end the streams of its stations."""
    job.close()
    for station in job.stations:
        station.end(error)


def _is_address(address: str, port: int) -> bool:
    try:
        ipaddress.IPv4Address(address)
    except ValueError:
        return False
    return port > 0


def _stopping() -> ControllerStoppingError:
    return ControllerStoppingError("the controller is being stopped; register again later")


def _replaced(station: LiveStation) -> WorkerTakenError:
    return WorkerTakenError(
        f"{station} of job {station.job_name!r} has registered again, from another host or "
        "process; let one process alone have this id"
    )
