# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a worker or row server that arrives wants, and why it may be refused."""

from __future__ import annotations

from collections.abc import Callable

from ...hostlib.control.session_api import session_pb2 as pb
from ...hostlib.control.view_message import decode_tolerance
from ...hostlib.errors import ConfigurationError
from ...hostlib.straggler import StragglerPolicy
from ..config import ControllerConfig
from ..database.database import Database
from ..errors import InvalidJobError, WorkerTakenError
from .job import Job, PathChoice
from .job_request import JobRequest, JobToken, spent_token, wrong_token
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


def proved_token(
    request: pb.JoinRequest | pb.AttachRowServer,
    who: str,
    live_job: Callable[[str], LiveJob | None],
    database: Database,
) -> JobToken:
    """Return the token of a request; JobTokenError unless it may open this, or any, job."""
    live = live_job(request.job_name)
    token = JobToken.of(request)
    is_own = live is not None and live.token.is_same(token)
    is_row_server = isinstance(request, pb.AttachRowServer)  # for all runs with its token
    if live is not None and is_own and (is_row_server or live.token.run == token.run):
        return token
    owner = database.job_of_token(token) if token.is_set else None
    if owner is not None:
        other = live_job(owner.name)
        is_live = other is not None and other.job_number == owner.job_number
        raise spent_token(request.job_name, who, owner.name, is_live=is_live)
    if live is not None and not is_own:
        raise wrong_token(request.job_name, who, token, live.token)
    return token
