# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A server's scheduled updates and models, and its registration at the scheduler if it has one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import final

from ...control.stations.station import StationEvent, StationKind, TransferStation
from ...errors import HostlibError, PeerClosedError
from ...peers.event_loop import EventLoop
from ..tables.service import TableService
from ..transfer_options import TransferOptions
from .models.model_service import ModelService
from .update_service import UpdateService


@final
class UpdateStation:
    """Registers as soon as it is made. Without options, updates are applied as they come.

    Nor do models wait for anything then.
    """

    def __init__(
        self,
        tables: TableService,
        loop: EventLoop,
        shard: int,
        options: TransferOptions | None,
        *,
        replica_at: tuple[str, int] | None = None,
    ) -> None:
        """`replica_at`: this is the replica of server `shard`, and workers reach it there.

        Raises ConfigurationError and CredentialsError.
        """
        self._loop = loop
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
        kind = StationKind.SERVER if replica_at is None else StationKind.REPLICA
        self._station = TransferStation(
            replace(options.station(kind, shard), reached_at=replica_at),
            progress=lambda: service.progress,
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

    def close(self) -> None:
        """End the registration; a second call does nothing."""
        station, self._station = self._station, None
        if station is not None:
            station.close()

    def _on_event(self, event: StationEvent) -> None:
        self.service.on_event(event)
        if self._models is not None:
            self._models.on_event(event)

    def _on_failed(self, error: HostlibError) -> None:
        self.service.on_failed(error)
        if self._models is not None:
            self._models.on_failed(error)

    def _post(self, call: Callable[[], None]) -> None:
        with contextlib.suppress(PeerClosedError):  # the server is closed
            self._loop.post(call)
