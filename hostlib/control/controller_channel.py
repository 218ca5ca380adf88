# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The gRPC channel to a controller, opened again with renewed certificates."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from typing import Any, final

from ..credentials import Credentials, CredentialsError, Role, role_name
from ..credentials.grpc_channels import handshake_problem, open_channel
from ..errors import ControllerUnreachableError
from .controller_addresses import ControllerAddresses
from .grpc_seam import load_grpc

_grpc = load_grpc()
_logger = logging.getLogger(__name__)
CONNECT_TIMEOUT_S = 5.0
"""How long controllers may take to accept a connection."""
CONTROLLER_GONE_S = 6.0
"""A controller whose kernel does not take a heartbeat for so long is away."""
NEVER_MS = 2**31 - 2
"""In gRPC's options; one more would mean that the option is not set."""
CHANNEL_OPTIONS = (
    # By default gRPC waits up to two minutes between attempts; the controller waits less.
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.min_reconnect_backoff_ms", 5000),  # in gRPC this limits one attempt
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.enable_http_proxy", 0),
    # No pings of gRPC's own, which a stopped process answers too late: its time-out goes to the
    # kernel as TCP_USER_TIMEOUT, which ends a connection when heartbeats stay unacknowledged.
    ("grpc.keepalive_time_ms", NEVER_MS),
    ("grpc.keepalive_timeout_ms", round(1000 * CONTROLLER_GONE_S)),
    ("grpc.http2.ping_timeout_ms", NEVER_MS),
)


@final
class ControllerChannel:
    """One channel at a time; `get` and `close` may come from any thread."""

    def __init__(self, controllers: ControllerAddresses, credentials: str | None) -> None:
        """`credentials` is the folder of certificates; None: no TLS. Raises CredentialsError."""
        self._controllers = controllers
        self._credentials = None if credentials is None else Credentials(Path(credentials))
        self._lock = threading.Lock()
        self._is_closed = False
        self._version = self._files()
        self._channel = self._open()

    def get(self) -> Any:
        """Return the channel to the current controller; a new one if files have been replaced.

        Calls of the channel before end then. Files that are damaged now change nothing.
        """
        with self._lock:
            try:
                version = self._files()
                if version != self._version and not self._is_closed:
                    channel = self._open()
                    self._channel.close()
                    self._channel, self._version = channel, version
            except CredentialsError as error:
                _logger.warning("the certificate before stays in use: %s", error)
            return self._channel

    def connect(self, timeout_s: float, who: str) -> None:
        """Wait for a connection to one of the controllers, CONNECT_TIMEOUT_S at most.

        Raises CredentialsError or ControllerUnreachableError, the first of which begins with `who`.
        """
        controllers = self._controllers
        limit_s = min(CONNECT_TIMEOUT_S, timeout_s)
        attempt_s = min(limit_s, 1.0) if controllers.are_several else limit_s
        deadline_s = time.monotonic() + limit_s
        while True:
            ready = _grpc.channel_ready_future(self.get())
            try:
                ready.result(attempt_s)
            except _grpc.FutureTimeoutError:
                ready.cancel()
            else:
                return
            if problem := self.problem():
                raise CredentialsError(f"{who}: controller at {controllers}: {problem}")
            if time.monotonic() >= deadline_s:
                raise ControllerUnreachableError(
                    f"no controller answers at {' or '.join(controllers.all)}; start one with"
                    " 'switchfold controller run', or check the address; one that has as many"
                    " connections as its open files allow closes others"
                )
            controllers.turn()

    def problem(self) -> str:
        """Return why certificates keep the channel from connecting, "" if they do not."""
        address = self._controllers.current
        return handshake_problem(address, self._credentials, role_name(Role.CONTROLLER))

    def close(self) -> None:
        """End all calls."""
        with self._lock:
            self._is_closed = True
            self._channel.close()

    def _files(self) -> object:
        files = None if self._credentials is None else self._credentials.version()
        return self._controllers.current, files

    def _open(self) -> Any:
        return open_channel(
            _grpc,
            self._controllers.current,
            credentials=self._credentials,
            server=role_name(Role.CONTROLLER),
            options=CHANNEL_OPTIONS,
        )
