# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What can happen to live jobs: they start, lose workers, change and end; and what is stored."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Final

from ...hostlib.control.session_api import session_pb2 as pb
from ..database.database import Database
from ..errors import ControllerError, WorkersMissingError
from ..rows.row_lease import RowLease
from ..rows.row_servers import RowServers
from ..switches.switch_session import SwitchSession
from ..views.join_reply import commit, join_reply
from ..views.view_change import Change, Limits
from ..views.view_changes import JobChanges
from ..views.views import Views
from .arrival import job_terms
from .job import Generation, RowServer, View, WorkerState
from .live_job import LiveJob
from .worker_lease import WorkerLease

_LOGGER = logging.getLogger(__name__)
_REBALANCE_S: Final = 0.3
"""Slots are shared again once for all jobs that start or end within this time."""


class JobManager:
    """All live jobs; one asyncio loop, no locks: state changes only between awaits."""

    def __init__(
        self,
        database: Database,
        links: Mapping[str, SwitchSession],
        views: Views,
        limits: Limits,
        row_servers: RowServers,
    ) -> None:
        self._database = database
        self._links = links
        self._views = views
        self._row_servers = row_servers
        self._live: dict[str, LiveJob] = {}
        self._limits = limits
        self._tasks: set[asyncio.Task[None]] = set()
        self._changes: dict[LiveJob, tuple[JobChanges, asyncio.Task[None]]] = {}
        self._rebalance_timer: asyncio.TimerHandle | None = None
        self._presence: Callable[[], pb.Controllers] | None = None
        self._end_turn = asyncio.Lock()  # whose end is stored next

    @property
    def live_jobs(self) -> list[LiveJob]:
        """All waiting and running jobs."""
        return list(self._live.values())

    def live_job(self, name: str) -> LiveJob | None:
        """Return the waiting or running job of this name."""
        return self._live.get(name)

    def live_on(self, views: list[View]) -> list[LiveJob]:
        """Return the live jobs of these views."""
        numbers = {view.job_number for view in views}
        return [live for live in self._live.values() if live.job_number in numbers]

    def add(self, live: LiveJob) -> None:
        """Take in a job."""
        self._live[live.name] = live

    def run(self, live: LiveJob) -> None:
        """Let a job that has started pass through views from now on."""
        changes = JobChanges(live, self._views, self, self._limits)
        task = asyncio.create_task(changes.run())
        task.add_done_callback(lambda task: self._changes_done(live, task))
        self._changes[live] = changes, task

    def change_request(
        self,
        live: LiveJob,
        reason: str,
        *,
        is_abort: bool = False,
        is_replan: bool = False,
        avoid: Iterable[str] = (),
    ) -> None:
        """Ask for another view of a running job."""
        if live in self._changes:
            changes, _ = self._changes[live]
            changes.change_request(reason, is_abort=is_abort, is_replan=is_replan, avoid=avoid)

    def resume(self, live: LiveJob, lease: WorkerLease, proposed: Generation) -> None:
        """Release a worker that waits for the commit of a change that is unknown here."""
        if proposed and live in self._changes:
            reason = f"worker {lease.worker_id} was asked by a controller that is gone"
            self._changes[live][0].change_request(reason, is_abort=True, is_owed=True)

    def tell(self, live: LiveJob) -> None:
        """Let the change under way look again."""
        if live in self._changes:
            self._changes[live][0].tell()

    async def start(self, live: LiveJob) -> None:
        """Install the first view of a job whose workers are all there, and admit them."""
        try:
            await self._start(live)
        except Exception as exc:
            self.end(live, f"the controller failed at its start: {exc!r}")
            raise

    async def _start(self, live: LiveJob) -> None:
        if live.has_ended or live.missing:
            self.end(live, f"worker {live.missing} left before the job ran")
            return
        try:
            view = self._views.plan(live.job, live.workers, row_servers=self.row_servers_of(live))
            digests = {worker_id: lease.digest for worker_id, lease in live.leases.items()}
            self._database.start_job(live.job_number, digests)
            view = await self._views.install(view)
        except ControllerError as exc:
            self.end(live, str(exc), exc)
            return
        if live.has_ended:
            return
        live.use_first(view)
        self.run(live)
        self.admit(live, list(live.leases.values()), 0)
        self._tell_row_servers(live)
        _LOGGER.info("job %s runs with %d workers", live.name, view.num_workers)
        self.rebalance()

    def lose(
        self, live: LiveJob, lease: WorkerLease, why: str, error: ControllerError | None = None
    ) -> None:
        """Take a lost worker out of its job; the others go on without it.

        `error` is the status that its stream ends with, if it still has one.
        """
        if not live.is_current(lease):
            return
        worker_id = lease.worker_id
        reason = f"worker {worker_id} lost ({why})"
        lease.send(_ended(f"{reason}; join again"))
        if error is not None:
            lease.send(error)
        self._take_out(live, lease, WorkerState.LOST)
        _LOGGER.warning("job %s: %s", live.name, reason)
        if live.view is None or not live.leases:
            self.end(live, reason)
            return
        self.change_request(live, reason, is_abort=live.is_member(worker_id))

    def leave(self, live: LiveJob, lease: WorkerLease, position: int | None = None) -> None:
        """Take a worker out that has finished; the job ends when the last one leaves."""
        if not live.is_current(lease):
            return
        worker_id = lease.worker_id
        self._take_out(live, lease, WorkerState.LEFT)
        if not live.leases:
            self.end(live, "completed" if live.has_started else "all workers left before it ran")
            return
        if not live.has_started:
            return
        is_member = live.is_member(worker_id)
        if position is not None and is_member:
            live.note_leave(position)
        # Without a position it gave tensors up, which the others cannot end with it.
        is_early = is_member and (position is None or position < live.boundary)
        self.change_request(live, f"worker {worker_id} left", is_abort=is_early)

    def refuse(self, live: LiveJob, lease: WorkerLease, error: ControllerError) -> None:
        """Send a worker away that waits to join."""
        if live.is_current(lease):
            lease.send(error)
            self._take_out(live, lease, WorkerState.LEFT)

    def end(
        self,
        live: LiveJob,
        reason: str,
        error: ControllerError | None = None,
        *,
        is_mismatch: bool = False,
    ) -> None:
        """End a job once: tell the workers, then take it from the switches and free its slots.

        `is_mismatch`: its workers submitted different tensors.
        """
        if live.has_ended:
            return
        live.end()
        if self._live.get(live.name) is live:
            del self._live[live.name]
        ended = _ended(reason, is_mismatch=is_mismatch)
        for lease in live.leases.values():
            # A stream that ends with a status may be taken up again: members hear it in words.
            lease.send(ended if lease.has_view or error is None else error)
            lease.close()
        self._row_servers.job_ended(live.name, reason, live.token)
        _LOGGER.info("job %s ended: %s", live.name, reason)
        changes = self._changes.pop(live, None)
        self.spawn(self._tear_down(live, reason, changes[1] if changes else None))

    def announce(self, live: LiveJob, change: Change) -> None:
        """Tell the workers and the row servers what was committed."""
        for worker_id in change.asked:
            self.send_commit(live, change, live.leases[worker_id])
        self._tell_row_servers(live)

    def row_servers_of(self, live: LiveJob) -> tuple[RowServer, ...]:
        """Return the row servers that the job's next view is planned for."""
        return self._row_servers.of_job(live.name)

    def greet(self, lease: RowLease) -> None:
        """Tell a row server that has attached of the view that its job uses."""
        live = self._live.get(lease.job_name)
        view = live.view if live is not None else None
        self._row_servers.show(lease, view)
        if live is not None and view is not None and not lease.is_known:
            self._ask_for_rows(live, lease.server)

    def _tell_row_servers(self, live: LiveJob) -> None:
        assert live.view is not None, "a job that runs has a view"
        for server in self._row_servers.tell(live.name, live.view):
            self._ask_for_rows(live, server)

    def _ask_for_rows(self, live: LiveJob, server: RowServer) -> None:
        """Have a view that is planned for a row server, too, unless it is on its way."""
        if live.change is not None and any(
            planned.without_rows == server for planned in live.change.view.row_servers
        ):
            return
        reason = f"row server {server.server_id} is attached"
        self.change_request(live, reason, is_replan=True)

    def send_commit(self, live: LiveJob, change: Change, lease: WorkerLease) -> None:
        """Tell a worker of a committed change."""
        lease.send(
            commit(
                change.view,
                lease.worker,
                self._links,
                boundary=change.boundary,
                source_worker=change.source_worker,
            )
        )

    def admit(self, live: LiveJob, leases: list[WorkerLease], boundary: int) -> None:
        """Let workers in."""
        for lease in leases:
            lease.note_view()
            self.send_join_reply(live, lease, boundary)

    def send_join_reply(self, live: LiveJob, lease: WorkerLease, boundary: int) -> None:
        """Tell a worker of the view in use, and of the first tensor that it takes part in."""
        assert live.view is not None, "a job that runs has a view"
        message = join_reply(
            live.view,
            lease.worker,
            self._links,
            boundary=boundary,
            lease_s=lease.lease_s,
            secret=lease.secret,
        )
        message.join_reply.barriers_released.extend(live.barriers.last_uses())
        if self._presence is not None:  # a worker that has joined knows where to go
            lease.send(pb.ControllerMessage(controllers=self._presence()))
        lease.send(message)

    def show_life(self, presence: Callable[[], pb.Controllers]) -> None:
        """Tell all workers that this controller lives, and where its standbys are.

        From now on, those that join are told, too.
        """
        self._presence = presence
        message = pb.ControllerMessage(controllers=presence())
        for live in self._live.values():
            live.send(message)

    def join_timed_out(self, live: LiveJob) -> None:
        """End a job whose workers have not all arrived."""
        missing = ", ".join(str(worker_id) for worker_id in live.missing)
        text = (
            f"job {live.name!r}: worker {missing} of {live.job.num_workers} never arrived "
            f"within {live.join_timeout_s:g} s; start all workers, check their addresses"
        )
        refused = [worker_id for worker_id in live.missing if worker_id in live.other_terms]
        if refused:
            wanted = "; ".join(f"worker {each} wanted {live.other_terms[each]}" for each in refused)
            text += f". Refused: {wanted}; the first worker said {job_terms(live.job)}"
        self.end(live, f"worker {missing} never arrived", WorkersMissingError(text))

    def release_barriers(self, live: LiveJob) -> None:
        """Release and store the barriers that all present workers have reached."""
        for name, use in live.release_barriers():
            if use:
                self._database.release_barrier(live.job_number, name, use)

    def rebalance(self) -> None:
        """Look soon whether running jobs should have more or fewer slots."""
        if self._rebalance_timer is None:
            loop = asyncio.get_running_loop()
            self._rebalance_timer = loop.call_later(_REBALANCE_S, self._rebalance)

    def spawn(self, work: Coroutine[object, object, None]) -> None:
        """Run something that outlives its cause; `settled` waits for it."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(self._task_done)

    async def settled(self) -> None:
        """Wait for jobs that start or end; a cancelled caller does not cancel them."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """Stop all changes; what they had begun and not committed is taken back."""
        if self._rebalance_timer is not None:
            self._rebalance_timer.cancel()
        tasks = [task for _, task in self._changes.values()]
        self._changes.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.settled()

    def _take_out(self, live: LiveJob, lease: WorkerLease, state: WorkerState) -> None:
        live.take_out(lease)
        if live.has_started:
            self._database.mark_worker(live.job_number, lease.worker_id, state)
            self.release_barriers(live)
        self.tell(live)

    async def _tear_down(
        self, live: LiveJob, reason: str, changes: asyncio.Task[None] | None
    ) -> None:
        if changes is not None and changes is not asyncio.current_task():
            changes.cancel()
            await asyncio.wait((changes,))
        for view in self._database.job(live.job_number).live_views:
            await self._views.remove(view)
        async with self._end_turn:
            # Each end is written to the disk; the loop has other work in between.
            await asyncio.sleep(0)
            self._database.end_job(live.job_number, reason)
        self.rebalance()

    def _rebalance(self) -> None:
        self._rebalance_timer = None
        for job in self._views.rebalance():
            live = self._live.get(job.name)
            if live is None or live.is_draining:
                continue
            if live.retreat.is_on(asyncio.get_running_loop().time()):
                continue  # it has just left switches that do not work
            self.change_request(live, "slots are shared again", is_replan=True)

    def _changes_done(self, live: LiveJob, task: asyncio.Task[None]) -> None:
        """End a job whose views cannot change any more: its workers might wait for a commit."""
        self._task_done(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.end(live, f"the controller failed at a change of its view: {error!r}")

    def _task_done(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOGGER.error("a job could not be carried on: %s", error, exc_info=error)


def _ended(reason: str, *, is_mismatch: bool = False) -> pb.ControllerMessage:
    return pb.ControllerMessage(job_ended=pb.JobEnded(reason=reason, is_mismatch=is_mismatch))
