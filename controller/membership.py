# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Membership: who is in which job, from the first Hello to the end of the job."""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Coroutine, Mapping

from controller.attachment import attached_switch, attached_worker
from controller.config import ControllerConfig
from controller.database import Database
from controller.errors import (
    ControllerError,
    ControllerStoppingError,
    InvalidJobError,
    TokenError,
    UnknownJobError,
    WorkersMissingError,
    WorkerTakenError,
)
from controller.job import Job, JobState, Worker, WorkerState
from controller.job_request import JobRequest
from controller.layouts import Layouts
from controller.seat import LiveJob, Outbox, Seat
from controller.switch_link import SwitchLink
from controller.welcome import check_compatible, welcome
from hostlib.session_api import session_pb2 as pb
from hostlib.straggler import StragglerPolicy

_LOGGER = logging.getLogger(__name__)


class Membership:
    """All live jobs; one asyncio loop, no locks: state changes only between awaits."""

    def __init__(
        self,
        config: ControllerConfig,
        database: Database,
        links: Mapping[str, SwitchLink],
        layouts: Layouts,
    ) -> None:
        self._config = config
        self._database = database
        self._links = links
        self._layouts = layouts
        self._live: dict[str, LiveJob] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def restore(self) -> None:
        """Take up the running jobs of the database; their workers have a grace to come back."""
        for job in self._database.jobs(is_live_only=True):
            reason = self._reason_to_end(job)
            if reason is not None:
                self._database.end_job(job.job_number, reason)
                continue
            live = LiveJob(job, _request(job), has_started=True)
            barriers = self._database.released_barriers(job.job_number)
            live.released = {f"{use} {name}" for name, use in barriers.items()}
            for worker in job.workers:
                if worker.state is WorkerState.JOINED:
                    self._seat(live, worker).renew(self._config.resume_grace_s)
            self._live[job.name] = live
            _LOGGER.info("job %s goes on (generation %d)", job.name, job.generation)

    def _reason_to_end(self, job: Job) -> str | None:
        """Return why a job of the database cannot go on, None if it can."""
        if job.state is JobState.WAITING:
            return "controller restarted before the job ran"
        switches = {worker.switch for worker in job.workers}
        if unknown := switches - set(self._links):
            return f"switch {', '.join(unknown)} is not configured any more"
        states = {worker.state for worker in job.workers}
        if WorkerState.LOST in states:
            return "controller restarted after a worker was lost"
        if WorkerState.JOINED not in states:
            return "completed"
        return None

    def live_job(self, name: str) -> LiveJob | None:
        """Return the waiting or running job of this name."""
        return self._live.get(name)

    async def enter(self, hello: pb.Hello) -> tuple[LiveJob, Seat, Outbox]:
        """Seat a worker that says Hello, or a worker that comes back with `resume`."""
        if self._config.token and not hmac.compare_digest(
            hello.token.encode(), self._config.token.encode()
        ):
            raise TokenError(f"job {hello.job_name!r}: wrong token; ask the operator for it")
        if hello.HasField("resume"):
            return self._resume(hello)
        # Slots of jobs that are just ending count as free.
        await self._settled()
        switch = attached_switch(hello, self._config.switches)
        link = self._links[switch.name]
        worker = attached_worker(hello, switch)
        check_compatible(hello, link)
        live = self._waiting_job(hello, switch.name, worker)
        seat = self._seat(live, worker)
        outbox = seat.attach()
        seat.renew(self._config.lease_s)
        if not live.missing:
            live.has_started = True
            self._spawn(self._start(live))
        return live, seat, outbox

    def heard(self, seat: Seat) -> None:
        """Renew the lease of a worker that said something."""
        seat.renew(self._config.lease_s)

    def reach_barrier(self, live: LiveJob, seat: Seat, barrier: pb.Barrier) -> None:
        """Note a worker at a barrier; one that was released while it was away is answered again."""
        released = pb.ControllerMessage(
            barrier_released=pb.BarrierReleased(name=barrier.name, use=barrier.use)
        )
        key = f"{barrier.use} {barrier.name}"
        if key in live.released:
            seat.send(released)
            return
        reached = live.barriers.setdefault(key, set())
        reached.add(seat.worker.worker_id)
        if len(reached) == live.request.num_workers:
            del live.barriers[key]
            if barrier.use:
                live.released.add(key)
                self._database.release_barrier(live.job.job_number, barrier.name, barrier.use)
            live.send(released)

    def leave(self, live: LiveJob, seat: Seat) -> None:
        """Take a worker out; the job ends when the last one leaves."""
        if live.has_ended or live.seats.get(seat.worker.worker_id) is not seat:
            return
        del live.seats[seat.worker.worker_id]
        seat.release()
        seat.close()
        if live.has_started:
            self._database.mark_worker(live.job.job_number, seat.worker.worker_id, WorkerState.LEFT)
        if not live.seats:
            self._end(live, "completed" if live.has_started else "all workers left before it ran")

    def stream_ended(self, live: LiveJob, seat: Seat, outbox: Outbox) -> None:
        """Note that a stream broke: a waiting worker is gone, a running one may come back."""
        if seat.detach(outbox) and not live.has_started:
            self.leave(live, seat)

    async def stop_job(self, name: str, reason: str) -> Job:
        """End a job for the operator and return it."""
        live = self._live.get(name)
        if live is None:
            raise UnknownJobError(f"no live job {name!r}; see 'switchfold job list'")
        self._end(live, reason)
        await self._settled()
        return self._database.job(live.job.job_number)

    async def close(self) -> None:
        """End all streams; running jobs stay in the database and on the switches."""
        await self._settled()
        stopping = ControllerStoppingError("the controller is being stopped; join again later")
        for live in self._live.values():
            live.release_timers()
            live.send(stopping)

    def _resume(self, hello: pb.Hello) -> tuple[LiveJob, Seat, Outbox]:
        live = self._live.get(hello.job_name)
        resume = hello.resume
        if live is None or live.job.generation != resume.generation:
            raise UnknownJobError(
                f"job {hello.job_name!r} with generation {resume.generation} is not running here "
                "any more; start the job anew"
            )
        seat = live.seats.get(hello.worker_id)
        if seat is None or (seat.worker.address, seat.worker.udp_port) != (
            hello.address,
            hello.udp_port,
        ):
            raise UnknownJobError(
                f"job {hello.job_name!r} has no worker {hello.worker_id} at {hello.address}:"
                f"{hello.udp_port}; start the job anew"
            )
        outbox = seat.attach()
        seat.renew(self._config.lease_s)
        seat.send(self._welcome(live))
        _LOGGER.info("job %s: worker %d is back", hello.job_name, hello.worker_id)
        return live, seat, outbox

    def _waiting_job(self, hello: pb.Hello, switch: str, worker: Worker) -> LiveJob:
        """Return the job that this worker may enter; make it if it is the first."""
        request = JobRequest(
            name=hello.job_name,
            switch=switch,
            num_workers=hello.num_workers,
            slots_wanted=hello.slots_wanted,
            allow_partial=hello.allow_partial,
        )
        if hello.worker_id >= request.num_workers:
            raise InvalidJobError(
                f"job {request.name!r}: worker id {hello.worker_id} is not below the "
                f"{request.num_workers} workers"
            )
        live = self._live.get(request.name)
        if live is not None and live.has_started:
            live = self._replace_started(live, hello)
        if live is None:
            return self._admit(request, worker, self._join_timeout_s(hello))
        seat = live.seats.get(hello.worker_id)
        if seat is not None:
            raise InvalidJobError(
                f"job {request.name!r}: worker id {hello.worker_id} is taken by "
                f"{seat.worker.address}; give every worker its own id"
            )
        if request != live.request:
            raise InvalidJobError(
                f"job {request.name!r}: worker {hello.worker_id} wants {_terms(request)}, the "
                f"first worker said {_terms(live.request)}; start all workers alike"
            )
        return live

    def _replace_started(self, live: LiveJob, hello: pb.Hello) -> None:
        """End a started job whose worker was started anew; refuse while that worker lives."""
        seat = live.seats.get(hello.worker_id)
        if seat is not None and not seat.is_attached:
            self._end(live, f"worker {hello.worker_id} was started anew")
            return
        raise WorkerTakenError(
            f"job {live.job.name!r} is running and worker {hello.worker_id} is in it or has left; "
            "use another job name, or end it with 'switchfold job stop'"
        )

    def _join_timeout_s(self, hello: pb.Hello) -> float:
        """Return how long to wait for all workers: a little less than the first one waits."""
        if hello.join_timeout_s <= 0:
            return self._config.join_timeout_s
        wished_s = hello.join_timeout_s - min(1.0, 0.1 * hello.join_timeout_s)
        return min(self._config.join_timeout_s, wished_s)

    def _admit(self, request: JobRequest, worker: Worker, join_timeout_s: float) -> LiveJob:
        job = self._database.create_job(
            request.name,
            request.num_workers,
            straggler=StragglerPolicy(
                quorum=request.num_workers if request.allow_partial else None
            ),
            slots_wanted=request.slots_wanted,
        )
        try:
            self._layouts.plan(job, [worker])
        except ControllerError as exc:
            self._database.end_job(job.job_number, str(exc))
            raise
        job = self._database.job(job.job_number)
        live = LiveJob(job, request, join_timeout_s)
        live.join_timer = asyncio.get_running_loop().call_later(
            join_timeout_s, self._join_timed_out, live
        )
        self._live[request.name] = live
        _LOGGER.info("job %s admitted: %s", job.name, job)
        return live

    def _seat(self, live: LiveJob, worker: Worker) -> Seat:
        seat = Seat(worker, lambda seat: self._lease_expired(live, seat))
        live.seats[worker.worker_id] = seat
        return seat

    async def _start(self, live: LiveJob) -> None:
        """Install the job on the switch and welcome its workers."""
        if live.join_timer is not None:
            live.join_timer.cancel()
        if live.has_ended or live.missing:
            self._end(live, f"worker {live.missing} left before the job ran")
            return
        workers = tuple(live.seats[worker_id].worker for worker_id in sorted(live.seats))
        try:
            for planned in live.job.live_layouts:
                await self._layouts.remove(planned)
            layout = self._layouts.plan(live.job, workers)
            self._database.start_job(live.job.job_number)
            await self._layouts.install(layout)
            live.job = self._database.job(live.job.job_number)
        except ControllerError as exc:
            self._end(live, str(exc), error=exc)
            return
        if not live.has_ended:
            live.send(self._welcome(live))
            _LOGGER.info("job %s runs with %d workers", live.job.name, len(workers))

    def _join_timed_out(self, live: LiveJob) -> None:
        missing = ", ".join(str(worker_id) for worker_id in live.missing)
        text = (
            f"job {live.job.name!r}: worker {missing} of {live.request.num_workers} never arrived "
            f"within {live.join_timeout_s:g} s; start all workers, check their addresses"
        )
        self._end(live, f"worker {missing} never arrived", error=WorkersMissingError(text))

    def _lease_expired(self, live: LiveJob, seat: Seat) -> None:
        worker_id = seat.worker.worker_id
        why = "no heartbeat" if seat.is_attached else "connection broke"
        if live.has_started:
            self._database.mark_worker(live.job.job_number, worker_id, WorkerState.LOST)
            self._end(live, f"worker {worker_id} lost ({why})")
        else:
            self.leave(live, seat)

    def _end(self, live: LiveJob, reason: str, *, error: ControllerError | None = None) -> None:
        """End a job once: tell the workers, then take it from the switch and free its slots."""
        if live.has_ended:
            return
        live.has_ended = True
        live.release_timers()
        if self._live.get(live.job.name) is live:
            del self._live[live.job.name]
        live.send(error or pb.ControllerMessage(job_ended=pb.JobEnded(reason=reason)))
        for seat in live.seats.values():
            seat.close()
        _LOGGER.info("job %s ended: %s", live.job.name, reason)
        self._spawn(self._tear_down(live.job, reason))

    async def _tear_down(self, job: Job, reason: str) -> None:
        for layout in self._database.job(job.job_number).live_layouts:
            await self._layouts.remove(layout)
        self._database.end_job(job.job_number, reason)

    def _welcome(self, live: LiveJob) -> pb.ControllerMessage:
        layout = live.job.layout
        assert layout is not None, "a job that runs has a layout"
        link = self._links[layout.trees[0].nodes[0].switch]
        return welcome(layout, link, self._config.lease_s)

    async def _settled(self) -> None:
        """Wait for jobs that start or end; who waits and goes away must not cancel them."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _spawn(self, coroutine: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._task_done)

    def _task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOGGER.error("a job could not be started or ended: %s", error, exc_info=error)


def _request(job: Job) -> JobRequest:
    return JobRequest(
        name=job.name,
        switch=job.workers[0].switch,
        num_workers=job.num_workers,
        slots_wanted=job.slots_wanted,
        allow_partial=job.straggler.allow_partial,
    )


def _terms(request: JobRequest) -> str:
    slots = request.slots_wanted or "any number of"
    partial = "partial results" if request.allow_partial else "whole results"
    return f"{request.num_workers} workers on {request.switch}, {slots} slots, {partial}"
