# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The changes of one job's view, one at a time: planned, proposed, committed, entered.

change request -> plan -> propose -> all ready -> commit -> all entered -> older views removed
An abort supersedes a change at any point before the last step. A graceful change request waits for
the end of the change before.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ..errors import (
    ControllerError,
    DatabaseError,
    JobError,
    NoRoomError,
    NoSwitchError,
)
from ..jobs.job import View, WorkerId
from ..jobs.live_job import LiveJob
from .view_change import Change, ChangeRequest, Limits
from .views import Views

if TYPE_CHECKING:
    from ..jobs.job_manager import JobManager

_LOGGER = logging.getLogger(__name__)


class _SupersededError(Exception):
    """A change is given up for one that is more pressing; never leaves this module."""


class JobChanges:
    """Runs the changes of one job in a task of its own."""

    def __init__(self, live: LiveJob, views: Views, manager: JobManager, limits: Limits) -> None:
        self._live = live
        self._views = views
        self._manager = manager
        self._limits = limits
        self._change_request = ChangeRequest()
        self._news = asyncio.Event()

    def change_request(
        self,
        reason: str,
        *,
        is_abort: bool = False,
        is_replan: bool = False,
        is_owed: bool = False,
        avoid: Iterable[str] = (),
    ) -> None:
        """Ask for another view."""
        self._change_request.add(
            reason, is_abort=is_abort, is_replan=is_replan, is_owed=is_owed, avoid=avoid
        )
        self.tell()

    def tell(self) -> None:
        """Look again at answers, losses and joins: one of them has changed."""
        self._news.set()

    async def run(self) -> None:
        """Carry out change requests until the job ends (then the task is cancelled)."""
        while True:
            await self._until(lambda: bool(self._change_request.reasons), is_idle=True)
            await asyncio.sleep(self._limits.coalesce_s)
            change_request, self._change_request = self._change_request, ChangeRequest()
            try:
                await self._perform(change_request)
            except _SupersededError:
                # Workers that were asked hold back until there is a commit, of the same kind.
                self._change_request.add(
                    is_abort=change_request.is_abort,
                    is_replan=change_request.is_replan,
                    is_owed=change_request.is_owed,
                    avoid=change_request.avoid,
                )

    async def _perform(self, change_request: ChangeRequest) -> None:
        live = self._live
        # After a controller's restart only those who are back can answer.
        await self._until(lambda: live.is_whole)
        if not live.welcomed:
            self._manager.end(live, f"no worker is left ({change_request.reason})")
            return
        if len(live.workers) < live.job.min_workers:
            if change_request.is_abort or change_request.is_owed:
                fewest = live.job.min_workers
                self._manager.end(
                    live, f"{change_request.reason}; fewer than {fewest} workers are left"
                )
            live.drain()
            return
        if not (
            change_request.is_abort
            or change_request.is_replan
            or change_request.is_owed
            or live.has_new_members
        ):
            return
        try:
            view = self._plan(change_request)
        except ControllerError as exc:
            await self._no_view(change_request, exc)
            return
        change = Change(view, change_request.is_abort, change_request.reason, asked=live.welcomed)
        live.begin_change(change)
        _LOGGER.info(
            "job %s: %s to generation %d: %s",
            live.name,
            "abort" if change_request.is_abort else "change",
            change.generation,
            change_request.reason,
        )
        try:
            await self._agree(change, change_request)
        except ControllerError as exc:
            await self._no_view(change_request, exc)
            return
        await self._until(lambda: not change.has_left_behind)
        self._finish(change)

    def _plan(self, change_request: ChangeRequest) -> View:
        live = self._live
        in_use = live.view
        view = self._views.plan(
            live.job,
            live.workers,
            avoid=change_request.avoid,
            replacing=in_use if change_request.is_abort else None,
            row_servers=self._manager.row_servers_of(live),
        )
        if (
            change_request.is_abort
            or in_use is None
            or not in_use.is_on_switch
            or view.is_on_switch
        ):
            return view
        # The switches may have room as soon as the view in use is gone.
        self._manager.spawn(self._remove(view))
        raise NoRoomError(view.reason)

    async def _agree(self, change: Change, change_request: ChangeRequest) -> None:
        """Bring a change from its plan to its commit."""
        installation: asyncio.Task[View] | None = None
        try:
            if not change.is_abort:
                # Workers pause between proposal and commit: everything slow comes before.
                installation = self._install(change.view)
                await self._until(installation.done)
                change.note_installed(installation.result())
            change_request.is_owed = True
            self._live.propose(change)
            await self._until_ready(change)
            if change.is_abort:
                # Its slots may be those of the view in use, where nobody sends any more.
                installation = self._install(change.view)
                await self._until(installation.done)
                change.note_installed(installation.result())
            self._settle(change)
        except BaseException:
            self._live.drop_change()
            self._manager.spawn(self._discard(change.view, installation))
            raise
        self._commit(change)
        change_request.is_owed = False

    def _settle(self, change: Change) -> None:
        if not self._live.settle(change):
            self.change_request("workers began tensors after one had left", is_abort=True)
            raise _SupersededError

    def _install(self, view: View) -> asyncio.Task[View]:
        installation = asyncio.create_task(self._views.install(view))
        installation.add_done_callback(lambda _: self.tell())
        return installation

    def _commit(self, change: Change) -> None:
        live = self._live
        live.commit(change)
        self._manager.announce(live, change)
        _LOGGER.info(
            "job %s runs in generation %d from tensor %d on with %d workers",
            live.name, change.generation, change.boundary, change.view.num_workers,
        )  # fmt: skip

    def _finish(self, change: Change) -> None:
        """Let joining workers in and give up what nobody uses any more.

        Only now: all others have completed every tensor before the boundary, so that no later
        abort can begin before the first tensor of those who join.
        """
        live = self._live
        leaving = live.finish_change()
        members = {worker.worker_id for worker in change.view.members}
        joined = [lease for lease in live.joining if lease.worker_id in members]
        if joined:
            self._manager.admit(live, joined, change.boundary)
        if live.joining:
            self.change_request("a worker joins")
        for view in leaving:
            self._manager.spawn(self._remove(view))
        self._manager.rebalance()

    async def _until_ready(self, change: Change) -> None:
        """Wait for all answers, of a worker that says nothing until it is lost.

        One that speaks and does not answer is broken. One that is silent may be in a long call that
        holds the interpreter lock: its connection and its lease tell whether it lives.
        """
        limits = self._limits
        limit_s = limits.abort_answer_s if change.is_abort else limits.graceful_answer_s
        loop = asyncio.get_running_loop()
        asked_s = loop.time()
        spoke_s: dict[WorkerId, float] = {}
        while True:
            end_s = loop.time() + limits.look_s
            if await self._until(lambda: not change.silent, limits.look_s):
                return
            if loop.time() - end_s >= limits.held_up_s:
                spoke_s.clear()  # we were held up ourselves: answers may lie here unread
                asked_s = loop.time()
            heard_s = {i: self._live.leases[i].heard_s for i in change.silent}
            for worker_id, at_s in heard_s.items():
                if at_s > asked_s:
                    spoke_s.setdefault(worker_id, at_s)
            broken = [i for i, at_s in heard_s.items() if at_s - spoke_s.get(i, at_s) >= limit_s]
            if not broken:
                continue
            if not change.is_abort:
                self.change_request(f"workers {broken} did not answer", is_abort=True)
                raise _SupersededError
            for worker_id in broken:
                lease = self._live.leases[worker_id]
                self._manager.lose(
                    self._live, lease, f"no answer for {limit_s:g} s during a change"
                )
            raise _SupersededError

    async def _no_view(self, change_request: ChangeRequest, error: ControllerError) -> None:
        """Go on without a change that cannot be; try again if the job cannot go on."""
        live = self._live
        _LOGGER.warning("job %s: no new view (%s): %s", live.name, change_request.reason, error)
        if not change_request.is_abort:
            if isinstance(error, DatabaseError):
                # Stopping all workers would not help: only the joining ones are refused.
                for lease in live.joining:
                    self._manager.refuse(live, lease, error)
            if change_request.is_owed or live.has_new_members:
                # With all workers stopped, the slots of the view in use are free.
                self._change_request.add(
                    *change_request.reasons, is_abort=True, is_owed=change_request.is_owed
                )
            elif change_request.is_replan and isinstance(error, DatabaseError):
                # Who wants the better view, such as a row server, asks once; the disk may get room.
                await asyncio.sleep(self._limits.retry_s)
                self._change_request.add(
                    *change_request.reasons, is_replan=True, avoid=change_request.avoid
                )
            return
        for lease in live.joining:
            self._manager.refuse(live, lease, error)
        loop = asyncio.get_running_loop()
        change_request.since_s = change_request.since_s or loop.time()
        if loop.time() - change_request.since_s >= self._limits.no_route_s:
            reason = f"no route for its data within {self._limits.no_route_s:g} s: {error}"
            is_refusal = isinstance(error, JobError | DatabaseError)
            self._manager.end(live, reason, error if is_refusal else NoSwitchError(reason))
            return
        await asyncio.sleep(self._limits.retry_s)
        # The switches to avoid may be the only ones left by now.
        self._change_request.since_s = change_request.since_s
        self._change_request.add(
            *change_request.reasons, is_abort=True, is_owed=change_request.is_owed
        )

    async def _discard(self, view: View, installation: asyncio.Task[View] | None) -> None:
        if installation is not None:
            await asyncio.wait((installation,))
            if not installation.cancelled() and (error := installation.exception()) is not None:
                _LOGGER.info("job %s: view given up: %s", self._live.name, error)
        await self._remove(view)

    async def _remove(self, view: View) -> None:
        try:
            await self._views.remove(view)
            # Its slots were not free before, however soon others have looked for some.
            self._manager.rebalance()
        except ControllerError as exc:
            _LOGGER.warning(
                "job %s: generation %d goes when its switches are back: %s",
                self._live.name, view.generation, exc,
            )  # fmt: skip

    async def _until(
        self, is_so: Callable[[], bool], limit_s: float | None = None, *, is_idle: bool = False
    ) -> bool:
        """Wait until it is so; False at the limit. Raises when an abort is requested meanwhile."""
        try:
            async with asyncio.timeout(limit_s):
                while True:
                    if not is_idle and self._is_superseded():
                        raise _SupersededError
                    if is_so():
                        return True
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            return False

    def _is_superseded(self) -> bool:
        change = self._live.change
        if self._change_request.is_abort:
            return True
        if change is None or change.is_committed:
            return False
        here = self._live.leases.keys()
        return not all(worker.worker_id in here for worker in change.view.members)
