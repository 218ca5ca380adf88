# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Operator API server, live transfers: what an operator is shown of a job."""

from __future__ import annotations

from typing import Final

import grpc

from ..api.operator_api import schedule_pb2 as pb
from ..api.operator_api import schedule_pb2_grpc
from .job_transfers import JobTransfers
from .live_groups import LiveGroup
from .live_station import LiveStation
from .models.model_record import ModelRecord
from .server_place import ServerPlace
from .transfer_jobs import TransferJobs
from .transfer_record import TransferRecord, TransferState, WorkerPlace

MAX_SHOWN: Final = 256
"""Open transfers in a report."""


class ScheduleService(schedule_pb2_grpc.ScheduleServicer):
    """Answers from the live transfers."""

    def __init__(self, jobs: TransferJobs) -> None:
        self._jobs = jobs

    async def ShowSchedule(  # noqa: N802
        self,
        request: pb.ShowScheduleRequest,
        context: grpc.aio.ServicerContext[pb.ShowScheduleRequest, pb.ScheduleReport],
    ) -> pb.ScheduleReport:
        """Return the transfers of a job."""
        return schedule_report(self._jobs.job(request.name))


def schedule_report(job: JobTransfers) -> pb.ScheduleReport:
    """Return the state of a job's transfers; times count from now."""
    flow, cost = job.flow, job.flow.schedule.cost
    now_s = flow.schedule.now_s()
    open_records = [record for place in job.workers.values() for record in place.open_records]
    ended = [record for record in flow.ended if not record.state.is_open]
    shown = [*open_records[:MAX_SHOWN], *ended]
    models = [*job.models.open_records[:MAX_SHOWN], *job.models.ended]
    transfers = [
        *(_transfer(record, now_s) for record in shown),
        *(_model(record, now_s) for record in models),
        *(_copy(record, now_s) for record in shown if _has_copy(job, record)),
    ]
    tally = job.models.tally
    return pb.ScheduleReport(
        job=job.name,
        age_s=now_s - flow.began_s,
        tau_max=job.terms.tau_max,
        div_max=job.terms.div_max,
        workers=[_worker(job.workers[number]) for number in sorted(job.workers)],
        servers=[_server(job, job.servers[number]) for number in sorted(job.servers)],
        transfers=sorted(transfers, key=lambda transfer: transfer.requested_s),
        drops=[pb.DropCount(reason=reason, count=count) for reason, count in flow.drops.items()],
        decisions=cost.decisions,
        batches=cost.batches,
        decide_s=cost.seconds,
        longest_s=cost.longest_s,
        open=len(open_records),
        groups=[_group(group, now_s) for group in flow.groups.shown],
        num_groups=flow.groups.counts.groups,
        grouped=flow.groups.counts.members,
        missing=flow.groups.counts.missing,
        left=flow.groups.counts.left,
        staleness=job.terms.staleness,
        models=pb.ModelCounts(
            requested=tally.requested,
            granted=tally.granted,
            delivered=tally.delivered,
            ungranted=tally.ungranted,
            withdrawn=tally.withdrawn,
            relayed=tally.relayed,
        ),
        rates=[
            pb.HostRates(
                host=host,
                up_bits_per_s=up,
                down_bits_per_s=down,
                link_up_bits_per_s=link_up,
                link_down_bits_per_s=link_down,
            )
            for host, ((up, down), (link_up, link_down)) in job.tracker.slowed().items()
        ],
    )


def _state(station: LiveStation | None) -> str:
    if station is None:
        return "lost"
    return "attached" if station.is_attached else "detached"


def _worker(place: WorkerPlace) -> pb.ScheduledWorker:
    counts = place.counts
    return pb.ScheduledWorker(
        worker_id=place.worker_id,
        host=place.station.host if place.station else "",
        state=_state(place.station),
        pushes=counts.pushes,
        grants=counts.grants,
        commits=counts.commits,
        drops=counts.drops,
        withdrawn=counts.withdrawn,
        overdue=counts.overdue,
        ungranted=counts.ungranted,
        refused=counts.refused,
        early=counts.early,
        drop_ratio=place.tally.drop_ratio,
        achieved_bits_per_s=place.achieved_bits_per_s,
        granted_bits_per_s=place.granted_bits_per_s,
        is_aggregator=place.station is not None and place.station.aggregator is not None,
    )


def _group(group: LiveGroup, now_s: float) -> pb.ScheduledGroup:
    spans = group.plan.spans
    return pb.ScheduledGroup(
        group_id=group.group_id,
        aggregator=group.aggregator.worker_id if group.aggregator is not None else None,
        is_switch=group.aggregator is None,
        host=group.host,
        server_id=group.records[0].server_id,
        worker_ids=[record.worker_id for record in group.records],
        sequence=group.records[0].sequence,
        gathered=len(group.gathered),
        missing=group.missing,
        left=group.left,
        is_open=group.is_open,
        start_s=(spans[0].start_s if spans else group.plan.end_s) - now_s,
        end_s=group.plan.end_s - now_s,
    )


def _server(job: JobTransfers, place: ServerPlace) -> pb.ScheduledServer:
    return pb.ScheduledServer(
        server_id=place.server_id,
        host=place.station.host if place.station else "",
        state=_state(place.station),
        version=max(job.flow.schedule.version(place) + place.version_shift, 0),
        next_sequence=place.next_sequence,
        open_sequence=place.open_sequence,
    )


def _transfer(record: TransferRecord, now_s: float) -> pb.ScheduledTransfer:
    message = pb.ScheduledTransfer(
        kind="update",
        worker_id=record.worker_id,
        server_id=record.server_id,
        transfer_id=record.transfer_id,
        size_bytes=record.request.size_bytes,
        version=record.request.version,
        state=str(record.state),
        reason=record.drop_reason or (record.parked_for if record.state == "parked" else ""),
        requested_s=record.requested_s - now_s,
        ended_s=record.ended_s - now_s if record.ended_s else 0.0,
    )
    if record.grant is not None:
        planned = record.grant.planned
        message.start_s = (planned.spans[0].start_s if planned.spans else planned.end_s) - now_s
        message.end_s = planned.end_s - now_s
        message.sequence, message.delay = record.sequence, record.grant.delay
    elif record.drop is not None:
        message.delay = record.drop.delay
    return message


def _model(record: ModelRecord, now_s: float) -> pb.ScheduledTransfer:
    message = pb.ScheduledTransfer(
        kind="model",
        worker_id=record.worker_id,
        server_id=record.server_id,
        transfer_id=record.transfer_id,
        size_bytes=record.request.size_bytes,
        state=str(record.state),
        requested_s=record.requested_s - now_s,
        ended_s=record.ended_s - now_s if record.ended_s else 0.0,
    )
    if record.grant is not None:
        spans = record.grant.spans
        message.start_s = (spans[0].start_s if spans else record.grant.end_s) - now_s
        message.end_s = record.grant.end_s - now_s
    if record.sender is not None:
        message.relayed_by = record.sender.worker_id
    return message


def _has_copy(job: JobTransfers, record: TransferRecord) -> bool:
    """Whether an update goes to a replica that is in place, too, or has come there."""
    grant = record.grant
    if grant is None or grant.replica_transfer is None:
        return False
    return record.is_at_replica or job.replicas.in_place(record.server_id) is not None


def _copy(record: TransferRecord, now_s: float) -> pb.ScheduledTransfer:
    """Return the transfer of an update to the replica of its server."""
    message = _transfer(record, now_s)
    message.kind = "replica"
    if record.is_at_replica:
        message.state = str(TransferState.COMMITTED)
    elif record.state is not TransferState.WITHDRAWN:
        message.state = str(TransferState.GRANTED)
    assert record.grant is not None
    planned = record.grant.replica_transfer
    assert planned is not None, "it has a copy"
    message.start_s = (planned.spans[0].start_s if planned.spans else planned.end_s) - now_s
    message.end_s = planned.end_s - now_s
    return message
