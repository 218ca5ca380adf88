# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A server's scheduled updates and models, and its registration at the scheduler if it has one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Final, final

from ...control.stations.replica_terms import CatchUpWanted, ReplicaFailed, ReplicaJoined
from ...control.stations.station import (
    ServerProgress,
    StationEvent,
    StationKind,
    TransferStation,
)
from ...errors import HostlibError, PeerClosedError
from ...peers.event_loop import EventLoop
from ..options import ServerOptions
from ..tables.service import TableService
from .models.model_service import ModelService
from .replicas.log_follower import LogFollower
from .update_service import UpdateService

_MOST_TEXT: Final = 255
"""Characters of a text that the scheduler takes."""


@final
class UpdateStation:
    """Registers as soon as it is made. Without options, updates are applied as they come.

    Nor do models wait for anything then.
    """

    def __init__(
        self,
        tables: TableService,
        loop: EventLoop,
        server: ServerOptions,
        *,
        replica_at: tuple[str, int] | None = None,
    ) -> None:
        """`replica_at`: this is the replica of server `server.shard`; workers reach it there.

        If it can read its server's log, it first applies what that has.

        Raises ConfigurationError, CredentialsError, and what `LogFollower` does.
        """
        shard, options = server.shard, server.transfers
        self._loop = loop
        self._follower: LogFollower | None = None
        self._station: TransferStation | None = None
        self._models: ModelService | None = None
        if options is None:
            self.service = UpdateService(tables, loop)
            return
        service = self.service = UpdateService(
            tables,
            loop,
            tau_max=options.tau_max,
            place_wait_s=options.place_wait_s,
            is_replica=replica_at is not None,
        )
        if server.server_log is not None:
            follower = self._follower = LogFollower(
                tables,
                loop,
                shard,
                server.server_log,
                report=service.report,
                on_failed=self._on_stuck,
            )
            service.after_log = follower.on_logged
            follower.await_end()
        kind = StationKind.SERVER if replica_at is None else StationKind.REPLICA
        self._station = TransferStation(
            replace(options.station(kind, shard), reached_at=replica_at),
            progress=self._progress,
            on_event=lambda event: self._post(lambda: self._on_event(event)),
            on_failed=lambda error: self._post(lambda: self._on_failed(error)),
        )
        service.tell = self._station.send
        self._models = ModelService(
            tables,
            loop,
            shard,
            grant_wait_s=options.grant_wait_s,
            tell=self._station.send,
            is_serving=lambda: not service.gate.is_replica,
            counters=service.counters,
        )
        service.on_promoted = self._station.become_server
        self._station.start()

    def when_open(self, call: Callable[[], None]) -> None:
        """Call in the loop's thread when workers may be let in: now, unless updates are missing."""
        if self._follower is None or self._follower.is_over:
            call()
        else:
            self._follower.when_over(call)

    def close(self) -> None:
        """End the registration; a second call does nothing."""
        station, self._station = self._station, None
        if station is not None:
            station.close()

    def _progress(self) -> ServerProgress:
        follower = self._follower
        catches_up = follower is not None and not follower.is_over
        return self.service.progress._replace(catches_up=catches_up)

    def _on_event(self, event: StationEvent) -> None:
        self.service.on_event(event)
        if self._follower is not None and isinstance(event, CatchUpWanted):
            self._follower.follow(event)
        elif self._follower is not None and isinstance(event, ReplicaJoined):
            self._follower.end()
        if self._models is not None:
            self._models.on_event(event)

    def _on_stuck(self, error: HostlibError) -> None:
        """Learn that this replica cannot follow its server."""
        self.service.report(ReplicaFailed(str(error)[:_MOST_TEXT]))
        self._on_failed(error)

    def _on_failed(self, error: HostlibError) -> None:
        if self._follower is not None and self._follower.problem is not None:
            error = self._follower.problem  # the scheduler's words are about it
        self.service.on_failed(error)
        if self._models is not None:
            self._models.on_failed(error)

    def _post(self, call: Callable[[], None]) -> None:
        with contextlib.suppress(PeerClosedError):  # the server is closed
            self._loop.post(call)
