# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs that ran when an earlier controller stopped: what is known of them, and what is not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from ..views.view_change import ChangeRequest
from .job import Job, JobState, ViewState, WorkerId, WorkerState
from .job_request import JobToken
from .live_job import LiveJob
from .worker_lease import WorkerLease


def reason_to_end(
    job: Job, switches: Collection[str], digests: Mapping[WorkerId, bytes]
) -> str | None:
    """Return why a job of the database cannot go on, None if it can."""
    is_installed = any(view.state is ViewState.INSTALLED for view in job.live_views)
    if job.state is JobState.WAITING or not is_installed:
        has_begun_to_end = job.state is JobState.RUNNING and not job.live_views
        when = "while the job ended" if has_begun_to_end else "before the job ran"
        return f"controller restarted {when}"
    if unknown := {worker.switch for worker in job.workers} - set(switches):
        return f"switch {', '.join(sorted(unknown))} is not configured any more"
    if not digests:
        return "controller was replaced by a newer release"
    states = {worker.state for worker in job.workers}
    if WorkerState.JOINED not in states:
        return "completed" if WorkerState.LOST not in states else "all workers were lost"
    return None


def restored_job(
    job: Job,
    barriers: Mapping[str, int],
    digests: Mapping[WorkerId, bytes],
    on_expired: Callable[[LiveJob, WorkerLease], None],
    lease_s: float,
    *,
    token: JobToken,
) -> tuple[LiveJob, ChangeRequest]:
    """Return the live job, all its workers expected, and why it needs another view, if it does.

    Positions and answers of a change under way are lost with the controller; an abort asks for
    them again.
    """
    installed = [x for x in job.live_views if x.state is ViewState.INSTALLED]
    live = LiveJob.restored(job, barriers, token)
    change_request = ChangeRequest()
    for worker in job.workers:
        if worker.state is WorkerState.JOINED:
            digest = digests.get(worker.worker_id, b"")  # no secret has this one
            lease = WorkerLease(worker, lambda lease: on_expired(live, lease), lease_s, digest)
            live.add(lease)
        else:
            change_request.add(
                f"worker {worker.worker_id} {worker.state} before the controller restarted",
                is_abort=worker.state is WorkerState.LOST,
            )
    if len(installed) > 1:
        change_request.add("the controller restarted during a change", is_abort=True)
    return live, change_request
