# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Membership: who is in which job, from the first JoinRequest to the end of the job."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Mapping
from typing import Final

from ...hostlib.control.session_api import session_pb2 as pb
from ..config import ControllerConfig
from ..database.database import Database
from ..errors import (
    ControllerError,
    ControllerStoppingError,
    InvalidJobError,
    NoRoomError,
    RoleError,
    SourceLimitError,
    UnknownJobError,
    WorkerSilentError,
    WorkerTakenError,
)
from ..rows.row_lease import RowLease, RowOutbox
from ..rows.row_servers import RowServers
from ..rows.row_sets import RowSets
from ..switches.switch_session import SwitchSession
from ..views.join_reply import check_compatible
from ..views.row_places import TRANSPOSED_HAS_NO_ROWS
from ..views.view_change import Limits
from ..views.views import Views
from .arrival import (
    check_joining,
    check_waiting,
    join_timeout_s,
    lease_s,
    proved_token,
    requested_job,
    running_refusal,
)
from .attachment import attached_worker, worker_switch
from .diagnosis import Diagnosis
from .job import Job, JobNumber, PathChoice, View, ViewState, Worker
from .job_manager import JobManager
from .job_request import JobToken
from .live_job import LiveJob
from .restoration import reason_to_end, restored_job
from .worker_lease import Outbox, WorkerLease
from .worker_place import check_peers, check_place

_LOGGER = logging.getLogger(__name__)
RETURN_S: Final = 2.0
"""After a restart of the controller, living workers are back within this time."""
_BETWEEN_JOINS_S: Final = 0.001


class Membership:
    """Takes messages of workers, operators and switches, and lets the manager act on them."""

    def __init__(
        self,
        config: ControllerConfig,
        database: Database,
        links: Mapping[str, SwitchSession],
        views: Views,
        row_sets: RowSets,
    ) -> None:
        self._config = config
        self._database = database
        self._links = links
        self._views = views
        self._row_servers = RowServers(config, links, row_sets)
        self._manager = JobManager(
            database, links, views, Limits(no_route_s=config.no_route_s), self._row_servers
        )
        self._restored_s = float("-inf")
        self._is_closing = False
        self._turn = asyncio.Lock()  # whose worker joins next
        views.on_switch_lost_state(self._switch_lost_state)
        views.on_switch_gone(self._switch_gone)
        views.on_switch_ready(self._switch_ready)
        self._diagnosis = Diagnosis(config, links, self._manager)
        self._diagnosis.on_answer(self._switch_ready)

    def on_stall(self, look_at_links: Callable[[], None]) -> None:
        """Call this when workers of a job on several switches report a stall."""
        self._diagnosis.on_stall(look_at_links)

    def restore(self) -> None:
        """Restore the running jobs of the database; their workers have some time to come back."""
        for job in self._database.jobs(is_live_only=True):
            digests = self._database.resume_digests(job.job_number)
            reason = reason_to_end(job, self._links, digests)
            if reason is not None:
                self._database.end_job(job.job_number, reason)
                continue
            for view in job.live_views:
                if view.state is ViewState.PLANNED:  # no worker has heard of it but as a proposal
                    self._database.forget_view(view.generation)
            job = self._database.job(job.job_number)  # noqa: PLW2901 - without those views
            barriers = self._database.released_barriers(job.job_number)
            token = self._database.job_token(job.job_number)
            live, change_request = restored_job(
                job, barriers, digests, self._lease_expired, self._config.lease_s, token=token
            )
            for lease in live.leases.values():
                lease.renew(self._config.resume_grace_s)
            self._manager.add(live)
            self._manager.run(live)
            if live.view is not None:
                self._row_servers.expect(job.name, live.view, token)
            if change_request.reasons:
                self._manager.change_request(
                    live, change_request.reason, is_abort=change_request.is_abort
                )
            _LOGGER.info("job %s goes on (generation %d)", job.name, job.generation)

    def note_listening(self) -> None:
        """Count from now the time that members of restored jobs need to come back."""
        self._row_servers.note_listening()
        self._restored_s = asyncio.get_running_loop().time()

    def live_job(self, name: str) -> LiveJob | None:
        """Return the waiting or running job of this name."""
        return self._manager.live_job(name)

    async def enter(
        self, join_request: pb.JoinRequest, source: str = ""
    ) -> tuple[LiveJob, WorkerLease, Outbox]:
        """Take in a worker that sends a JoinRequest, or one that comes back with `resume`.

        `source` is where it calls from, "" for a Unix socket.
        """
        is_resume = join_request.HasField("resume")
        if not is_resume:
            await self._turn_to_join()
        self.check_open()
        live = self._manager.live_job(join_request.job_name)
        who = f"worker {join_request.worker_id} at {join_request.address}"
        if is_resume:
            return self._resume(live, join_request, who)
        # Before all else: a stranger learns nothing of the job, and ends none that is deserted.
        self._proved(join_request, who)
        switch = worker_switch(
            join_request, self._config.switches, lambda name: self._links[name].is_ready
        )
        limit_s = min(join_timeout_s(join_request, self._config), self._config.no_route_s)
        if await self._links[switch.name].wait_back(limit_s):
            return await self.enter(join_request, source)  # all of the above may have changed
        worker = attached_worker(join_request, switch)
        check_place(worker, self._config)
        check_compatible(join_request, self._links[switch.name])
        if live is not None and live.has_started:
            if join_request.is_joining or not await self._is_deserted(live):
                return self._join(live, join_request, worker)
            self._manager.end(live, f"worker {worker.worker_id} was started again")
        return self._wait(join_request, worker, who, source)

    def attach_row_server(self, request: pb.AttachRowServer) -> tuple[RowLease, RowOutbox]:
        """Take in a row server; JobError if it is refused."""
        self.check_open()
        live = self._manager.live_job(request.job_name)
        who = f"row server {request.server_id} at {request.address}"
        token = self._proved(request, who)
        if live is not None and live.job.path is PathChoice.TRANSPOSED:
            raise InvalidJobError(f"{who}, job {request.job_name!r}: {TRANSPOSED_HAS_NO_ROWS}")
        lease, outbox = self._row_servers.attach(request, token)
        self._manager.greet(lease)
        return lease, outbox

    @property
    def row_servers(self) -> RowServers:
        """The row servers of all jobs."""
        return self._row_servers

    def check_open(self) -> None:
        """Raise ControllerStoppingError unless workers may still come."""
        if self._is_closing:
            raise _stopping()

    async def _turn_to_join(self) -> None:
        """Let workers join one by one, with a moment in between for all other work of the loop.

        A join takes the loop some milliseconds. If all that have arrived joined in one turn of the
        loop, no call would be taken and no heartbeat read for seconds.
        """
        async with self._turn:
            await asyncio.sleep(0.0 if self._is_closing else _BETWEEN_JOINS_S)
            # Slots of jobs that are just ending count as free.
            await self._manager.settled()

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

    def heard(self, lease: WorkerLease) -> None:
        """Renew the lease of a worker that has sent something."""
        if not self._is_closing:
            lease.hear()

    def reach_barrier(self, live: LiveJob, lease: WorkerLease, barrier: pb.Barrier) -> None:
        """Note a worker at a barrier; one that was released while it was away is answered again."""
        if live.barriers.reach((barrier.name, barrier.use), lease.worker_id):
            released = pb.BarrierReleased(name=barrier.name, use=barrier.use)
            lease.send(pb.ControllerMessage(barrier_released=released))
        else:
            self._manager.release_barriers(live)

    def leave(self, live: LiveJob, lease: WorkerLease, message: pb.Leave) -> None:
        """Take a worker out that has finished."""
        position = message.position if message.HasField("position") else None
        self._manager.leave(live, lease, position)

    def view_ready(self, live: LiveJob, lease: WorkerLease, ready: pb.ViewReady) -> None:
        """Note how far a worker is."""
        change = live.change
        if change is not None and change.generation == ready.generation:
            change.note_ready(lease.worker_id, ready.position)
            self._manager.tell(live)

    def view_entered(self, live: LiveJob, lease: WorkerLease, entered: pb.ViewEntered) -> None:
        """Note that a worker has left all views before this one."""
        change = live.change
        if change is not None and change.is_committed and change.generation == entered.generation:
            change.note_entered(lease.worker_id)
            self._manager.tell(live)

    def stalled(self, live: LiveJob, lease: WorkerLease, stalled: pb.Stalled) -> None:
        """Find out why a worker that sends gets no answer, and repair what the controller can."""
        view = live.view
        if view is None:
            return
        if live.change is not None and live.change.is_abort and not live.change.is_committed:
            return  # the repair is under way
        if live.is_draining:
            fewest = live.job.min_workers
            self._manager.end(live, f"fewer than {fewest} workers are left")
            return
        now_s = asyncio.get_running_loop().time()
        missing = set(stalled.missing_workers)
        if now_s - self._restored_s > RETURN_S:
            for worker_id in missing & live.leases.keys():
                if live.leases[worker_id].is_expected:
                    self._manager.lose(live, live.leases[worker_id], "not back, and missed")
        if gone := sorted(missing - live.leases.keys()):
            self._manager.change_request(live, f"worker {gone} is gone and missed", is_abort=True)
            return
        self._diagnosis.report(live, view, lease, stalled, now_s)

    def stream_ended(self, live: LiveJob, lease: WorkerLease, outbox: Outbox) -> None:
        """Note that a stream broke: a worker that knows a view may come back, others are gone."""
        if not lease.detach(outbox) or live.has_ended or self._is_closing:
            return
        if live.has_started and lease.has_view:
            lease.renew(self._config.reconnect_grace_s)
        elif live.has_started:
            self._manager.lose(live, lease, "connection broke")
        else:
            self._manager.leave(live, lease)

    def replan(
        self,
        reason: str,
        *,
        jobs: Collection[JobNumber] | None = None,
        is_broken: bool = False,
    ) -> list[str]:
        """Give running jobs better views and return their names; all jobs when `jobs` is None.

        They change at their next tensor boundary, or redo the tensors in flight when their trees
        are broken.
        """
        chosen = [
            live
            for live in self._manager.live_jobs
            if live.view and (jobs is None or live.job_number in jobs)
        ]
        for live in chosen:
            self._manager.change_request(live, reason, is_abort=is_broken, is_replan=True)
        return [live.name for live in chosen]

    def show_life(self, presence: Callable[[], pb.Controllers]) -> None:
        """Tell workers and row servers that this controller lives, and where its standbys are."""
        self._manager.show_life(presence)
        self._row_servers.show_life(presence)

    async def stop_job(self, name: str, reason: str) -> Job:
        """End a job for the operator and return it."""
        live = self._manager.live_job(name)
        if live is None:
            raise UnknownJobError(f"no live job {name!r}; see 'switchfold job list'")
        self._manager.end(live, reason)
        await self._manager.settled()
        return self._database.job(live.job_number)

    async def settled(self) -> None:
        """Wait until jobs that start or end have done so."""
        await self._manager.settled()

    async def close(self) -> None:
        """End all streams; running jobs stay in the database and on the switches."""
        self._is_closing = True
        await self._manager.settled()
        await self._manager.close()
        await self._row_servers.close(_stopping())
        for live in self._manager.live_jobs:
            live.release_timers()
            live.send(_stopping())

    def _proved(self, request: pb.JoinRequest | pb.AttachRowServer, who: str) -> JobToken:
        return proved_token(request, who, self._manager.live_job, self._database)

    def _resume(
        self, live: LiveJob | None, join_request: pb.JoinRequest, who: str
    ) -> tuple[LiveJob, WorkerLease, Outbox]:
        resume = join_request.resume
        lease = live.leases.get(join_request.worker_id) if live is not None else None
        if live is None or live.job_number != resume.job_number:
            raise UnknownJobError(
                f"job {join_request.job_name!r} with generation {resume.generation} is not running "
                "here any more; start the job again"
            )
        self._proved(join_request, who)
        place = (join_request.address, join_request.udp_port)
        if lease is None or (lease.worker.address, lease.worker.udp_port) != place:
            raise UnknownJobError(
                f"job {join_request.job_name!r} goes on without worker {join_request.worker_id} at "
                f"{join_request.address}:{join_request.udp_port}; join again with is_joining"
            )
        if not lease.is_secret(resume.secret):
            raise RoleError(
                f"job {join_request.job_name!r}: this is not the secret that worker "
                f"{join_request.worker_id} got with its first JoinReply; only that worker may take "
                "up its stream"
            )
        outbox = lease.attach(lease_s(join_request, self._config))
        live.returned.set()
        self._manager.send_join_reply(live, lease, live.boundary)
        change = live.change
        if change is not None and change.is_committed:
            if lease.worker_id in change.has_left_behind:
                self._manager.send_commit(live, change, lease)
        elif change is not None and change.is_proposed:
            lease.send(change.proposal())
        if change is None or change.generation < resume.proposed:
            self._manager.resume(live, lease, resume.proposed)
        self._manager.tell(live)
        _LOGGER.info("job %s: worker %d is back", join_request.job_name, join_request.worker_id)
        return live, lease, outbox

    def _join(
        self, live: LiveJob, join_request: pb.JoinRequest, worker: Worker
    ) -> tuple[LiveJob, WorkerLease, Outbox]:
        """Let a worker wait for a tensor boundary of a running job."""
        old = live.leases.get(join_request.worker_id)
        if not join_request.is_joining:
            if old is not None and not old.is_attached:
                self._check_same_host(old, worker)
                self._manager.lose(live, old, "was started again")
            raise running_refusal(live, join_request)
        check_joining(live, join_request)
        check_peers(worker, (one for one in live.workers if one.worker_id != worker.worker_id))
        if old is not None:
            self._check_same_host(old, worker)
        lease = self._new_lease(live, join_request, worker)
        # Before it has the place: what cannot be stored is refused.
        self._database.store_resume_digest(live.job_number, worker.worker_id, lease.digest)
        if old is not None:
            self._manager.lose(live, old, "was started again")
        live.add(lease)
        outbox = lease.attach(lease.lease_s)
        self._manager.change_request(live, f"worker {worker.worker_id} joins")
        return live, lease, outbox

    def _wait(
        self, join_request: pb.JoinRequest, worker: Worker, who: str, source: str
    ) -> tuple[LiveJob, WorkerLease, Outbox]:
        """Let a worker wait for the others of its job; the first one makes the job."""
        request = requested_job(join_request)
        live = self._manager.live_job(request.name)
        token = self._proved(join_request, who)  # it may be another job than before
        if live is None:
            self._check_waiting_jobs(source)
            job = self._database.create_job(request)
            try:
                # Nothing is leased for a job that waits; one without any prospect is refused here.
                self._views.check(job, [worker])
                if token.is_set:
                    self._database.store_job_token(job.job_number, token)
            except ControllerError as exc:
                self._database.end_job(job.job_number, str(exc))
                raise
            timeout_s = join_timeout_s(join_request, self._config)
            live = LiveJob(job, timeout_s, token=token, source=source)
            live.wait_for_workers(self._manager.join_timed_out)
            self._manager.add(live)
            self._row_servers.admit(job.name, token)
            _LOGGER.info("job %s waits for its workers: %s", job.name, request)
            if not token.is_set:
                _LOGGER.info("job %s has no job token: it is open to all workers", job.name)
        else:
            check_waiting(live, request, join_request)
            check_peers(worker, live.workers)
        lease = self._new_lease(live, join_request, worker)
        live.add(lease)
        outbox = lease.attach(lease.lease_s)
        if not live.missing:
            live.start()
            self._manager.spawn(self._manager.start(live))
        return live, lease, outbox

    def _check_waiting_jobs(self, source: str) -> None:
        most = self._config.max_waiting_jobs
        waiting = [live.source for live in self._manager.live_jobs if not live.has_started]
        remedy = "start their missing workers, or end them with 'switchfold job stop'"
        if len(waiting) >= most:
            raise NoRoomError(f"{most} jobs wait for workers, and no more may; {remedy}")
        share = self._config.max_waiting_jobs_per_source or max(1, most // 2)
        if source and waiting.count(source) >= share:
            raise SourceLimitError(
                f"{share} jobs of callers at {source} wait for workers, and no more of one address"
                f" may; {remedy}, or raise max_waiting_jobs_per_source of the controller"
            )

    def _check_same_host(self, old: WorkerLease, worker: Worker) -> None:
        """Keep the place of a worker whose connection just broke from strangers.

        A process that was started again on its host gets the place at once.
        """
        if worker.address != old.worker.address:
            raise WorkerTakenError(
                f"worker {worker.worker_id} at {old.worker.address} may still come back; "
                f"{worker.address} gets its place when its grace is over: join again in a moment"
            )

    def _new_lease(
        self, live: LiveJob, join_request: pb.JoinRequest, worker: Worker
    ) -> WorkerLease:
        return WorkerLease(
            worker,
            lambda lease: self._lease_expired(live, lease),
            lease_s(join_request, self._config),
        )

    def _lease_expired(self, live: LiveJob, lease: WorkerLease) -> None:
        if not lease.is_attached:
            error = None
            why = "connection broke"
        else:
            why = f"no heartbeat for {lease.lease_s:g} s"
            error = WorkerSilentError(
                f"worker {lease.worker_id} of job {live.name} was silent for "
                f"{lease.lease_s:g} s (its lease); a Heartbeat is due at least every third "
                "of that: join again, and see whether its process was stopped or its machine is "
                "overloaded"
            )
        if live.has_started:
            self._manager.lose(live, lease, why, error)
        else:
            if error is not None:
                lease.send(error)
            self._manager.leave(live, lease)

    def _switch_ready(self, switch: str) -> None:
        now_s = asyncio.get_running_loop().time()
        for live in self._manager.live_jobs:
            if live.retreat.end(switch) and live.stalls.is_lasting(now_s):
                self._manager.change_request(live, f"switch {switch} is there again", is_abort=True)
        self._row_servers.switch_ready()
        self._manager.rebalance()

    def _switch_lost_state(self, switch: str, views: list[View]) -> None:
        for live in self._manager.live_on(views):
            self._manager.change_request(
                live, f"switch {switch} came back without its tables", is_abort=True
            )

    def _switch_gone(self, switch: str, views: list[View]) -> None:
        # The data path may still be whole; workers that find it broken say so.
        for live in self._manager.live_on(views):
            reason = f"switch {switch} is out of reach"
            self._manager.change_request(live, reason, is_replan=True, avoid=(switch,))


def _stopping() -> ControllerStoppingError:
    return ControllerStoppingError("the controller is being stopped; join again later")
