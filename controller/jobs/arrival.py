# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a worker that sends a JoinRequest wants, and why it may be refused."""

from __future__ import annotations

from ...hostlib.control.session_api import session_pb2 as pb
from ...hostlib.control.view_message import decode_tolerance
from ...hostlib.errors import ConfigurationError
from ...hostlib.straggler import StragglerPolicy
from ..config import ControllerConfig
from ..errors import InvalidJobError, WorkerTakenError
from .job import Job, PathChoice
from .job_request import JobRequest
from .live_job import LiveJob

_PATHS = {
    pb.AUTO: PathChoice.AUTO,
    pb.SWITCH: PathChoice.SWITCH,
    pb.HOST: PathChoice.HOST,
    pb.TRANSPOSED: PathChoice.TRANSPOSED,
}


def requested_job(join_request: pb.JoinRequest) -> JobRequest:
    """Return the job that a JoinRequest asks for; InvalidJobError when that makes no sense."""
    try:
        straggler = StragglerPolicy(
            quorum=join_request.straggler.quorum or None,
            deadline_s=join_request.straggler.deadline_s or None,
            tolerance=(
                decode_tolerance(join_request.straggler)
                if join_request.straggler.HasField("tolerance")
                else None
            ),
        )
    except ConfigurationError as exc:
        raise InvalidJobError(f"job {join_request.job_name!r}: {exc}") from exc
    path = _PATHS.get(join_request.path)
    if path is None:
        raise InvalidJobError(
            f"job {join_request.job_name!r}: path {join_request.path} is none of {pb.Path}"
        )
    request = JobRequest(
        name=join_request.job_name,
        num_workers=join_request.num_workers,
        slots_wanted=join_request.slots_wanted,
        straggler=straggler,
        weight=join_request.weight or 1.0,
        path=path,
        min_workers=join_request.min_workers or 1,
        max_priority=join_request.max_priority,
    )
    if join_request.worker_id >= request.num_workers:
        raise InvalidJobError(
            f"job {request.name!r}: worker id {join_request.worker_id} is not below the "
            f"{request.num_workers} workers"
        )
    return request


def check_waiting(live: LiveJob, request: JobRequest, join_request: pb.JoinRequest) -> None:
    """Raise unless the worker may enter a job that waits for its workers."""
    _check_run(live, join_request)
    lease = live.leases.get(join_request.worker_id)
    if lease is not None:
        raise InvalidJobError(
            f"job {request.name!r}: worker id {join_request.worker_id} is taken by "
            f"{lease.worker.address}; give every worker its own id"
        )
    first = job_terms(live.job)
    if request != first:
        if join_request.worker_id < live.job.num_workers:
            live.other_terms[join_request.worker_id] = str(request)
        raise InvalidJobError(
            f"job {request.name!r}: worker {join_request.worker_id} wants {request}, the first "
            f"worker said {first}; start all workers alike"
        )


def check_joining(live: LiveJob, join_request: pb.JoinRequest) -> None:
    """Raise unless the worker may join a running job."""
    _check_run(live, join_request)
    lease = live.leases.get(join_request.worker_id)
    if lease is not None and lease.is_attached:
        raise WorkerTakenError(
            f"job {live.name!r} is running and has a live worker {join_request.worker_id} at "
            f"{lease.worker.address}; join under another id"
        )
    if join_request.worker_id > 0xFFFF:
        raise InvalidJobError(f"worker id {join_request.worker_id} is not in 0..65535")


def _check_run(live: LiveJob, join_request: pb.JoinRequest) -> None:
    """Raise WorkerTakenError for a worker that knows the job's token, and is of another run."""
    if live.token.is_set and live.token.run != join_request.job_run:
        raise WorkerTakenError(
            f"job {live.name!r} is of another run (job_run) than worker {join_request.worker_id}; "
            "join again when it has ended, or end it with 'switchfold job stop'"
        )


def running_refusal(live: LiveJob, join_request: pb.JoinRequest) -> WorkerTakenError:
    """Return why a worker that does not say that it joins cannot enter a running job."""
    return WorkerTakenError(
        f"job {live.name!r} is running and worker {join_request.worker_id} is in it, has left or "
        "was lost; join with is_joining, use another name, or end it with 'switchfold job stop'"
    )


def join_timeout_s(join_request: pb.JoinRequest, config: ControllerConfig) -> float:
    """Return how long to wait for all workers: a little less than the first one waits."""
    if join_request.join_timeout_s <= 0:
        return config.join_timeout_s
    asked_s = join_request.join_timeout_s - min(1.0, 0.25 * join_request.join_timeout_s)
    return min(config.join_timeout_s, asked_s)


def lease_s(join_request: pb.JoinRequest, config: ControllerConfig) -> float:
    """Return how long a worker may say nothing while its connection stands."""
    return max(config.lease_s, join_request.lease_s)


def job_terms(job: Job) -> JobRequest:
    """Return what a job's first worker asked for."""
    return JobRequest(
        name=job.name,
        num_workers=job.num_workers,
        slots_wanted=job.slots_wanted,
        straggler=job.straggler,
        weight=job.weight,
        path=job.path,
        min_workers=job.min_workers,
        max_priority=job.max_priority,
    )
