# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A row server's right to its rows, and the stream that carries its messages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ...hostlib.control.session_api import session_pb2 as pb
from ..errors import ControllerError, WorkerTakenError
from ..jobs.job import Generation, RowServer, ServerId, View
from ..jobs.job_request import NO_TOKEN, JobToken
from ..jobs.punctual_timer import PunctualTimer

RowOutbox = asyncio.Queue[pb.RowControllerMessage | ControllerError | None]
"""Messages of one stream; an error or None ends it."""
ROW_LEASE_S: Final = 10.0
"""How long a server's rows outlive its stream, and how long it may say nothing."""


@dataclass(frozen=True)
class RowSetName:
    """Names a set of rows to its server."""

    generation: Generation
    number: int


class RowLease:
    """Outlives a broken stream for ROW_LEASE_S."""

    def __init__(
        self,
        job_name: str,
        server: RowServer,
        on_expired: Callable[[RowLease], None],
        token: JobToken = NO_TOKEN,
    ) -> None:
        self.job_name: Final = job_name
        self.server: Final = server
        """As it attached, without rows."""
        self.token: Final = token
        """Of the job that it is for."""
        self.view: View | None = None
        """What it was told of last."""
        self.wanted: RowSetName | None = None
        """The newest set, which may not be on all switches yet."""
        self.news: Final = asyncio.Event()
        """Something has changed for the one who installs the set."""
        self._outbox: RowOutbox | None = None
        self._on_expired = on_expired
        self._timer: PunctualTimer | None = None

    @property
    def server_id(self) -> ServerId:
        """Id of the server in its job."""
        return self.server.server_id

    @property
    def is_attached(self) -> bool:
        """Whether a stream carries this lease."""
        return self._outbox is not None

    @property
    def place(self) -> RowServer | None:
        """The server with its rows in the view, None if it has none there."""
        if self.view is None:
            return None
        for tree in self.view.trees:
            for server in tree.row_servers:
                if server.without_rows == self.server:
                    return server
        return None

    @property
    def is_known(self) -> bool:
        """Whether the view was planned for this server, with or without rows for it."""
        servers = self.view.row_servers if self.view else ()
        return any(server.without_rows == self.server for server in servers)

    def attach(self) -> RowOutbox:
        """Take a new stream and renew the lease; an older stream gets an error."""
        self.end()
        self._outbox = RowOutbox()
        self.renew()
        return self._outbox

    def end(self, error: ControllerError | None = None) -> None:
        """Stop counting the lease; a stream gets an error, by default that another has come."""
        self.release()
        self.send(
            error
            or WorkerTakenError(
                f"row server {self.server_id} of job {self.job_name!r} is attached on another "
                "stream, which carries its messages from now on; let one process alone be this "
                "server"
            )
        )

    def detach(self, outbox: RowOutbox) -> bool:
        """Note that a stream is over; return whether it was the current one."""
        if self._outbox is not outbox:
            return False
        self._outbox = None
        self.renew()
        return True

    def send(self, message: pb.RowControllerMessage | ControllerError) -> None:
        """Queue a message if a stream is attached."""
        if self._outbox is not None:
            self._outbox.put_nowait(message)

    def renew(self) -> None:
        """Give the server its time from now on."""
        self.release()
        self._timer = PunctualTimer(ROW_LEASE_S, lambda: self._on_expired(self))

    def release(self) -> None:
        """Stop counting the lease."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
