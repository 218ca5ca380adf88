# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Where a controller's APIs listen: address, credentials, tokens, checks of every call."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Callable

import grpc

from ..hostlib.control.session_api import session_pb2
from ..hostlib.control.transfers_api import transfers_pb2
from ..hostlib.credentials import Credentials, CredentialsError, Role, require_choice
from ..hostlib.credentials.callers import CallerCertificates
from ..hostlib.credentials.grpc_channels import server_credentials
from .api.access import AccessGuard, Tokens
from .api.callers.refusal_log import RefusalLog
from .api.callers.source_calls import SourceCalls, default_share
from .api.callers.source_guard import SourceGuard
from .api.endpoint import is_taken, with_port
from .api.keepalive import probe_connections, server_options
from .api.open_files import connection_options, max_connections
from .api.operator_api import activity_pb2, fabric_pb2, operator_pb2, schedule_pb2
from .api.request_check import MAX_MESSAGE_BYTES
from .api.request_guard import RequestGuard
from .api.waiting_calls import take_waiting_joins, waiting_call_options
from .config import ControllerConfig
from .errors import ConfigError, ListenError

_LOGGER = logging.getLogger(__name__)
STOP_GRACE_S = 2.0
"""Calls that are under way get so long when the APIs stop."""
SERVICES = tuple(
    service
    for file in (session_pb2, transfers_pb2, operator_pb2, fabric_pb2, schedule_pb2, activity_pb2)
    for service in file.DESCRIPTOR.services_by_name.values()
)
"""All that a controller serves."""


class ApiListener:
    """Listens for the services of a leader, or of a standby."""

    def __init__(self, config: ControllerConfig) -> None:
        """Raises ConfigError without credentials, unless that is wanted."""
        try:
            require_choice(
                config.credentials,
                who="this controller",
                role=Role.CONTROLLER,
                options=("--credentials or the file", "--insecure (insecure = true)"),
                insecure=config.insecure,
            )
        except CredentialsError as exc:
            raise ConfigError(str(exc)) from exc
        self._config = config
        self._tokens = Tokens(
            worker=config.token,
            operator=config.operator_token,
            read_only=config.read_only_token,
        )
        self._credentials = None if config.credentials is None else Credentials(config.credentials)
        self.sources = SourceCalls(1)
        """The calls under way, by source, from `listen` on."""

    def log_openness(self) -> None:
        """Warn of what is open to everybody."""
        if self._credentials is None and not self._tokens.are_set:
            _LOGGER.warning(
                "no token is set: whoever reaches %s can join, look at and end jobs; set token and "
                "operator_token", self._config.listen,
            )  # fmt: skip

    async def listen(
        self, add_services: Callable[[grpc.aio.Server], None]
    ) -> tuple[grpc.aio.Server, str]:
        """Serve, and return the server and its address; ListenError if it is taken."""
        ours = self._credentials
        callers = None if ours is None else CallerCertificates(ours)
        num_callers, log = max_connections(), RefusalLog()
        share = self._config.max_calls_per_source or default_share(num_callers)
        self.sources = SourceCalls(share)
        _LOGGER.info("up to %d calls at a time, %d of one address", num_callers, share)
        server = grpc.aio.server(
            interceptors=(
                AccessGuard(self._tokens, SERVICES, callers, log),
                SourceGuard(self.sources, log),
                RequestGuard(),
            ),
            maximum_concurrent_rpcs=num_callers,
            options=[
                *server_options(self._config.host_gone_s),
                *waiting_call_options(num_callers),
                *connection_options(num_callers),
                ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
            ],
        )
        add_services(server)
        listen = self._config.listen
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
        return server, with_port(listen, port)

    async def take_waiting_joins(self, address: str) -> None:
        """Take the calls of workers that have arrived, before the server stops."""
        token = self._config.token or self._config.operator_token
        try:
            async with asyncio.timeout(STOP_GRACE_S):
                await take_waiting_joins(address, token, self._credentials)
        except (TimeoutError, CredentialsError) as exc:
            _LOGGER.warning("workers that wait may not learn that this controller stops: %s", exc)


def log_options(config: ControllerConfig) -> None:
    """Log every option, and no secret."""
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        shown = "***" if field.name.endswith("token") and value else value
        _LOGGER.info("option %s = %s", field.name, shown)
