# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A whole controller: database, switches, session API and operator API in one asyncio loop."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
from collections.abc import AsyncGenerator, Collection
from typing import Any, cast

import grpc

from ..hostlib.control.session_api import session_pb2, session_pb2_grpc
from ..hostlib.credentials import Credentials, CredentialsError
from ..hostlib.credentials.callers import CallerCertificates
from ..hostlib.credentials.grpc_channels import server_credentials
from .api.access import AccessGuard, Tokens
from .api.endpoint import is_taken, with_port
from .api.keepalive import probe_connections, server_options
from .api.operator_api import fabric_pb2, fabric_pb2_grpc, operator_pb2, operator_pb2_grpc
from .api.operator_service import OperatorService
from .api.request_check import MAX_MESSAGE_BYTES
from .api.request_guard import RequestGuard
from .api.session_service import SessionService
from .api.waiting_calls import take_waiting_joins, waiting_call_options
from .config import ControllerConfig
from .database.database import Database
from .errors import ConfigError, ListenError, SwitchUnreachableError
from .fabric.fabric_state import FabricState
from .fabric.fabric_watch import FabricWatch
from .jobs.job import JobNumber
from .jobs.membership import Membership
from .rows.row_sets import RowSets
from .switches.program import load_program
from .switches.switch_session import SwitchSession
from .views.views import Views

_LOGGER = logging.getLogger(__name__)
_STOP_GRACE_S = 2.0
_DATABASE_RETRY_S = 1.0
"""A database that cannot be written is tried again after this time."""
SERVICES = tuple(
    service
    for file in (session_pb2, operator_pb2, fabric_pb2)
    for service in file.DESCRIPTOR.services_by_name.values()
)
"""All that a controller serves."""


class ControllerServer:
    """Serves until its context is left; running jobs outlive it."""

    def __init__(self, config: ControllerConfig) -> None:
        if config.credentials is None and not config.insecure:
            raise ConfigError(
                "no credentials: make certificates with 'switchfold certs init' and 'issue --role "
                "controller', and give their folder with --credentials or in the file; or choose "
                "--insecure (insecure = true), without TLS"
            )
        self.config = config
        self.address = ""
        """Where the APIs listen, with the port that was taken."""
        self._tokens = Tokens(
            worker=config.token,
            operator=config.operator_token,
            read_only=config.read_only_token,
        )
        self._credentials = None if config.credentials is None else Credentials(config.credentials)
        self._program = load_program(config.variant, config.program_dir)
        self._database = Database(config.database)
        self.fabric_state = FabricState(config, self._database)
        # `views` comes later.
        row_sets = RowSets(lambda name: self.views.placements(name))  # noqa: PLW0108
        self.links = {
            switch.name: SwitchSession(
                switch,
                self._program,
                config,
                placements=lambda name=switch.name: self.views.placements(name),
                fabric=lambda: self.fabric_state.fabric,
                rows=lambda name=switch.name: row_sets.on_switch(name),
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

    @contextlib.asynccontextmanager
    async def serve(self) -> AsyncGenerator[None]:
        """Run the controller; entered once switches are ready and the APIs listen."""
        for field in dataclasses.fields(self.config):
            value = getattr(self.config, field.name)
            shown = "***" if field.name.endswith("token") and value else value
            _LOGGER.info("option %s = %s", field.name, shown)
        if self._credentials is None:
            _LOGGER.warning(
                "INSECURE: without credentials, nothing is encrypted and nobody proves who he is; "
                "make certificates with 'switchfold certs'"
            )
        if self._credentials is None and not self._tokens.are_set:
            _LOGGER.warning(
                "no token is set: whoever reaches %s can join, look at and end jobs; set token and "
                "operator_token", self.config.listen,
            )  # fmt: skip
        tasks: list[asyncio.Task[None]] = []
        server: grpc.aio.Server | None = None
        try:
            self._database.store_switches(self.config.switches)
            self.membership.restore()
            tasks = [asyncio.create_task(link.run()) for link in self.links.values()]
            timeout_s = self.config.connect_timeout_s
            await self._wait_ready(timeout_s)
            tasks.append(asyncio.create_task(self.fabric_watch.run()))
            tasks.append(asyncio.create_task(self._tend_database()))
            self.membership.note_listening()
            server = await self._listen()
            _LOGGER.info("sessions and operators are served at %s", self.address)
            yield
        finally:
            await self.membership.close()
            if server is not None:
                await self._take_waiting_joins()
                await server.stop(_STOP_GRACE_S)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._database.close()

    async def _take_waiting_joins(self) -> None:
        token = self.config.token or self.config.operator_token
        try:
            async with asyncio.timeout(_STOP_GRACE_S):
                await take_waiting_joins(self.address, token, self._credentials)
        except (TimeoutError, CredentialsError) as exc:
            _LOGGER.warning("workers that wait may not learn that this controller stops: %s", exc)

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
        ours = self._credentials
        callers = None if ours is None else CallerCertificates(ours)
        server = grpc.aio.server(
            interceptors=(AccessGuard(self._tokens, SERVICES, callers), RequestGuard()),
            options=[
                *server_options(self.config.host_gone_s),
                *waiting_call_options(),
                ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
            ],
        )
        add_session = cast("Any", session_pb2_grpc).add_SwitchfoldSessionServicer_to_server
        add_session(SessionService(self.membership), server)
        add_operator = cast("Any", operator_pb2_grpc).add_OperatorServicer_to_server
        add_operator(
            OperatorService(
                self._database, self.membership, self.links, self.views, self.config.links
            ),
            server,
        )
        add_fabric = cast("Any", fabric_pb2_grpc).add_FabricServicer_to_server
        add_fabric(self.fabric_watch.service, server)
        listen = self.config.listen
        refusal = ListenError(
            f"cannot listen at {listen}: the address is taken or not this machine's; stop the "
            "other controller or use --listen HOST:PORT or unix:/PATH"
        )
        if is_taken(listen):
            raise refusal
        try:
            if ours is None:
                port = server.add_insecure_port(listen)
            else:
                port = server.add_secure_port(listen, server_credentials(ours))
        except RuntimeError as exc:
            raise refusal from exc
        if not listen.startswith("unix:"):
            probe_connections(port)
        await server.start()
        self.address = with_port(listen, port)
        return server

    async def _tend_database(self) -> None:
        """Write missing records as soon as the database can be written again."""
        while True:
            await asyncio.sleep(_DATABASE_RETRY_S)
            if self._database.failure:
                self._database.check()

    def _replan(self, jobs: Collection[JobNumber], reason: str, is_broken: bool) -> None:
        """Have jobs pass to other trees."""
        for name in self.membership.replan(reason, jobs=jobs, is_broken=is_broken):
            _LOGGER.info("job %s gets other trees: %s", name, reason)
