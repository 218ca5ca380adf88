# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The tables of one server, behind its connections and in front of its log.

A request is checked, logged, applied when its record is durable, and receipted. So the tables never
hold what the log has not got, and a receipt means that nothing loses the request any more. Without
a log it is applied at once.
"""

from __future__ import annotations

import logging
import secrets
import time
import zlib
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol, final

import numpy as np
from numpy.typing import NDArray

from ...errors import (
    ConfigurationError,
    ExchangeTimeoutError,
    HostlibError,
    LogBusyError,
    PeerClosedError,
    PeerError,
    PeerProtocolError,
    PeerRefusedError,
    RowMemoryError,
    ServerRestartedError,
    StorageError,
)
from ...peers.event_loop import EventLoop
from ...peers.frames import MAX_BATCH_BYTES, FrameKind
from ..rows import PulledRows
from ..storage import LogEvents, LogOptions, ServerStorage, WriteAheadLog
from .change import HEADER_BYTES, MAX_OPEN_REQUESTS, TableChange
from .snapshot import Snapshots, restore
from .state import KEPT_INCARNATIONS, TableState

SNAPSHOT_BYTES = 1 << 30
"""Growth of the log after which there is a new snapshot."""
_CHECK_S = 0.5
_NOTHING = memoryview(b"")
_LOG_OPTIONS = LogOptions(waiting_bytes=2 * MAX_BATCH_BYTES)
_logger = logging.getLogger(__name__)


class TableCaller(Protocol):
    """A worker's connection, as the service sees it."""

    def on_applied(self, request: TableChange) -> None:
        """Learn that a request is applied, and durable."""
        ...

    def on_denied(self, number: int, error: HostlibError, *, is_pull: bool) -> None:
        """Learn that a request or a pull has no effect."""
        ...

    def on_rows(self, number: int, table: int, rows: PulledRows) -> None:
        """Take the rows of a pull."""
        ...

    def on_room(self) -> None:
        """Learn that the service may take frames again."""
        ...

    def refuse(self, error: PeerError) -> None:
        """Say why this connection is of no use, and close it."""
        ...

    def drop(self) -> None:
        """Close this connection: the same process has another one."""
        ...


class _Logged(NamedTuple):
    """A request whose record is not durable yet."""

    lsn: int
    request: TableChange
    payload: memoryview


class _Pull(NamedTuple):
    """A pull that waits for the worker's own pushes, or for slower workers."""

    client: TableCaller
    worker_id: int
    number: int
    table: int
    clock: int
    """Of the worker when it asked."""
    keys: NDArray[np.int64]
    lsn: int
    """Of the worker's last request before it; 0: none that waits."""
    deadline_s: float


@final
class TableService:
    """Runs in the loop's thread, except for the constructor and `close`.

    With a `directory`, the log is there, and what it holds is applied before the constructor
    returns. Raises StorageError and what `WriteAheadLog` raises.
    """

    def __init__(
        self,
        loop: EventLoop,
        num_workers: int,
        *,
        directory: Path | None = None,
        log_options: LogOptions | None = None,
        snapshot_bytes: int = SNAPSHOT_BYTES,
        timeout_s: float = 30.0,
    ) -> None:
        self.state = TableState(num_workers)
        self.began_ns = 0
        """When applying, or reading rows, last began; on the loop's clock of measurements."""
        self._loop = loop
        self._timeout_s = timeout_s
        self._clients: dict[int, TableCaller] = {}
        self._accepted = [0] * num_workers
        """By worker, the last request that is logged or applied."""
        self._last_lsn = [0] * num_workers
        self._incarnations = [0] * num_workers
        self._replaced: list[deque[int]] = [
            deque(maxlen=KEPT_INCARNATIONS) for _ in range(num_workers)
        ]
        self._denials: list[deque[tuple[int, HostlibError]]] = [deque() for _ in range(num_workers)]
        self._logged: deque[_Logged] = deque()
        self._held: deque[tuple[TableChange, memoryview]] = deque()  # the log had no room for these
        self._pulls: list[_Pull] = []
        self.identity = secrets.randbits(32)
        """Drawn at random for the log; for this run of the server if there is no log."""
        self._storage: ServerStorage | None = None
        self._snapshots: Snapshots | None = None
        if directory is not None:
            events = LogEvents(
                on_durable=lambda lsn: self._post(lambda: self._on_durable(lsn)),
                on_failed=lambda first, last, error: self._post(
                    lambda: self._on_failed(first, last, error)
                ),
                on_room=lambda: self._post(self._on_room),
            )
            self._storage = ServerStorage(directory, events, log_options or _LOG_OPTIONS)
            self.identity = zlib.crc32(self._storage.log.identity.bytes)
            try:
                self._recover(self._storage)
            except BaseException:
                self._storage.close()
                raise
            self._snapshots = Snapshots(self._storage, self.state, snapshot_bytes)
        loop.run(self._watch_pulls)

    def close(self) -> None:
        """Make durable what is logged, and close the log."""
        if self._snapshots is not None:
            self._snapshots.close()
        if self._storage is not None:
            self._storage.close()

    def takes(self, kind: FrameKind) -> bool:
        """Return whether clients may pass on such a frame; if not, they wait for `on_room`."""
        if self._storage is None or kind in (FrameKind.ENTER, FrameKind.HEARTBEAT):
            return True
        # A pull waits for the pushes before it, and none of those may still have to be logged.
        return not self._held and (kind is FrameKind.PULL or self._storage.log.has_room)

    def enter(self, client: TableCaller, request: TableChange) -> None:
        """Answer a worker through this client from now on; the request is its ENTER.

        The newest process of a worker wins. Raises PeerRefusedError for one that it replaced.
        """
        worker_id, incarnation = request.worker_id, request.incarnation
        if incarnation in (*self.state.workers[worker_id].replaced, *self._replaced[worker_id]):
            raise _is_replaced(worker_id)
        current = self._incarnations[worker_id]
        older = self._clients.get(worker_id)
        self._clients[worker_id] = client
        if older is not None and older is not client:
            self.detach(worker_id, older)
            if incarnation == current:
                older.drop()  # what it sent last comes again through this one
            else:
                older.refuse(_is_replaced(worker_id))
        if incarnation == current:
            # Otherwise the ENTER waits for the log, and then this client gets the answer.
            if self.state.workers[worker_id].incarnation == incarnation:
                client.on_applied(request)
            return
        if current:
            self._replaced[worker_id].append(current)
        self._incarnations[worker_id], self._accepted[worker_id] = incarnation, 0
        self._denials[worker_id].clear()
        self._take(request._replace(num_keys=len(self.state.workers)), _NOTHING)

    def detach(self, worker_id: int, client: TableCaller) -> None:
        """Learn that a connection is gone; its pulls are forgotten, as the worker asks again."""
        if self._clients.get(worker_id) is client:
            del self._clients[worker_id]
        self._pulls = [pull for pull in self._pulls if pull.client is not client]

    def accepted(self, worker_id: int) -> int:
        """Return the last request of the worker's process that need not come again."""
        return self._accepted[worker_id]

    def num_open(self, worker_id: int) -> int:
        """Return how far before `accepted` the first request is that is not durable, plus 1."""
        waiting = (*(one.request for one in self._logged), *(request for request, _ in self._held))
        numbers = (request.number for request in waiting if request.worker_id == worker_id)
        accepted = self._accepted[worker_id]
        return accepted + 1 - min(numbers, default=accepted + 1)

    def denials(self, worker_id: int) -> list[tuple[int, HostlibError]]:
        """Return the last requests of the worker's process that had no effect."""
        return list(self._denials[worker_id])

    def submit(self, request: TableChange, payload: memoryview) -> None:
        """Take a DEFINE, PUSH or ADVANCE, whose payload then belongs to the service.

        Requests that were taken before are ignored. One that is denied counts as taken.
        """
        worker_id = request.worker_id
        if request.incarnation != self._incarnations[worker_id]:
            raise PeerProtocolError(f"{request.kind.name} frame before the answer to ENTER")
        if request.number <= self._accepted[worker_id]:
            return
        try:
            self.state.check(request, payload, is_next=self._storage is None)
        except HostlibError as error:
            self._accepted[worker_id] = request.number
            self._deny(request, error)
            return
        self._accepted[worker_id] = request.number
        self._take(request, payload)

    def _take(self, request: TableChange, payload: memoryview) -> None:
        if self._storage is None:
            self._apply(_Logged(0, request, payload))
            self._serve_pulls()
        elif self._held or not self._append(self._storage.log, request, payload):
            self._held.append((request, payload))

    def _append(self, log: WriteAheadLog, request: TableChange, payload: memoryview) -> bool:
        """Log or deny a request; return False if it has to wait for room."""
        try:
            lsn = log.append([request.pack(), payload])
        except LogBusyError:
            return False
        except ValueError as error:
            self._deny(request, ConfigurationError(f"{error}; push fewer keys at a time"))
        except StorageError as error:
            self._deny(request, error)
        else:
            self._last_lsn[request.worker_id] = lsn
            self._logged.append(_Logged(lsn, request, payload))
        return True

    def _take_held(self) -> None:
        """Log what the log had no room for; called when something has become durable."""
        if self._storage is None:
            return
        had = bool(self._held)
        while self._held and self._append(self._storage.log, *self._held[0]):
            self._held.popleft()
        if had and not self._held:
            self._on_room()

    def pull(
        self,
        client: TableCaller,
        origin: tuple[int, int, int],
        table: int,
        keys: NDArray[np.int64],
    ) -> None:
        """Answer with rows that hold the worker's own pushes so far; wait for those if need be.

        `origin`: the worker's id, the pull's number, and the worker's clock when it asked.
        """
        worker_id, number, clock = origin
        try:
            self.state.table(table)
        except ConfigurationError as error:
            client.on_denied(number, error, is_pull=True)
            return
        lsn = self._last_lsn[worker_id] if self._logged else 0
        deadline_s = time.monotonic() + self._timeout_s
        self._pulls.append(_Pull(client, worker_id, number, table, clock, keys, lsn, deadline_s))
        self._serve_pulls()

    def _post(self, call: Callable[[], None]) -> None:
        try:
            self._loop.post(call)
        except PeerClosedError:
            return  # the server is closed: nobody waits for it

    def _recover(self, storage: ServerStorage) -> None:
        state, started_s = self.state, time.monotonic()
        if storage.snapshot is not None:
            restore(state, storage.snapshot.chunks())
        num_records = 0
        reasons: list[dict[int, HostlibError]] = [{} for _ in state.workers]
        for lsn, record in storage.records():
            request, payload = TableChange.unpack(record)
            if request.worker_id >= len(state.workers):
                raise self._wrong_number(storage.log, f"requests of worker {request.worker_id}")
            if request.kind is FrameKind.ENTER:
                if request.num_keys != len(state.workers):
                    raise self._wrong_number(storage.log, f"{request.num_keys} workers")
                reasons[request.worker_id].clear()
            num_records += 1
            try:
                state.apply(request, payload, lsn=lsn, is_replay=True)
            except RowMemoryError:
                raise  # it had an effect before
            except HostlibError as error:
                _logger.info("record %d was denied before, too: %s", lsn, error)
                reasons[request.worker_id][request.number] = error
        for worker_id, worker in enumerate(state.workers):
            self._accepted[worker_id] = worker.number
            self._incarnations[worker_id] = worker.incarnation
            self._denials[worker_id].extend(
                (number, reasons[worker_id].get(number) or _was_denied(number))
                for number in worker.denied
            )
        _logger.info("applied %d records in %.1f s", num_records, time.monotonic() - started_s)

    def _wrong_number(self, log: WriteAheadLog, what: str) -> StorageError:
        return StorageError(
            f"the log in {log.directory} has {what}; start the server with the number of workers"
            f" that it had, not {len(self.state.workers)}"
        )

    def _on_durable(self, lsn: int) -> None:
        while self._logged and self._logged[0].lsn <= lsn:
            self._apply(self._logged.popleft())
        self._take_held()
        self._serve_pulls()

    def _on_failed(self, first_lsn: int, last_lsn: int, error: StorageError) -> None:
        while self._logged and self._logged[0].lsn <= last_lsn:
            logged = self._logged.popleft()
            if logged.lsn < first_lsn:
                self._apply(logged)
            else:
                self._deny(logged.request, error)
        self._take_held()
        self._serve_pulls()

    def _on_room(self) -> None:
        for client in list(self._clients.values()):
            client.on_room()

    def _apply(self, logged: _Logged) -> None:
        self.began_ns = self._loop.clock_ns()
        try:
            self.state.apply(logged.request, logged.payload, lsn=logged.lsn)
        except HostlibError as error:
            self._deny(logged.request, error)
        except Exception as error:  # a defect: the worker must not take the request for done
            _logger.exception("applying %s failed", logged.request)
            text = (
                f"applying request {logged.request.number} failed: {error!r}; see the server's log"
            )
            self._deny(logged.request, PeerProtocolError(text))
        else:
            client = self._client_of(logged.request)
            if client is not None:
                client.on_applied(logged.request)
        if logged.request.kind is FrameKind.ADVANCE:
            self._serve_pulls()  # before the records of the next iteration
        if self._snapshots is not None:
            self._snapshots.note(logged.lsn, len(logged.payload) + HEADER_BYTES)

    def _deny(self, request: TableChange, error: HostlibError) -> None:
        _logger.warning(
            "request %d of worker %d has no effect: %s", request.number, request.worker_id, error
        )
        client, worker_id = self._client_of(request), request.worker_id
        if request.incarnation == self._incarnations[worker_id]:
            if request.kind is FrameKind.ENTER:
                self._incarnations[worker_id] = 0  # its next attempt enters again
            else:
                denials = self._denials[worker_id]
                denials.append((request.number, error))
                while denials[0][0] <= request.number - MAX_OPEN_REQUESTS:
                    denials.popleft()
        if client is not None:
            client.on_denied(request.number, error, is_pull=False)

    def _client_of(self, request: TableChange) -> TableCaller | None:
        if request.incarnation != self._incarnations[request.worker_id]:
            return None
        return self._clients.get(request.worker_id)

    def _serve_pulls(self) -> None:
        first_lsn = self._logged[0].lsn if self._logged else 0
        waiting: list[_Pull] = []
        for pull in self._pulls:
            has_own = not first_lsn or pull.lsn < first_lsn
            if not (has_own and self.state.may_pull(pull.clock, pull.table)):
                waiting.append(pull)
                continue
            self.began_ns = self._loop.clock_ns()
            try:
                rows = self.state.pull(pull.table, pull.keys)
            except HostlibError as error:
                pull.client.on_denied(pull.number, error, is_pull=True)
            else:
                pull.client.on_rows(pull.number, pull.table, rows)
        self._pulls = waiting

    def _watch_pulls(self) -> None:
        now_s = time.monotonic()
        for pull in [pull for pull in self._pulls if pull.deadline_s < now_s]:
            self._pulls.remove(pull)
            pull.client.on_denied(pull.number, self._too_late(pull), is_pull=True)
        self._loop.call_later(_CHECK_S, self._watch_pulls)

    def _too_late(self, pull: _Pull) -> ExchangeTimeoutError:
        name = self.state.tables[pull.table].definition.name
        if self.state.may_pull(pull.clock, pull.table):
            return ExchangeTimeoutError(
                f"table {name!r}: the pushes before a pull of worker {pull.worker_id} were not"
                f" durable in {self._timeout_s:g} s. Is the disk of the log too slow?",
                [],
            )
        workers = self.state.workers
        slowest = [w for w, worker in enumerate(workers) if worker.clock == self.state.clock]
        return ExchangeTimeoutError(
            f"table {name!r}: worker {', '.join(map(str, slowest))} has ended {self.state.clock}"
            f" iterations, worker {pull.worker_id} {pull.clock}; in {self._timeout_s:g} s no pull"
            " was possible. Do all workers call `advance` after each iteration?",
            slowest,
        )


def _was_denied(number: int) -> ServerRestartedError:
    return ServerRestartedError(
        f"request {number} had no effect: the server denied it before it was restarted. Its"
        " messages of that time give the reason"
    )


def _is_replaced(worker_id: int) -> PeerRefusedError:
    return PeerRefusedError(
        f"another process is worker {worker_id} now; end one of the two, or give them different ids"
    )
