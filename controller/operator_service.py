# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Operator API server: what the command line asks a running controller."""

from __future__ import annotations

from collections.abc import Mapping

import grpc

from controller.database import Database
from controller.errors import ControllerError, SwitchError, UnknownJobError
from controller.job import Job, JobState, Worker, WorkerState
from controller.layouts import Layouts
from controller.membership import Membership
from controller.operator_api import operator_pb2 as pb
from controller.operator_api import operator_pb2_grpc
from controller.outcome import Count
from controller.program import describe
from controller.switch_link import SwitchLink
from hostlib import wire


class OperatorService(operator_pb2_grpc.OperatorServicer):
    """Answers from the database, the live jobs and the switches' counters."""

    def __init__(
        self,
        database: Database,
        membership: Membership,
        links: Mapping[str, SwitchLink],
        layouts: Layouts,
    ) -> None:
        self._database = database
        self._membership = membership
        self._links = links
        self._layouts = layouts

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
            error = UnknownJobError(f"no job {request.name!r}; see 'switchfold job list --all'")
            await context.abort(error.status, str(error))
        message = self._job(jobs[-1])
        await self._add_counts(message, jobs[-1])
        return message

    async def StopJob(  # noqa: N802
        self,
        request: pb.StopJobRequest,
        context: grpc.aio.ServicerContext[pb.StopJobRequest, pb.Job],
    ) -> pb.Job:
        """End a job; its workers are told."""
        try:
            job = await self._membership.stop_job(request.name, "stopped by the operator")
        except ControllerError as exc:
            await context.abort(exc.status, str(exc))
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
            known = ", ".join(self._links)
            await context.abort(
                grpc.StatusCode.NOT_FOUND, f"no switch {request.name!r}; there is {known}"
            )
        message = self._switch(link)
        try:
            message.counts.extend(
                _outcome_count(outcome, count)
                for outcome, count in (await link.read_switch_counts()).items()
            )
            for port, (received, sent) in (await link.read_port_counts()).items():
                host = next((h.name for h in link.config.hosts if h.port == port), "")
                message.ports.add(
                    port=port,
                    host=host,
                    packets_in=received.packets,
                    bytes_in=received.num_bytes,
                    packets_out=sent.packets,
                    bytes_out=sent.num_bytes,
                )
        except SwitchError as exc:
            message.error = str(exc)
        return message

    async def _add_counts(self, message: pb.Job, job: Job) -> None:
        try:
            counts = await self._layouts.job_counts(job)
        except SwitchError as exc:
            counts = self._database.counts(job.job_number)
            message.counts_error = str(exc)
        if job.state is JobState.ENDED and not counts:
            message.counts_error = "the counters were not kept: the switch was away at the end"
        total: dict[wire.Outcome, Count] = {}
        for of_switch in counts.values():
            for outcome, n in of_switch.items():
                before = total.get(outcome, Count(0, 0))
                total[outcome] = Count(before.packets + n.packets, before.num_bytes + n.num_bytes)
        message.counts.extend(_outcome_count(outcome, n) for outcome, n in total.items())

    def _job(self, job: Job) -> pb.Job:
        live = self._membership.live_job(job.name)
        is_live = live is not None and live.job.job_number == job.job_number
        workers, missing = job.workers, list[int]()
        detached = set[int]()
        if live is not None and is_live:
            if not live.has_started:
                workers = tuple(seat.worker for seat in live.seats.values())
            detached = {w for w, seat in live.seats.items() if not seat.is_attached}
            missing = sorted(detached) if live.has_started else live.missing
        layout = job.layout
        tree = layout.trees[0] if layout and layout.trees else None
        return pb.Job(
            name=job.name,
            job_id=tree.tree_id if tree else 0,
            generation=job.generation,
            switch=", ".join(layout.switches) if layout else "",
            state=str(job.state),
            reason=job.reason,
            slot_base=tree.nodes[0].slot_base if tree else 0,
            slot_count=layout.slot_count if layout else 0,
            num_workers=job.num_workers,
            allow_partial=job.straggler.allow_partial,
            created_s=job.created_s,
            ended_s=job.ended_s or 0.0,
            workers=[_worker(worker, detached) for worker in workers],
            missing_workers=missing,
        )

    def _switch(self, link: SwitchLink) -> pb.Switch:
        layouts = self._database.live_layouts()
        return pb.Switch(
            name=link.config.name,
            address=link.config.address,
            device_id=link.config.device_id,
            state=str(link.state),
            error=str(link.error or ""),
            program=describe(link.program.p4info),
            num_slots=wire.NUM_SLOTS,
            used_slots=sum(layout.slots_on(link.config.name) for layout in layouts),
            service_address=link.config.service_address,
        )


def _worker(worker: Worker, detached: set[int]) -> pb.Worker:
    is_detached = worker.state is WorkerState.JOINED and worker.worker_id in detached
    return pb.Worker(
        worker_id=worker.worker_id,
        address=worker.address,
        mac=worker.mac,
        udp_port=worker.udp_port,
        port=worker.port,
        state="detached" if is_detached else str(worker.state),
    )


def _outcome_count(outcome: wire.Outcome, count: Count) -> pb.OutcomeCount:
    return pb.OutcomeCount(
        outcome=outcome.name.lower(), packets=count.packets, bytes=count.num_bytes
    )
