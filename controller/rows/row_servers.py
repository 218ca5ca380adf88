# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Row servers of all jobs: they attach, set rows, hear of views, and are lost."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from ...hostlib.control.session_api import session_pb2 as pb
from ..config import ControllerConfig
from ..errors import (
    ControllerError,
    InvalidJobError,
    SwitchError,
    WorkerSilentError,
    WorkerTakenError,
)
from ..jobs.attachment import attached_row_server, attached_switch
from ..jobs.job import RowServer, ServerId, View
from ..jobs.job_request import NO_TOKEN, JobToken, spent_token, wrong_token
from ..jobs.worker_place import check_row_server
from ..switches.switch_session import SwitchSession
from ..views.join_reply import check_wire
from .row_lease import ROW_LEASE_S, RowLease, RowOutbox, RowSetName
from .row_messages import checked_rows, row_view
from .row_sets import RowSets

_LOGGER = logging.getLogger(__name__)
_IDENTITY_BYTES: Final = 16
_RETRY_S: Final = 1.0
"""A switch that did not take rows is tried again after this time, or when it is ready."""


class RowServers:
    """Keeps no jobs: callers name the view that a job uses."""

    def __init__(
        self, config: ControllerConfig, links: Mapping[str, SwitchSession], sets: RowSets
    ) -> None:
        self._config = config
        self._links = links
        self._sets = sets
        self._leases: dict[tuple[str, ServerId], RowLease] = {}
        self._tasks: dict[RowLease, asyncio.Task[None]] = {}
        """Those who install sets of rows."""
        self._presence: Callable[[], pb.Controllers] | None = None
        self._is_closing = False

    def of_job(self, job_name: str) -> tuple[RowServer, ...]:
        """Return the servers that a job's next view is planned for, without rows."""
        return tuple(lease.server for lease in self._of(job_name))

    def state_of(self, job_name: str, server: RowServer) -> str:
        """Return whether a server of a view is attached, detached or lost."""
        lease = self._leases.get((job_name, server.server_id))
        if lease is None or lease.server != server.without_rows:
            return "lost"
        return "attached" if lease.is_attached else "detached"

    def attach(
        self, request: pb.AttachRowServer, token: JobToken = NO_TOKEN
    ) -> tuple[RowLease, RowOutbox]:
        """Take in a server, or a new stream of one that is known; JobError if it is refused.

        `token`: the request's, which is the job's if the job lives.
        """
        switch = attached_switch(request, self._config.switches)
        server = attached_row_server(request, switch)
        check_row_server(server, self._config)
        check_wire(request, self._links[switch.name])
        if len(request.identity) != _IDENTITY_BYTES:
            raise InvalidJobError(
                f"row server {server.server_id}: an identity of {len(request.identity)} bytes; "
                f"{_IDENTITY_BYTES} random ones are needed"
            )
        key = request.job_name, server.server_id
        lease = self._leases.get(key)
        if lease is not None and not lease.token.is_same(token):
            raise WorkerTakenError(
                f"{_called(lease.server)} waits for job {request.job_name!r} with another job "
                "token, or may still come back; give every server its own id, or attach again in a "
                "moment"
            )
        if lease is not None and lease.is_attached and lease.server.identity != server.identity:
            raise WorkerTakenError(
                f"row server {server.server_id} of job {request.job_name!r} is attached from "
                f"{lease.server.address}:{lease.server.udp_port}, and it is another one; give "
                "every server its own id"
            )
        if lease is None or lease.server != server:
            old, lease = lease, RowLease(request.job_name, server, self._expired, token)
            if old is not None:
                old.end()
                self._give_up(old)
            self._leases[key] = lease
        outbox = lease.attach()
        if self._presence is not None:  # a server that is attached knows where to go
            lease.send(pb.RowControllerMessage(controllers=self._presence()))
        return lease, outbox

    def show_life(self, presence: Callable[[], pb.Controllers]) -> None:
        """Tell all servers that this controller lives, and where its standbys are.

        From now on, those that attach are told, too.
        """
        self._presence = presence
        message = pb.RowControllerMessage(controllers=presence())
        for lease in self._leases.values():
            lease.send(message)

    def expect(self, job_name: str, view: View, token: JobToken = NO_TOKEN) -> None:
        """Keep the rows of servers that an earlier controller knew until they are back."""
        for server in view.row_servers:
            if server.switch not in self._links:
                continue  # it is not configured any more
            lease = RowLease(job_name, server.without_rows, self._expired, token)
            lease.view = view
            self._leases[job_name, server.server_id] = lease
            if server.num_rows:
                self._sets.expect(view.generation, server.server_id)

    def note_listening(self) -> None:
        """Count from now on the time of servers that have not come back."""
        for lease in self._leases.values():
            if not lease.is_attached:
                lease.renew()

    def tell(self, job_name: str, view: View) -> list[RowServer]:
        """Tell all servers of a job of a view; return those that it was not planned for."""
        unknown: list[RowServer] = []
        for lease in self._of(job_name):
            self.show(lease, view)
            if not lease.is_known:
                unknown.append(lease.server)
        return unknown

    def show(self, lease: RowLease, view: View | None) -> None:
        """Tell a server of the view that its job uses; its rows of an older view are over."""
        if lease.view is not None and (view is None or lease.view.generation != view.generation):
            self._forget_rows(lease)
        lease.view = view
        lease.send(row_view(lease.server, view, self._links))

    def admit(self, job_name: str, token: JobToken) -> None:
        """Send the servers away that wait for a job of this name and have not its token."""
        for lease in self._of(job_name):
            if not lease.token.is_same(token):
                who = _called(lease.server)
                self._send_away(lease, wrong_token(job_name, who, lease.token, token))

    def job_ended(self, job_name: str, reason: str, token: JobToken = NO_TOKEN) -> None:
        """Tell the servers of a job that it is over; they stay, for the next job of its name.

        Those of a job whose token opens no other one do not stay.
        """
        for lease in self._of(job_name):
            self._forget_rows(lease)
            lease.view = None
            lease.send(pb.RowControllerMessage(job_ended=pb.JobEnded(reason=reason)))
            if token.is_set and not token.run:
                who = _called(lease.server)
                self._send_away(lease, spent_token(job_name, who, job_name, is_live=False))

    def set_rows(self, lease: RowLease, message: pb.SetRows) -> None:
        """Have these rows of a server on all switches of its tree, and tell it when they are."""
        view = lease.view
        if view is None or message.generation != view.generation:
            lease.send(row_view(lease.server, view, self._links))
            return
        rows = checked_rows(message, lease.server, lease.place)
        self._sets.put(view.generation, lease.server_id, rows)
        lease.wanted = RowSetName(view.generation, message.number)
        self._install(lease)

    def heard(self, lease: RowLease) -> None:
        """Renew the lease of a server that has sent something."""
        if not self._is_closing:
            lease.renew()

    def is_current(self, lease: RowLease) -> bool:
        """Whether nobody has taken the server's place."""
        return self._leases.get((lease.job_name, lease.server_id)) is lease

    def stream_ended(self, lease: RowLease, outbox: RowOutbox) -> None:
        """Note that a stream broke; the server may come back for a while."""
        if lease.detach(outbox) and (self._is_closing or not self.is_current(lease)):
            lease.release()

    def switch_ready(self) -> None:
        """Try again where a switch was missing."""
        for lease in self._tasks:
            lease.news.set()

    async def close(self, error: ControllerError) -> None:
        """End all streams and stop all work; what is on the switches stays."""
        self._is_closing = True
        for lease in self._leases.values():
            lease.release()
            lease.send(error)
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _of(self, job_name: str) -> Iterable[RowLease]:
        return [lease for lease in self._leases.values() if lease.job_name == job_name]

    def _send_away(self, lease: RowLease, error: ControllerError) -> None:
        """Forget a server that has no rows."""
        _LOGGER.info("row server is sent away: %s", error)
        lease.end(error)
        del self._leases[lease.job_name, lease.server_id]

    def _expired(self, lease: RowLease) -> None:
        """Give up the rows of a server that is gone; the job's next view is without it."""
        _LOGGER.warning("job %s: row server %d is lost", lease.job_name, lease.server_id)
        lease.send(
            WorkerSilentError(
                f"row server {lease.server_id} of job {lease.job_name!r} was silent for "
                f"{ROW_LEASE_S:g} s (its lease); a Heartbeat is due every 2 s: attach again, and "
                "see whether its process was stopped or its machine is overloaded"
            )
        )
        del self._leases[lease.job_name, lease.server_id]
        self._give_up(lease)

    def _give_up(self, lease: RowLease) -> None:
        """Take a server's rows off the switches."""
        self._forget_rows(lease)
        self._install(lease)

    def _forget_rows(self, lease: RowLease) -> None:
        lease.wanted = None
        if lease.view is not None:
            self._sets.forget(lease.view.generation, lease.server_id)

    def _install(self, lease: RowLease) -> None:
        """Bring what a server has set, or no longer has, onto its switches."""
        if self._is_closing:
            return
        lease.news.set()
        before = self._tasks.get(lease)
        if before is None or before.done():
            task = asyncio.create_task(self._run(lease))
            task.add_done_callback(lambda task: self._done(lease, task))
            self._tasks[lease] = task

    async def _run(self, lease: RowLease) -> None:
        """Write until the newest set is on all switches, then tell the server."""
        is_late = False
        while lease.news.is_set():
            lease.news.clear()
            wanted, tree = lease.wanted, lease.view and lease.view.tree_of(lease.server_id)
            links = [self._links[node.switch] for node in tree.nodes] if tree else []
            results = await asyncio.gather(
                *(link.apply_rows() for link in links), return_exceptions=True
            )
            errors = [result for result in results if isinstance(result, BaseException)]
            if not errors:
                if wanted is not None and wanted is lease.wanted:
                    lease.send(_installed(wanted))
                continue
            if not isinstance(errors[0], SwitchError):
                raise errors[0]
            if not is_late:
                is_late = True
                _LOGGER.warning("job %s: rows are late: %s", lease.job_name, errors[0])
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_RETRY_S):
                    await lease.news.wait()
            lease.news.set()

    def _done(self, lease: RowLease, task: asyncio.Task[None]) -> None:
        if self._tasks.get(lease) is task:
            del self._tasks[lease]
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOGGER.error("job %s: rows are not written", lease.job_name, exc_info=error)


def _called(server: RowServer) -> str:
    return f"row server {server.server_id} at {server.address}"


def _installed(wanted: RowSetName) -> pb.RowControllerMessage:
    return pb.RowControllerMessage(
        rows_installed=pb.RowsInstalled(generation=wanted.generation, number=wanted.number)
    )
