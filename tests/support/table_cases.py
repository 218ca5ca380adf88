# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A service of tables for tests, whose disk fails and stops as they say, and fake connections."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pytest

from log_cases import FakeDisk
from switchfold.hostlib.errors import HostlibError, PeerError
from switchfold.hostlib.parameter_server.rows import PulledRows
from switchfold.hostlib.parameter_server.storage import WriteAheadLog
from switchfold.hostlib.parameter_server.tables import TableDefinition
from switchfold.hostlib.parameter_server.tables.change import TableChange
from switchfold.hostlib.parameter_server.tables.service import TableService
from switchfold.hostlib.peers.event_loop import EventLoop
from switchfold.hostlib.peers.frames import FrameKind

WAIT_S = 60.0


class FakeClient:
    """A connection of a worker's process: it keeps what the service tells it."""

    def __init__(self, bench: ServiceBench, worker_id: int, incarnation: int) -> None:
        self._bench = bench
        self.origin = (worker_id, incarnation)
        self.num_entered = 0
        self.applied: list[int] = []
        self.denied: dict[int, HostlibError] = {}
        self.denied_pulls: dict[int, HostlibError] = {}
        self.rows: dict[int, PulledRows] = {}
        self.num_rooms = 0
        self.refused: PeerError | None = None
        self.is_dropped = False

    def enter(self) -> Self:
        """Enter, and do not wait for the answer."""
        request = TableChange(FrameKind.ENTER, *self.origin, 0)
        self._bench.run(lambda: self._bench.service.enter(self, request))
        return self

    def submit(
        self, kind: FrameKind, number: int, payload: bytes = b"", table: int = 0, num_keys: int = 0
    ) -> None:
        request = TableChange(kind, *self.origin, number, table, num_keys)
        self._bench.run(lambda: self._bench.service.submit(request, memoryview(payload)))

    def define(self, number: int, definition: TableDefinition) -> None:
        self.submit(FrameKind.DEFINE, number, definition.pack())

    def push(
        self, number: int, definition: TableDefinition, keys: list[int], value: float = 1.0
    ) -> None:
        gradients = np.full((len(keys), definition.width), value, np.float32)
        payload = np.array(keys, np.int64).tobytes() + gradients.tobytes()
        self.submit(FrameKind.PUSH, number, payload, definition.number, len(keys))

    def pull(self, number: int, definition: TableDefinition, keys: list[int], clock: int) -> None:
        origin = (self.origin[0], number, clock)
        wanted = np.array(keys, np.int64)
        self._bench.run(lambda: self._bench.service.pull(self, origin, definition.number, wanted))

    def detach(self) -> None:
        self._bench.run(lambda: self._bench.service.detach(self.origin[0], self))

    # The service calls the methods below.

    def on_applied(self, request: TableChange) -> None:
        with self._bench.changed:
            if request.kind is FrameKind.ENTER:
                self.num_entered += 1
            else:
                self.applied.append(request.number)
            self._bench.changed.notify_all()

    def on_denied(self, number: int, error: HostlibError, *, is_pull: bool) -> None:
        with self._bench.changed:
            (self.denied_pulls if is_pull else self.denied)[number] = error
            self._bench.changed.notify_all()

    def on_rows(self, number: int, table: int, rows: PulledRows) -> None:
        with self._bench.changed:
            self.rows[number] = rows
            self._bench.changed.notify_all()

    def on_room(self) -> None:
        with self._bench.changed:
            self.num_rooms += 1
            self._bench.changed.notify_all()

    def refuse(self, error: PeerError) -> None:
        self.refused = error

    def drop(self) -> None:
        self.is_dropped = True


class ServiceBench:
    """A service with a loop of its own; with a folder, it has a log on a fake disk."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        folder: Path | None = None,
        num_workers: int = 2,
        **options: Any,
    ) -> None:
        self.disk = FakeDisk()
        self.changed = threading.Condition()
        self.loop = EventLoop("test-tables")
        monkeypatch.setattr(
            "switchfold.hostlib.parameter_server.storage.server_storage.WriteAheadLog",
            functools.partial(WriteAheadLog, calls=self.disk),
        )
        try:
            self.service = TableService(
                self.loop,
                num_workers,
                directory=None if folder is None else folder / "log",
                **options,
            )
        except BaseException:
            self.loop.stop(lambda: None)
            raise

    def client(self, worker_id: int, incarnation: int) -> FakeClient:
        return FakeClient(self, worker_id, incarnation)

    def entered(self, worker_id: int, incarnation: int) -> FakeClient:
        client = self.client(worker_id, incarnation).enter()
        self.wait(lambda: client.num_entered == 1)
        return client

    def run(self, call: Callable[[], None]) -> None:
        self.loop.run(call)

    def wait(self, condition: Callable[[], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(condition, WAIT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.disk.go_on()
        self.loop.stop(lambda: None)
        self.service.close()
