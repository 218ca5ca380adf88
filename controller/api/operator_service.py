# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Operator API server: what the command line asks a running controller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import grpc

from ...hostlib.slots import wire
from ..config import LinkConfig
from ..database.database import Database
from ..errors import SwitchError, UnknownJobError, UnknownNameError
from ..jobs.job import Job, JobState
from ..jobs.membership import Membership
from ..leadership.leader import Leader
from ..switches.port_losses import read_port_losses
from ..switches.program import describe
from ..switches.switch_session import SwitchSession
from ..views.views import Views
from .callers.source_calls import SourceCalls
from .operator_api import operator_pb2 as pb
from .operator_api import operator_pb2_grpc
from .operator_messages import (
    job_message,
    lease_messages,
    outcome_counts,
    put_counts,
    put_server_states,
    source_messages,
)


class OperatorService(operator_pb2_grpc.OperatorServicer):
    """Answers from the database, the live jobs and the switches' counters."""

    def __init__(  # noqa: PLR0913 - each call shows another part
        self,
        database: Database,
        membership: Membership,
        links: Mapping[str, SwitchSession],
        views: Views,
        leader: Leader,
        *,
        cables: Iterable[LinkConfig] = (),
        sources: SourceCalls,
    ) -> None:
        self._database = database
        self._membership = membership
        self._links = links
        self._views = views
        self._leader = leader
        self._sources = sources
        self._neighbours: dict[tuple[str, int], str] = {}
        for cable in cables:
            one, other = cable.ends
            self._neighbours[one], self._neighbours[other] = other[0], one[0]

    async def ShowController(  # noqa: N802
        self,
        request: pb.ShowControllerRequest,
        context: grpc.aio.ServicerContext[pb.ShowControllerRequest, pb.Controller],
    ) -> pb.Controller:
        """Return the state of the controller itself, after an attempt to write its database."""
        self._database.check()
        return pb.Controller(
            database=self._database.name,
            database_error=self._database.failure,
            is_behind=self._database.is_behind,
            role="leader",
            term=self._leader.term,
            controllers=self._leader.controllers,
            calls_per_source=self._sources.share,
            sources=source_messages(self._sources),
        )

    async def ListJobs(  # noqa: N802
        self,
        request: pb.ListJobsRequest,
        context: grpc.aio.ServicerContext[pb.ListJobsRequest, pb.ListJobsResponse],
    ) -> pb.ListJobsResponse:
        """Return live jobs, ended ones too when asked."""
        jobs = self._database.jobs(is_live_only=not request.include_ended)
        return pb.ListJobsResponse(jobs=[self._job(job) for job in jobs])

    async def ShowJob(  # noqa: N802
        self,
        request: pb.ShowJobRequest,
        context: grpc.aio.ServicerContext[pb.ShowJobRequest, pb.Job],
    ) -> pb.Job:
        """Return the newest job of a name with its counters."""
        jobs = [job for job in self._database.jobs() if job.name == request.name]
        if not jobs:
            raise UnknownJobError(f"no job {request.name!r}; see 'switchfold job list --all'")
        message = self._job(jobs[-1])
        await self._add_counts(message, jobs[-1])
        return message

    async def StopJob(  # noqa: N802
        self,
        request: pb.StopJobRequest,
        context: grpc.aio.ServicerContext[pb.StopJobRequest, pb.Job],
    ) -> pb.Job:
        """End a job, and report that to its workers."""
        job = await self._membership.stop_job(request.name, "stopped by the operator")
        return self._job(job)

    async def ListSwitches(  # noqa: N802
        self,
        request: pb.ListSwitchesRequest,
        context: grpc.aio.ServicerContext[pb.ListSwitchesRequest, pb.ListSwitchesResponse],
    ) -> pb.ListSwitchesResponse:
        """Return all configured switches."""
        return pb.ListSwitchesResponse(switches=[self._switch(k) for k in self._links.values()])

    async def ShowSwitch(  # noqa: N802
        self,
        request: pb.ShowSwitchRequest,
        context: grpc.aio.ServicerContext[pb.ShowSwitchRequest, pb.Switch],
    ) -> pb.Switch:
        """Return one switch with its counters."""
        link = self._links.get(request.name)
        if link is None:
            raise UnknownNameError(f"no switch {request.name!r}; known: {', '.join(self._links)}")
        message = self._switch(link)
        jobs = {job.job_number: job for job in self._database.jobs(is_live_only=True)}
        message.leases.extend(lease_messages(request.name, self._database.live_views(), jobs))
        try:
            message.counts.extend(outcome_counts(await link.read_switch_counts()))
            message.ordinary_counts.extend(outcome_counts(await link.read_ordinary_counts()))
            for port, (received, sent) in (await link.read_port_counts()).items():
                host = next((h.name for h in link.config.hosts if h.port == port), "")
                message.ports.add(
                    port=port,
                    host=host,
                    neighbour=self._neighbours.get((request.name, port), ""),
                    packets_in=received.packets,
                    bytes_in=received.num_bytes,
                    packets_out=sent.packets,
                    bytes_out=sent.num_bytes,
                )
            losses = await read_port_losses(link.config)
            message.tells_port_losses = losses is not None
            for loss in losses or ():
                message.port_losses.add(port=loss.port, cause=loss.cause, frames=loss.frames)
        except SwitchError as exc:
            message.error = str(exc)
        return message

    async def _add_counts(self, message: pb.Job, job: Job) -> None:
        try:
            counts = await self._views.job_counts(job)
        except SwitchError as exc:
            counts = self._database.counts(job.job_number)
            message.counts_error = str(exc)
        had_trees = any(view.is_on_switch for view in job.views)
        if job.state is JobState.ENDED and had_trees and not counts:
            message.counts_error = "the counters are lost: no switch answered when the job ended"
        put_counts(message, counts)

    def _job(self, job: Job) -> pb.Job:
        live = self._membership.live_job(job.name)
        if live is None or live.job_number != job.job_number:
            return job_message(job, job.workers, set(), ())
        workers = job.workers
        if not live.has_started:
            workers = tuple(lease.worker for lease in live.leases.values())
        detached = {w for w, lease in live.leases.items() if not lease.is_attached}
        missing = sorted(detached) if live.has_started else live.missing
        message = job_message(job, workers, detached, missing)
        if live.view is not None:
            servers = self._membership.row_servers
            states = {s.server_id: servers.state_of(job.name, s) for s in live.view.row_servers}
            put_server_states(message, states)
        return message

    def _switch(self, link: SwitchSession) -> pb.Switch:
        name, views = link.config.name, self._database.live_views()
        return pb.Switch(
            name=name,
            address=link.config.address,
            device_id=link.config.device_id,
            state=str(link.state),
            error=str(link.error or ""),
            program=describe(link.program.p4info),
            num_slots=wire.NUM_SLOTS,
            used_slots=sum(view.slots_on(name) for view in views),
            service_address=link.config.service_address,
        )
