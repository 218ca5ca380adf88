# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The tables of one server, behind its connections and in front of its log.

A request is checked, logged, applied when its record is durable, and receipted. So the tables never
hold what the log has not got, and a receipt means that nothing loses the request any more. Without
a log it is applied at once.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol, final

import numpy as np
from numpy.typing import NDArray

from ...errors import (
    ExchangeTimeoutError,
    HostlibError,
    PeerClosedError,
    PeerError,
    PeerProtocolError,
    PeerRefusedError,
    StorageError,
)
from ...peers.event_loop import EventLoop
from ..rows import PulledRows
from ..storage import LogEvents, LogOptions, ServerStorage
from .request import HEADER_BYTES, Request
from .snapshot import Snapshots, restore
from .state import KEPT_INCARNATIONS, TableState

SNAPSHOT_BYTES = 1 << 30
"""Growth of the log after which there is a new snapshot."""
_CHECK_S = 0.5
_NOTHING = memoryview(b"")
_KEPT_DENIALS = 256
"""For workers whose connection breaks before they learn of them."""
_logger = logging.getLogger(__name__)


class Client(Protocol):
    """A worker's connection, as the service sees it."""

    def on_applied(self, request: Request) -> None:
        """Learn that a request is applied, and durable."""
        ...

    def on_denied(self, number: int, error: HostlibError, *, is_pull: bool) -> None:
        """Learn that a request or a pull has no effect."""
        ...

    def on_rows(self, number: int, table: int, rows: PulledRows) -> None:
        """Take the rows of a pull."""
        ...

    def on_room(self) -> None:
        """Learn that the log takes records again."""
        ...

    def refuse(self, error: PeerError) -> None:
        """Say why this connection is of no use, and close it."""
        ...


class _Logged(NamedTuple):
    """A request whose record is not durable yet."""

    lsn: int
    request: Request
    payload: memoryview


class _Pull(NamedTuple):
    """A pull that waits for the worker's own pushes, or for slower workers."""

    client: Client
    worker_id: int
    number: int
    table: int
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
        self._clients: dict[int, Client] = {}
        self._accepted = [0] * num_workers
        """By worker, the last request that is logged or applied."""
        self._last_lsn = [0] * num_workers
        self._incarnations = [0] * num_workers
        self._replaced: list[deque[int]] = [
            deque(maxlen=KEPT_INCARNATIONS) for _ in range(num_workers)
        ]
        self._denials: list[deque[tuple[int, HostlibError]]] = [
            deque(maxlen=_KEPT_DENIALS) for _ in range(num_workers)
        ]
        self._logged: deque[_Logged] = deque()
        self._pulls: list[_Pull] = []
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
            self._storage = ServerStorage(directory, events, log_options)
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

    @property
    def has_room(self) -> bool:
        """Whether the log takes more; if not, clients stop reading until `on_room`."""
        return self._storage is None or self._storage.log.has_room

    def enter(self, client: Client, request: Request) -> None:
        """Answer a worker through this client from now on; the request is its ENTER.

        The newest process of a worker wins. Raises PeerRefusedError for one that it replaced.
        """
        worker_id, incarnation = request.worker_id, request.incarnation
        if incarnation in (*self.state.workers[worker_id].replaced, *self._replaced[worker_id]):
            raise _is_replaced(worker_id)
        current = self._incarnations[worker_id]
        older = self._clients.get(worker_id)
        if older is not None and older is not client and incarnation != current:
            older.refuse(_is_replaced(worker_id))
        self._clients[worker_id] = client
        if incarnation == current:
            client.on_applied(request)
            return
        if current:
            self._replaced[worker_id].append(current)
        self._incarnations[worker_id], self._accepted[worker_id] = incarnation, 0
        self._denials[worker_id].clear()
        self._take(request, _NOTHING)

    def detach(self, worker_id: int, client: Client) -> None:
        """Learn that a connection is gone; its pulls are forgotten, as the worker asks again."""
        if self._clients.get(worker_id) is client:
            del self._clients[worker_id]
        self._pulls = [pull for pull in self._pulls if pull.client is not client]

    def accepted(self, worker_id: int) -> int:
        """Return the last request of the worker's process that need not come again."""
        return self._accepted[worker_id]

    def num_open(self, worker_id: int) -> int:
        """Return how far before `accepted` the first request is that is not durable, plus 1."""
        numbers = (one.request.number for one in self._logged if one.request.worker_id == worker_id)
        accepted = self._accepted[worker_id]
        return accepted + 1 - min(numbers, default=accepted + 1)

    def denials(self, worker_id: int) -> list[tuple[int, HostlibError]]:
        """Return the last requests of the worker's process that had no effect."""
        return list(self._denials[worker_id])

    def submit(self, request: Request, payload: memoryview) -> None:
        """Take a DEFINE, PUSH or ADVANCE, whose payload then belongs to the service.

        Requests that were taken before are ignored. One that is denied counts as taken. Raises
        PeerProtocolError for one that no client sends.
        """
        worker_id = request.worker_id
        if request.number <= self._accepted[worker_id]:
            return
        self._accepted[worker_id] = request.number
        try:
            self.state.check(request, payload)
            self._take(request, payload)
        except PeerProtocolError:
            raise
        except HostlibError as error:
            self._deny(request, error)

    def _take(self, request: Request, payload: memoryview) -> None:
        if self._storage is None:
            self._apply(_Logged(0, request, payload))
            self._serve_pulls()
            return
        lsn = self._storage.log.append([request.pack(), payload])
        self._last_lsn[request.worker_id] = lsn
        self._logged.append(_Logged(lsn, request, payload))

    def pull(
        self, client: Client, worker_id: int, number: int, table: int, keys: NDArray[np.int64]
    ) -> None:
        """Answer with rows that hold the worker's own pushes so far; wait for those if need be."""
        self.state.table(table)
        lsn = self._last_lsn[worker_id] if self._logged else 0
        deadline_s = time.monotonic() + self._timeout_s
        self._pulls.append(_Pull(client, worker_id, number, table, keys, lsn, deadline_s))
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
        for lsn, record in storage.records():
            request, payload = Request.unpack(record)
            if request.worker_id >= len(state.workers):
                raise StorageError(
                    f"the log in {storage.log.directory} has requests of worker"
                    f" {request.worker_id}; start the server with the number of workers that it"
                    f" had, not {len(state.workers)}"
                )
            num_records += 1
            try:
                state.apply(request, payload, lsn=lsn, is_replay=True)
            except HostlibError as error:
                _logger.info("record %d was denied before, too: %s", lsn, error)
        for worker_id, worker in enumerate(state.workers):
            self._accepted[worker_id] = worker.number
            self._incarnations[worker_id] = worker.incarnation
        _logger.info("applied %d records in %.1f s", num_records, time.monotonic() - started_s)

    def _on_durable(self, lsn: int) -> None:
        while self._logged and self._logged[0].lsn <= lsn:
            self._apply(self._logged.popleft())
        self._serve_pulls()

    def _on_failed(self, first_lsn: int, last_lsn: int, error: StorageError) -> None:
        while self._logged and self._logged[0].lsn <= last_lsn:
            logged = self._logged.popleft()
            if logged.lsn < first_lsn:
                self._apply(logged)
            else:
                self._deny(logged.request, error)
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
            return
        except Exception as error:  # a defect: the worker must not take the request for done
            _logger.exception("applying %s failed", logged.request)
            text = (
                f"applying request {logged.request.number} failed: {error!r}; see the server's log"
            )
            self._deny(logged.request, PeerProtocolError(text))
            return
        client = self._client_of(logged.request)
        if client is not None:
            client.on_applied(logged.request)
        if self._snapshots is not None:
            self._snapshots.note(logged.lsn, len(logged.payload) + HEADER_BYTES)

    def _deny(self, request: Request, error: HostlibError) -> None:
        _logger.warning(
            "request %d of worker %d has no effect: %s", request.number, request.worker_id, error
        )
        if request.incarnation == self._incarnations[request.worker_id]:
            self._denials[request.worker_id].append((request.number, error))
        client = self._client_of(request)
        if client is not None:
            client.on_denied(request.number, error, is_pull=False)

    def _client_of(self, request: Request) -> Client | None:
        if request.incarnation != self._incarnations[request.worker_id]:
            return None
        return self._clients.get(request.worker_id)

    def _serve_pulls(self) -> None:
        first_lsn = self._logged[0].lsn if self._logged else 0
        waiting: list[_Pull] = []
        for pull in self._pulls:
            has_own = not first_lsn or pull.lsn < first_lsn
            if not (has_own and self.state.may_pull(pull.worker_id, pull.table)):
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
        workers = self.state.workers
        slowest = [w for w, worker in enumerate(workers) if worker.clock == self.state.clock]
        own = workers[pull.worker_id].clock
        name = self.state.tables[pull.table].definition.name
        return ExchangeTimeoutError(
            f"table {name!r}: worker {', '.join(map(str, slowest))} has ended {self.state.clock}"
            f" iterations, worker {pull.worker_id} {own}; in {self._timeout_s:g} s no pull was"
            " possible. Do all workers call `advance` after each iteration?",
            slowest,
        )


def _is_replaced(worker_id: int) -> PeerRefusedError:
    return PeerRefusedError(
        f"another process is worker {worker_id} now; end one of the two, or give them different ids"
    )
