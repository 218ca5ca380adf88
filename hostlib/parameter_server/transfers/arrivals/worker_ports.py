# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""By which connection the present process of each worker sends, and has its answers."""

from __future__ import annotations

from typing import final

from ...tables.denial import is_replaced
from ..update_port import IncomingUpdate, UpdatePort


@final
class WorkerPorts:
    """One port for each worker; runs in the loop's thread."""

    def __init__(self) -> None:
        self._ports: dict[int, UpdatePort] = {}

    def enter(self, port: UpdatePort) -> None:
        """Answer a worker through this port from now on; an earlier process of it is refused."""
        older = self._ports.get(port.worker_id)
        self._ports[port.worker_id] = port
        if older is None:
            return
        if older.incarnation == port.incarnation:
            older.drop()
        else:
            older.refuse(is_replaced(port.worker_id))

    def detach(self, port: UpdatePort) -> None:
        """Learn that a connection is gone."""
        if self._ports.get(port.worker_id) is port:
            del self._ports[port.worker_id]

    def on_room(self) -> None:
        """Let all read on: there is memory again."""
        for port in list(self._ports.values()):
            port.on_room()

    def of(self, worker_id: int, incarnation: int) -> UpdatePort | None:
        """Return the port of a worker's process, None if it has none."""
        port = self._ports.get(worker_id)
        return port if port is not None and port.incarnation == incarnation else None

    def of_sender(self, update: IncomingUpdate) -> UpdatePort | None:
        """Return the port of the process that has sent an update or a sum."""
        return self.of(update.worker_id, update.incarnation)
