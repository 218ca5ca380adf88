# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sparse tables on parameter servers, for a worker."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Final, Generic, Self, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from ...errors import (
    ConfigurationError,
    ExchangeTimeoutError,
    HostlibError,
    NonFiniteGradientError,
    PeerClosedError,
    RowShapeError,
)
from ...latency import WorkerLog
from ...peers.event_loop import EventLoop
from ...peers.frames import MAX_BATCH_BYTES, FrameKind, Greeting, Purpose
from ...peers.handshake import PeerCall
from ..hot_worker import ServerRows
from ..hot_worker.key_counts import KeyCounts, MakeCounts
from ..hot_worker.scheme_choice import HotRowChoice
from ..options import GENERATION, ClientOptions, HotRowUse
from ..rows import PulledRows, partition
from ..rows.optimisers import check_array
from .change import MAX_OPEN_REQUESTS
from .definition import TableDefinition
from .session import ShardSession
from .state import KEY_BYTES, VALUE_BYTES

MAX_OPEN_BYTES: Final = 256 << 20
"""Gradients without a receipt; a push that would exceed them waits."""
_CLOSED: Final = "the table client is closed; make a new one"
_Result = TypeVar("_Result")


@final
class TableClient:
    """Tables whose rows are spread over servers by their keys; safe from any thread.

    `servers`: (address, port) by shard, the same on all workers. The constructor waits until all
    servers have answered. Raises ServerLostError, PeerRefusedError and ExchangeTimeoutError.
    `make_counts`: how keys are counted of which servers are to choose the hot ones.
    """

    def __init__(
        self,
        servers: Sequence[tuple[str, int]],
        options: ClientOptions,
        *,
        make_counts: MakeCounts = KeyCounts,
    ) -> None:
        if not servers:
            raise ConfigurationError("no parameter servers; give the address of at least one")
        self.options = options
        self._incarnation = secrets.randbits(64) | 1
        self._open_bytes = 0
        self._num_open = 0
        self._changed = threading.Condition()
        self._is_closed = False
        self._latency: WorkerLog | None = None
        if options.latency_log is not None:
            self._latency = WorkerLog(
                options.latency_log, worker_id=options.worker_id, job=options.job
            )
        self._loop = EventLoop("switchfold-tables")
        choice = HotRowChoice(options.use_hot_rows, time.time() - time.monotonic())

        def make_hot(session: ShardSession) -> ServerRows:
            return ServerRows(self._loop, session, options, choice, make_counts)

        self._sessions = [
            ShardSession(
                self._loop,
                PeerCall(
                    address=address,
                    source=options.source,
                    greeting=Greeting(
                        options.job, GENERATION, options.worker_id, shard, Purpose.TABLES
                    ),
                    token=options.token,
                ),
                self._incarnation,
                options=options,
                latency=self._latency,
                make_hot=None if options.use_hot_rows is HotRowUse.NEVER else make_hot,
            )
            for shard, address in enumerate(servers)
        ]
        try:
            self._enter()
        except BaseException:
            self.close()
            raise
        self.clock = min(session.clock for session in self._sessions)
        """How many iterations this worker, in all its processes, had ended at its start.

        If a process ends in `advance`, some servers may know of one more than others: this is the
        smallest number. What a new process pushes of such an iteration is sent only to the servers
        at which it had not ended.
        """
        for session in self._sessions:
            session.num_ahead = session.clock - self.clock

    @property
    def num_shards(self) -> int:
        """Number of servers."""
        return len(self._sessions)

    def define(self, definition: TableDefinition) -> SparseTable:
        """Define a table, or check that it was defined alike; wait for all servers.

        Raises PeerMismatchError, ConfigurationError, ServerLostError and ExchangeTimeoutError.
        """
        payload = memoryview(definition.pack())
        gathering = _Gathering[None](self.num_shards, lambda: None)

        def define() -> None:
            for session in self._sessions:
                session.change(FrameKind.DEFINE, payload, gathering.take)
                if definition.hot_keys and session.hot is not None:
                    session.hot.count_keys(definition.number, definition.sketch_capacity)

        self._post(define)
        self._wait(gathering.future, f"definition of table {definition.name!r}")
        return SparseTable(self, definition)

    def advance(self) -> Future[None]:
        """End this worker's iteration: all its pushes of it have been made.

        Done when all servers know it. Workers that pull from a table with a staleness wait for it.

        The future's errors are those of `SparseTable.push`. After a StorageError or a
        ServerLostError, call it again, before further pushes: it then asks those servers alone that
        have not ended the iteration. RowTableError: the iteration has ended, but the sums of some
        table were refused; only the last worker to end it learns of that.

        Waits, and raises, as `SparseTable.push` does.
        """
        self._reserve(0)
        gathering = _Gathering[None](self.num_shards, lambda: None)
        gathering.future.add_done_callback(lambda _: self._release(0))

        def advance() -> None:
            clocks = [session.clock - session.num_ahead for session in self._sessions]
            for session, clock in zip(self._sessions, clocks, strict=True):
                if clock == min(clocks):
                    session.change(FrameKind.ADVANCE, memoryview(b""), gathering.take)
                else:
                    gathering.take(None)

        self._post_or_fail(advance, gathering)
        return gathering.future

    def close(self) -> None:
        """Close all connections; what is open fails with PeerClosedError."""
        with self._changed:
            if self._is_closed:
                return
            self._is_closed = True
            self._changed.notify_all()
        self._loop.stop(self._end)
        if self._latency is not None:
            self._latency.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def send(
        self,
        kind: FrameKind,
        definition: TableDefinition,
        keys: NDArray[np.int64],
        gradients: NDArray[np.float32],
    ) -> Future[None]:
        """Send a PUSH or START to the servers of the keys; `SparseTable` says the rest."""
        check_array("keys", keys, np.int64, (keys.size,))
        check_array("gradients", gradients, np.float32, (keys.size, definition.width))
        _check_finite(definition.name, keys, gradients)
        parts = _split(keys, gradients, self.num_shards)
        size = sum(payload.nbytes for _, payload, _ in parts)
        self._check_size(max((payload.nbytes for _, payload, _ in parts), default=0))
        self._reserve(size)
        gathering = _Gathering[None](len(parts), lambda: None)
        gathering.future.add_done_callback(lambda _: self._release(size))

        def send() -> None:
            self._begin_call()
            for shard, payload, num_keys in parts:
                session, table = self._sessions[shard], definition.number
                if definition.hot_keys and session.hot is not None and kind is FrameKind.PUSH:
                    session.hot.push(table, payload, num_keys, gathering.take)
                else:
                    session.change(kind, payload, gathering.take, table=table, num_keys=num_keys)

        self._post_or_fail(send, gathering)
        return gathering.future

    def pull(self, definition: TableDefinition, keys: NDArray[np.int64]) -> Future[PulledRows]:
        """Ask the servers for the rows of keys; `SparseTable.pull` says the rest."""
        check_array("keys", keys, np.int64, (keys.size,))
        parts = _places(keys, self.num_shards)
        # By a copy of the keys: the caller's may change.
        wanted = {shard: keys.take(places) for shard, places in parts}
        most = max((each.size for each in wanted.values()), default=0)
        self._check_size(most * VALUE_BYTES * (definition.width + 1))
        collected = _Rows(parts, keys.size, definition.width)
        gathering = _Gathering(len(parts), collected.result)

        def ask(shard: int) -> None:
            def take(rows: PulledRows | HostlibError) -> None:
                if isinstance(rows, HostlibError):
                    gathering.take(rows)
                    return
                collected.add(shard, rows)
                self._sessions[shard].note_parsed()
                gathering.take(None)

            session = self._sessions[shard]
            path = session.hot if definition.hot_keys and session.hot is not None else session
            path.pull(definition.number, wanted[shard], definition.width, take)

        def ask_all() -> None:
            self._begin_call()
            for shard in wanted:
                ask(shard)

        self._post_or_fail(ask_all, gathering)
        return gathering.future

    def _begin_call(self) -> None:
        if self._latency is not None:
            self._latency.begin_call()

    def _enter(self) -> None:
        gathering = _Gathering[None](self.num_shards, lambda: None)

        def enter() -> None:
            for session in self._sessions:
                session.enter(gathering.take)

        self._post(enter)
        self._wait(gathering.future, "the first connection")

    def _check_thread(self) -> None:
        if self._loop.is_own_thread:
            raise ConfigurationError(
                "the callback of a future would wait for its own thread; use another thread"
            )

    def _wait(self, future: Future[None], what: str) -> None:
        self._check_thread()
        try:
            future.result(self.options.timeout_s)
        except TimeoutError as error:
            if isinstance(error, HostlibError):
                raise
            raise ExchangeTimeoutError(
                f"{what}: no answer from all {self.num_shards} parameter servers in"
                f" {self.options.timeout_s:g} s; see their logs",
                [],
            ) from error

    def _check_size(self, num_bytes: int) -> None:
        if num_bytes > MAX_BATCH_BYTES:
            raise ConfigurationError(
                f"a batch of {num_bytes} bytes to or from one server; the limit is"
                f" {MAX_BATCH_BYTES}: use several calls"
            )

    def _reserve(self, size: int) -> None:
        def has_room() -> bool:
            if self._num_open == MAX_OPEN_REQUESTS:
                return self._is_closed
            return self._is_closed or self._open_bytes + size <= max(size, MAX_OPEN_BYTES)

        with self._changed:
            if not has_room():
                self._check_thread()
            if not self._changed.wait_for(has_room, self.options.timeout_s):
                raise ExchangeTimeoutError(
                    f"{self._num_open} requests with {self._open_bytes} bytes of gradients have"
                    f" had no receipt for {self.options.timeout_s:g} s; one more with {size} would"
                    f" exceed the limits of {MAX_OPEN_REQUESTS} and {MAX_OPEN_BYTES}. Are the"
                    " servers' disks too slow?",
                    [],
                )
            if self._is_closed:
                raise PeerClosedError(_CLOSED)
            self._open_bytes += size
            self._num_open += 1

    def _release(self, size: int) -> None:
        with self._changed:
            self._open_bytes -= size
            self._num_open -= 1
            self._changed.notify_all()

    def _post_or_fail(self, call: Callable[[], None], gathering: _Gathering[_Result]) -> None:
        try:
            self._post(call)
        except PeerClosedError as error:
            gathering.fail(error)

    def _post(self, call: Callable[[], None]) -> None:
        try:
            self._loop.post(call)
        except PeerClosedError as error:
            raise PeerClosedError(_CLOSED) from error

    def _end(self) -> None:
        for session in self._sessions:
            session.close(PeerClosedError(_CLOSED))


@final
class SparseTable:
    """A table of a client."""

    def __init__(self, client: TableClient, definition: TableDefinition) -> None:
        self.definition = definition
        self._client = client

    def push(self, keys: NDArray[np.int64], gradients: NDArray[np.float32]) -> Future[None]:
        """Send gradients of shape (number of keys, width); return at once with a future.

        It is done when the servers have applied them, and have them on disk if they keep a log; in
        a synchronous table, they are applied later, with those of the other workers. Gradients of
        a key that repeats are added first. The arrays may change after the call.

        In a table with hot keys, gradients of these may go to a switch, which adds up those of
        several workers: they are rounded to multiples of a power of two that the server chooses for
        their row. Await the futures before `advance` if no push of an ended iteration may be
        missing after a crash of this process.

        Waits while too many gradients have no receipt. The future's errors: RowTableFullError,
        DiskFullError and other StorageErrors (nothing of this server's part has an effect),
        ServerLostError and LogBrokenError (unknown), ServerRestartedError (the server lost its
        tables), PeerRefusedError (a newer process has this worker's id). Raises
        NonFiniteGradientError, RowShapeError, ConfigurationError, ExchangeTimeoutError and
        PeerClosedError.
        """
        return self._client.send(FrameKind.PUSH, self.definition, keys, gradients)

    def start(self, keys: NDArray[np.int64], values: NDArray[np.float32]) -> Future[None]:
        """Give rows their first values, unless they have been started or pushed to before.

        Keys must not repeat. Raises RowShapeError, and as `push` does.
        """
        if np.unique(keys).size != keys.size:
            raise RowShapeError("keys repeat; give each row its first values once")
        return self._client.send(FrameKind.START, self.definition, keys, values)

    def pull(self, keys: NDArray[np.int64]) -> Future[PulledRows]:
        """Ask for the rows of keys, in the keys' order; they hold this worker's earlier pushes.

        Rows of hot keys may come from a switch. They may lack this worker's latest pushes then, and
        their number of updates is UNKNOWN_UPDATES.

        The future's errors: ExchangeTimeoutError (a slower worker does not advance; names it),
        RowTableFullError, ServerLostError. Raises RowShapeError and ConfigurationError.
        """
        return self._client.pull(self.definition, keys)

    def push_pull(
        self,
        keys: NDArray[np.int64],
        gradients: NDArray[np.float32],
        wanted: NDArray[np.int64],
    ) -> tuple[Future[None], Future[PulledRows]]:
        """Push gradients, and pull rows that hold them."""
        return self.push(keys, gradients), self.pull(wanted)


@final
class _Gathering(Generic[_Result]):
    """A future that is done when all servers have answered, or the first has failed."""

    def __init__(self, num_parts: int, result: Callable[[], _Result]) -> None:
        self.future: Future[_Result] = Future()
        self.future.set_running_or_notify_cancel()  # sent frames cannot be cancelled
        self._remaining = num_parts
        self._error: HostlibError | None = None
        self._result = result
        if not num_parts:
            self.future.set_result(result())

    def take(self, error: HostlibError | None) -> None:
        """Take a server's answer, in the loop's thread."""
        self._remaining -= 1
        self._error = self._error or error
        if self._remaining:
            return
        if self._error is not None:
            self.future.set_exception(self._error)
        else:
            self.future.set_result(self._result())

    def fail(self, error: HostlibError) -> None:
        """Fail: nothing was sent."""
        if not self.future.done():
            self.future.set_exception(error)


def _check_finite(name: str, keys: NDArray[np.int64], gradients: NDArray[np.float32]) -> None:
    """Raise NonFiniteGradientError that names the first bad position and its key."""
    is_finite = np.isfinite(gradients)
    if not is_finite.all():
        position = int(is_finite.all(axis=1).argmin())
        raise NonFiniteGradientError(
            f"gradients of key {keys[position]} of table {name!r}, at {position}: NaN or infinity;"
            " nothing was applied. Clip or scale the gradients before they are pushed",
            position,
            int(keys[position]),
        )


def _split(
    keys: NDArray[np.int64], gradients: NDArray[np.float32], num_shards: int
) -> list[tuple[int, memoryview, int]]:
    """Return shard, payload and number of keys of each server that gets some."""
    parts: list[tuple[int, memoryview, int]] = []
    for shard, places in _places(keys, num_shards):
        key_bytes = KEY_BYTES * places.size
        payload = np.empty(key_bytes + VALUE_BYTES * places.size * gradients.shape[1], np.uint8)
        own_keys = payload[:key_bytes].view(np.int64)
        own_gradients = payload[key_bytes:].view(np.float32).reshape(places.size, -1)
        if places.size == keys.size:
            own_keys[:], own_gradients[:] = keys, gradients
        else:
            # With mode "raise", numpy would first collect them in an array of its own.
            keys.take(places, out=own_keys, mode="clip")
            gradients.take(places, axis=0, out=own_gradients, mode="clip")
        parts.append((shard, payload.data, places.size))
    return parts


def _places(keys: NDArray[np.int64], num_shards: int) -> list[tuple[int, NDArray[np.int64]]]:
    """Return each shard that has some of the keys, with their positions in rising order."""
    found = partition(keys, num_shards)
    parts = np.split(found.order, np.cumsum(found.counts)[:-1])
    return [(shard, places) for shard, places in enumerate(parts) if places.size]


@final
class _Rows:
    """Rows of a pull, as servers answer."""

    def __init__(
        self, parts: list[tuple[int, NDArray[np.int64]]], num_keys: int, width: int
    ) -> None:
        self._places = dict(parts)
        self._num_keys = num_keys
        self._width = width
        self._rows: PulledRows | None = None

    def add(self, shard: int, rows: PulledRows) -> None:
        """Take the rows of a server."""
        places = self._places[shard]
        if places.size == self._num_keys:
            self._rows = rows  # all come from one server, in the keys' order
            return
        values, updates = self.result()
        values[places], updates[places] = rows

    def result(self) -> PulledRows:
        """Return all rows."""
        if self._rows is None:
            values = np.empty((self._num_keys, self._width), np.float32)
            self._rows = PulledRows(values, np.empty(self._num_keys, np.uint32))
        return self._rows
