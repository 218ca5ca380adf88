# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Membership: who is in which job, from the first Hello to the end of the job."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Collection, Mapping
from typing import Final

from ...hostlib.control.session_api import session_pb2 as pb
from ..config import ControllerConfig
from ..database.database import Database
from ..errors import (
    ControllerError,
    ControllerStoppingError,
    NoRoomError,
    RoleError,
    UnknownJobError,
    WorkerSilentError,
    WorkerTakenError,
)
from ..switches.switch_session import SwitchLink
from ..views.join_reply import check_compatible
from ..views.views import Views
from .arrival import (
    check_joining,
    check_waiting,
    join_timeout_s,
    lease_s,
    requested_job,
    running_refusal,
)
from .attachment import attached_switch, attached_worker
from .diagnosis import Diagnosis
from .job import Job, JobNumber, View, Worker
from .job_manager import Office, live_on
from .live_job import LiveJob
from .restoration import reason_to_end, restored_job
from .roles import Limits
from .worker_lease import Outbox, Seat
from .worker_place import check_peers, check_place

_LOGGER = logging.getLogger(__name__)
RETURN_S: Final = 2.0
"""After a restart of the controller, living workers are back within this time."""


class Membership:
    """Takes what workers, operators and switches say, and lets the office act on it."""

    def __init__(
        self,
        config: ControllerConfig,
        database: Database,
        links: Mapping[str, SwitchLink],
        views: Views,
        limits: Limits | None = None,
    ) -> None:
        self._config = config
        self._database = database
        self._links = links
        self._views = views
        self._office = Office(
            config, database, links, views, limits or Limits(no_way_s=config.no_route_s)
        )
        self._restored_s = float("-inf")
        self._is_closing = False
        views.on_switch_lost_state(self._switch_lost_state)
        views.on_switch_gone(self._switch_gone)
        views.on_switch_ready(self._switch_ready)
        self._diagnosis = Diagnosis(config, links, self._office)

    def restore(self) -> None:
        """Take up the running jobs of the database; their workers have a grace to come back."""
        for job in self._database.jobs(is_live_only=True):
            digests = self._database.resume_digests(job.job_number)
            reason = reason_to_end(job, self._links, digests)
            if reason is not None:
                self._database.end_job(job.job_number, reason)
                continue
            barriers = self._database.released_barriers(job.job_number)
            live, wish = restored_job(
                job, barriers, digests, self._lease_expired, self._config.lease_s
            )
            for seat in live.seats.values():
                seat.renew(self._config.resume_grace_s)
            self._office.live[job.name] = live
            self._office.run(live)
            if wish.reasons:
                self._office.wish(live, wish.reason, is_abort=wish.is_abort)
            _LOGGER.info("job %s goes on (generation %d)", job.name, job.generation)

    def note_listening(self) -> None:
        """Count from now the time that workers of restored jobs need to come back."""
        self._restored_s = asyncio.get_running_loop().time()

    def live_job(self, name: str) -> LiveJob | None:
        """Return the waiting or running job of this name."""
        return self._office.live.get(name)

    async def enter(self, hello: pb.Hello) -> tuple[LiveJob, Seat, Outbox]:
        """Seat a worker that says Hello, or a worker that comes back with `resume`."""
        if hello.HasField("resume"):
            return self._resume(hello)
        # Slots of jobs that are just ending count as free.
        await self._office.settled()
        switch = attached_switch(hello, self._config.switches)
        worker = attached_worker(hello, switch)
        check_place(worker, self._config)
        check_compatible(hello, self._links[switch.name])
        live = self._office.live.get(hello.job_name)
        if live is not None and live.has_started:
            if hello.is_joining or not await self._is_deserted(live):
                return self._join(live, hello, worker)
            self._office.end(live, f"worker {worker.worker_id} was started anew")
        return self._wait(hello, worker)

    async def _is_deserted(self, live: LiveJob) -> bool:
        """Return whether no worker is in a started job.

        After a restart its workers get a moment: they try to come back twice a second.
        """
        left_s = self._restored_s + RETURN_S - asyncio.get_running_loop().time()
        if left_s > 0 and not live.is_attached:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await live.returned.wait()
        return not live.is_attached

    def heard(self, seat: Seat) -> None:
        """Renew the lease of a worker that said something."""
        if not self._is_closing:
            seat.hear()

    def reach_barrier(self, live: LiveJob, seat: Seat, barrier: pb.Barrier) -> None:
        """Note a worker at a barrier; one that was released while it was away is answered again."""
        if live.barriers.reach((barrier.name, barrier.use), seat.worker_id):
            released = pb.BarrierReleased(name=barrier.name, use=barrier.use)
            seat.send(pb.ControllerMessage(barrier_released=released))
        else:
            self._office.release_barriers(live)

    def leave(self, live: LiveJob, seat: Seat, message: pb.Leave) -> None:
        """Take a worker out that has finished."""
        position = message.position if message.HasField("position") else None
        self._office.leave(live, seat, position)

    def view_ready(self, live: LiveJob, seat: Seat, ready: pb.ViewReady) -> None:
        """Note how far a worker is."""
        change = live.change
        if change is not None and change.generation == ready.generation:
            change.positions[seat.worker_id] = ready.position
            self._office.tell(live)

    def view_entered(self, live: LiveJob, seat: Seat, entered: pb.ViewEntered) -> None:
        """Note that a worker has left all views before this one."""
        change = live.change
        if change is not None and change.is_committed and change.generation == entered.generation:
            change.entered.add(seat.worker_id)
            self._office.tell(live)

    def stalled(self, live: LiveJob, seat: Seat, stalled: pb.Stalled) -> None:
        """Find out why a worker that sends hears nothing, and do something if it is for us."""
        view = live.view
        if view is None or not live.can_change:
            return
        if live.change is not None and live.change.is_abort and not live.change.is_committed:
            return  # the repair is under way
        if live.is_draining:
            fewest = live.job.min_workers
            self._office.end(live, f"fewer than {fewest} workers are left")
            return
        now_s = asyncio.get_running_loop().time()
        missing = set(stalled.missing_workers)
        if now_s - self._restored_s > RETURN_S:
            for worker_id in missing & live.seats.keys():
                if live.seats[worker_id].is_expected:
                    self._office.lose(live, live.seats[worker_id], "not back, and missed")
        if gone := sorted(missing - live.seats.keys()):
            self._office.wish(live, f"worker {gone} is gone and missed", is_abort=True)
            return
        self._diagnosis.report(live, view, seat, stalled, now_s)

    def stream_ended(self, live: LiveJob, seat: Seat, outbox: Outbox) -> None:
        """Note that a stream broke: who knows a view may come back, others are gone."""
        if not seat.detach(outbox) or live.has_ended or self._is_closing:
            return
        if live.has_started and seat.is_welcome:
            seat.renew(self._config.reconnect_grace_s)
        elif live.has_started:
            self._office.lose(live, seat, "connection broke")
        else:
            self._office.leave(live, seat)

    def replan(
        self,
        reason: str,
        *,
        jobs: Collection[JobNumber] | None = None,
        is_broken: bool = False,
        avoid: Collection[str] = (),
    ) -> list[str]:
        """Give running jobs better views and return their names; all jobs when `jobs` is None.

        They change at their next tensor boundary, or redo the tensors in flight when their trees
        are broken. `avoid` names switches and links that views should leave.
        """
        chosen = [
            live
            for live in self._office.live.values()
            if live.view and live.can_change and (jobs is None or live.job.job_number in jobs)
        ]
        for live in chosen:
            self._office.wish(live, reason, is_abort=is_broken, is_replan=True, avoid=avoid)
        return [live.name for live in chosen]

    async def stop_job(self, name: str, reason: str) -> Job:
        """End a job for the operator and return it."""
        live = self._office.live.get(name)
        if live is None:
            raise UnknownJobError(f"no live job {name!r}; see 'switchfold job list'")
        self._office.end(live, reason)
        await self._office.settled()
        return self._database.job(live.job.job_number)

    async def settled(self) -> None:
        """Wait until jobs that start or end have done so."""
        await self._office.settled()

    async def close(self) -> None:
        """End all streams; running jobs stay in the database and on the switches."""
        self._is_closing = True
        await self._office.settled()
        await self._office.close()
        stopping = ControllerStoppingError("the controller is being stopped; join again later")
        for live in self._office.live.values():
            live.release_timers()
            live.send(stopping)

    def _resume(self, hello: pb.Hello) -> tuple[LiveJob, Seat, Outbox]:
        live = self._office.live.get(hello.job_name)
        resume = hello.resume
        seat = live.seats.get(hello.worker_id) if live is not None else None
        if live is None or live.job.job_number != resume.job_number:
            raise UnknownJobError(
                f"job {hello.job_name!r} with generation {resume.generation} is not running here "
                "any more; start the job anew"
            )
        place = (hello.address, hello.udp_port)
        if seat is None or (seat.worker.address, seat.worker.udp_port) != place:
            raise UnknownJobError(
                f"job {hello.job_name!r} goes on without worker {hello.worker_id} at "
                f"{hello.address}:{hello.udp_port}; join again with is_joining"
            )
        if not seat.is_secret(resume.secret):
            raise RoleError(
                f"job {hello.job_name!r}: this is not the secret that worker {hello.worker_id} got "
                "with its first Welcome; only that worker may take up its stream"
            )
        outbox = seat.attach()
        live.returned.set()
        seat.can_change = hello.can_change_view
        seat.lease_s = lease_s(hello, self._config)
        seat.hear()
        self._office.send_welcome(live, seat, live.boundary)
        change = live.change
        if change is not None and change.is_committed:
            if seat.worker_id in change.has_left_behind:
                self._office.send_commit(live, change, seat)
        elif change is not None and change.is_proposed:
            seat.send(change.proposal())
        if change is None or change.generation < resume.proposed:
            self._office.redeem(live, seat, resume.proposed)
        self._office.tell(live)
        _LOGGER.info("job %s: worker %d is back", hello.job_name, hello.worker_id)
        return live, seat, outbox

    def _join(self, live: LiveJob, hello: pb.Hello, worker: Worker) -> tuple[LiveJob, Seat, Outbox]:
        """Let a worker wait for a tensor boundary of a running job."""
        old = live.seats.get(hello.worker_id)
        if not hello.is_joining:
            if old is not None and not old.is_attached:
                self._check_same_host(old, worker)
                self._office.lose(live, old, "was started anew")
            raise running_refusal(live, hello)
        check_joining(live, hello)
        check_peers(worker, (one for one in live.workers if one.worker_id != worker.worker_id))
        if old is not None:
            self._check_same_host(old, worker)
        seat = self._new_seat(live, hello, worker)
        # Before it has the place: what cannot be stored is refused.
        self._database.store_resume_digest(live.job.job_number, worker.worker_id, seat.digest)
        if old is not None:
            self._office.lose(live, old, "was started anew")
        outbox = self._take(live, seat)
        self._office.wish(live, f"worker {worker.worker_id} joins")
        return live, seat, outbox

    def _wait(self, hello: pb.Hello, worker: Worker) -> tuple[LiveJob, Seat, Outbox]:
        """Let a worker wait for the others of its job; the first one makes the job."""
        request = requested_job(hello)
        live = self._office.live.get(request.name)
        if live is None:
            self._check_waiting_jobs()
            job = self._database.create_job(
                request.name,
                request.num_workers,
                straggler=request.straggler,
                weight=request.weight,
                path=request.path,
                min_workers=request.min_workers,
                slots_wanted=request.slots_wanted,
            )
            try:
                # Nothing is leased for a job that waits; one without any prospect is refused here.
                self._views.check(job, [worker])
            except ControllerError as exc:
                self._database.end_job(job.job_number, str(exc))
                raise
            live = LiveJob(job, join_timeout_s(hello, self._config))
            live.join_timer = asyncio.get_running_loop().call_later(
                live.join_timeout_s, self._office.join_timed_out, live
            )
            self._office.live[request.name] = live
            _LOGGER.info("job %s waits for its workers: %s", job.name, request)
        else:
            check_waiting(live, request, hello)
            check_peers(worker, live.workers)
        outbox = self._take(live, seat := self._new_seat(live, hello, worker))
        if not live.missing:
            live.has_started = True
            self._office.spawn(self._office.start(live))
        return live, seat, outbox

    def _check_waiting_jobs(self) -> None:
        most = self._config.max_waiting_jobs
        if sum(not live.has_started for live in self._office.live.values()) >= most:
            raise NoRoomError(
                f"{most} jobs wait for workers, and no more may; start the workers that they lack, "
                "or end them with 'switchfold job stop'"
            )

    def _check_same_host(self, old: Seat, worker: Worker) -> None:
        """Keep the place of a worker whose connection just broke from strangers.

        A process that was started anew on its host gets it at once.
        """
        if worker.address != old.worker.address:
            raise WorkerTakenError(
                f"worker {worker.worker_id} at {old.worker.address} may still come back; "
                f"{worker.address} gets its place when its grace is over: join again in a moment"
            )

    def _new_seat(self, live: LiveJob, hello: pb.Hello, worker: Worker) -> Seat:
        lease = lease_s(hello, self._config)
        seat = Seat(worker, lambda seat: self._lease_expired(live, seat), lease)
        seat.can_change = hello.can_change_view
        return seat

    def _take(self, live: LiveJob, seat: Seat) -> Outbox:
        """Give a worker its place."""
        self._office.seat(live, seat)
        outbox = seat.attach()
        seat.hear()
        return outbox

    def _lease_expired(self, live: LiveJob, seat: Seat) -> None:
        if not seat.is_attached:
            error = None
            why = "connection broke"
        else:
            why = f"no heartbeat for {seat.lease_s:g} s"
            error = WorkerSilentError(
                f"worker {seat.worker_id} of job {live.name} was silent for "
                f"{seat.lease_s:g} s (its lease); a Heartbeat is due at least every third "
                "of that: join again, and see whether its process was stopped or its machine is "
                "overloaded"
            )
        if live.has_started:
            self._office.lose(live, seat, why, error)
        else:
            if error is not None:
                seat.send(error)
            self._office.leave(live, seat)

    def _switch_ready(self, switch: str) -> None:
        now_s = asyncio.get_running_loop().time()
        for live in self._office.live.values():
            if live.retreat.end(switch) and live.stalls.is_lasting(now_s):
                self._office.wish(live, f"switch {switch} is there again", is_abort=True)
        self._office.rebalance()

    def _switch_lost_state(self, switch: str, views: list[View]) -> None:
        for live in live_on(self._office, views):
            self._office.wish(live, f"switch {switch} came back without its tables", is_abort=True)

    def _switch_gone(self, switch: str, views: list[View]) -> None:
        # The data path may still be whole; workers that find it broken say so.
        for live in live_on(self._office, views):
            reason = f"switch {switch} is out of reach"
            self._office.wish(live, reason, is_replan=True, avoid=(switch,))
