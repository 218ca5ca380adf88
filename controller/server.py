# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A whole controller: database, switches, session API and operator API in one asyncio loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Coroutine
from pathlib import Path
from typing import Any, cast

import grpc

from ..hostlib.control.session_api import session_pb2_grpc
from ..hostlib.control.transfers_api import transfers_pb2_grpc
from ..hostlib.observing.metric import MetricSamples
from .api.operator_api import (
    activity_pb2_grpc,
    fabric_pb2_grpc,
    operator_pb2_grpc,
    schedule_pb2_grpc,
)
from .api.operator_service import OperatorService
from .api.session_service import SessionService
from .config import ControllerConfig
from .database.database import Database
from .errors import ConfigError, SwitchUnreachableError
from .fabric.fabric_state import FabricState
from .fabric.fabric_watch import FabricWatch
from .jobs.job import JobNumber
from .jobs.job_request import JobToken
from .jobs.membership import Membership
from .leadership.leader import FileLeader, Leader
from .leadership.leader_lease import LeaderLease
from .listening import STOP_GRACE_S, ApiListener, log_options
from .observing.activity_service import ActivityService
from .observing.controller_metrics import (
    ObservedJob,
    put_database,
    put_jobs,
    put_links,
    put_switches,
    put_transfers,
)
from .rows.row_sets import RowSets
from .switches.program import load_program
from .switches.switch_session import DesiredState, SwitchSession
from .transfers.schedule_service import ScheduleService
from .transfers.transfer_jobs import TransferJobs
from .transfers.transfer_service import TransferService
from .views.views import Views
from .web.state import PageState, page_state

_LOGGER = logging.getLogger(__name__)
_DATABASE_RETRY_S = 1.0
"""A database that cannot be written is tried again after this time."""


class ControllerServer:
    """Serves until its context is left; running jobs outlive it."""

    def __init__(self, config: ControllerConfig, lease: LeaderLease | None = None) -> None:
        """`lease` is held; None: the database is a file."""
        self.config = config
        self.address = ""
        """Where the APIs listen, with the port that was taken."""
        self.is_serving = False
        """Between the start of the APIs and the beginning of the end."""
        self._endpoint = ApiListener(config)
        self._program = load_program(config.variant, config.program_dir)
        if lease is not None:
            self._database = Database(lease.open_database())
            self._database.raise_term(lease.term)
            self.leader: Leader = lease
        elif isinstance(config.database, Path):
            self._database = Database(config.database)
            self.leader = FileLeader(self._database, config.election_id)
        else:
            raise ConfigError(f"database {config.database}: nobody has taken its lease")
        self.fabric_state = FabricState(config, self._database)
        # `views` comes later.
        row_sets = RowSets(lambda name: self.views.placements(name))  # noqa: PLW0108
        self.links = {
            switch.name: SwitchSession(
                switch,
                self._program,
                config,
                self.leader,
                DesiredState(
                    placements=lambda name=switch.name: self.views.placements(name),
                    fabric=lambda: self.fabric_state.fabric,
                    rows=lambda name=switch.name: row_sets.on_switch(name),
                ),
            )
            for switch in config.switches
        }
        for link in self.links.values():
            link.note_generation = self._database.note_generation
        self.views = Views(config, self._database, self.links, fabric=self.fabric_state.fabric_for)
        self.membership = Membership(config, self._database, self.links, self.views, row_sets)
        self.fabric_watch = FabricWatch(
            config, self._database, self.fabric_state, self.links, self._replan
        )
        self.membership.on_stall(self.fabric_watch.replanner.look_closer)
        self.transfers = TransferJobs(
            config.transfers,
            fabric=lambda: self.fabric_state.fabric,
            token_of=self._token_of,
            term=lambda: self.leader.term,
        )
        self.fabric_state.on_change(self.transfers.fabric_changed)

    @contextlib.asynccontextmanager
    async def serve(
        self, make_room: Callable[[], Awaitable[None]] | None = None
    ) -> AsyncGenerator[None]:
        """Run the controller; entered once switches are ready and the APIs listen.

        `make_room` is called before the APIs listen: a standby of ours has the address until then.
        """
        if make_room is None:
            log_options(self.config)
            self._endpoint.log_openness()
        tasks: list[asyncio.Task[None]] = []
        server: grpc.aio.Server | None = None
        try:
            self._database.store_switches(self.config.switches)
            self.membership.restore()
            tasks = [_begin(link.run(), f"switch {name}") for name, link in self.links.items()]
            timeout_s = self.config.connect_timeout_s
            await self._wait_ready(timeout_s)
            tasks.append(_begin(self.fabric_watch.run(), "the planning of trees"))
            tasks.append(_begin(self._tend_database(), "the care of the database"))
            self.membership.note_listening()
            if make_room is not None:
                await make_room()
            server = await self._listen()
            _LOGGER.info("sessions and operators are served at %s", self.address)
            self.is_serving = True
            yield
        finally:
            self.is_serving = False
            if not self.leader.is_leader:
                await _cancelled(tasks)  # calls of switches would be waited for
            self.transfers.close()
            await self.membership.close()
            if server is not None:
                await self._endpoint.take_waiting_joins(self.address)
                await server.stop(STOP_GRACE_S)
            await _cancelled(tasks)
            self._database.close()

    async def _wait_ready(self, timeout_s: float) -> None:
        """Wait for the switches; one that is out of reach does not keep the others from serving."""
        results = await asyncio.gather(
            *(link.wait_ready(timeout_s) for link in self.links.values()), return_exceptions=True
        )
        errors = [result for result in results if isinstance(result, BaseException)]
        for error in errors:
            if len(errors) == len(results) or not isinstance(error, SwitchUnreachableError):
                raise error
            _LOGGER.warning("starting without a switch: %s", error)

    async def _listen(self) -> grpc.aio.Server:
        def add_services(server: grpc.aio.Server) -> None:
            add_session = cast("Any", session_pb2_grpc).add_SwitchfoldSessionServicer_to_server
            add_session(SessionService(self.membership, self._endpoint.sources), server)
            add_operator = cast("Any", operator_pb2_grpc).add_OperatorServicer_to_server
            add_operator(
                OperatorService(
                    self._database,
                    self.membership,
                    self.links,
                    self.views,
                    self.leader,
                    cables=self.config.links,
                    sources=self._endpoint.sources,
                ),
                server,
            )
            add_fabric = cast("Any", fabric_pb2_grpc).add_FabricServicer_to_server
            add_fabric(self.fabric_watch.service, server)
            add_transfers = cast("Any", transfers_pb2_grpc).add_TransfersServicer_to_server
            add_transfers(TransferService(self.transfers, self._endpoint.sources), server)
            add_schedule = cast("Any", schedule_pb2_grpc).add_ScheduleServicer_to_server
            add_schedule(ScheduleService(self.transfers), server)
            add_activity = cast("Any", activity_pb2_grpc).add_ActivityServicer_to_server
            activity = ActivityService(self._database, self.fabric_state, self.links)
            add_activity(activity, server)

        server, self.address = await self._endpoint.listen(add_services)
        return server

    async def _tend_database(self) -> None:
        """Write missing records as soon as the database can be written again."""
        while True:
            await asyncio.sleep(_DATABASE_RETRY_S)
            if self._database.failure:
                self._database.check()

    def _token_of(self, job_name: str) -> JobToken | None:
        """Return the token of a session job, None if no such job lives."""
        live = self.membership.live_job(job_name)
        return None if live is None else live.token

    def put_metrics(self, samples: MetricSamples) -> None:
        """Put what is known now; no switch is called."""
        put_database(samples, self._database)
        put_jobs(samples, self._observed_jobs(), self.fabric_watch.meter.last)
        put_transfers(samples, self.transfers.jobs.values())
        put_switches(samples, self.links, self._database.live_views())
        put_links(samples, self.fabric_state, self.fabric_watch.meter)

    def show_state(self) -> PageState:
        """Return what is known now, for the web page; no switch is called."""
        return page_state(
            self._observed_jobs(),
            self.links,
            self.fabric_state,
            self.fabric_watch.meter,
            is_database_up=not self._database.failure,
        )

    def _observed_jobs(self) -> list[ObservedJob]:
        return [
            ObservedJob(job=job, live=self.membership.live_job(job.name))
            for job in self._database.jobs(is_live_only=True)
        ]

    def _replan(self, jobs: Collection[JobNumber], reason: str, is_broken: bool) -> None:
        """Have jobs pass to other trees."""
        for name in self.membership.replan(reason, jobs=jobs, is_broken=is_broken):
            _LOGGER.info("job %s gets other trees: %s", name, reason)


def _begin(work: Coroutine[Any, Any, None], what: str) -> asyncio.Task[None]:
    """Start what goes on until it is cancelled; whatever else ends it is logged at once."""
    task = asyncio.create_task(work, name=what)
    task.add_done_callback(_log_failure)
    return task


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _LOGGER.error(
            "%s has failed, and stands still until the controller is started again: %r",
            *(task.get_name(), error),
            exc_info=error,
        )


async def _cancelled(tasks: Collection[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
