# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sparse tables on parameter servers, for a worker."""

from __future__ import annotations

import secrets
import threading
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
from ..options import GENERATION, ClientOptions
from ..rows import PulledRows, partition
from ..rows.optimisers import check_array
from .definition import TableDefinition
from .session import ShardSession
from .state import KEY_BYTES, VALUE_BYTES

MAX_OPEN_BYTES: Final = 256 << 20
"""Gradients without a receipt; a push that would exceed them waits."""
_Result = TypeVar("_Result")


@final
class TableClient:
    """Tables whose rows are spread over servers by their keys; safe from any thread.

    `servers`: (address, port) by shard, the same on all workers. The constructor waits until all
    servers have answered. Raises ServerLostError, PeerRefusedError and ExchangeTimeoutError.
    """

    def __init__(self, servers: Sequence[tuple[str, int]], options: ClientOptions) -> None:
        if not servers:
            raise ConfigurationError("no parameter servers; give the address of at least one")
        self.options = options
        self._incarnation = secrets.randbits(64) | 1
        self._open_bytes = 0
        self._changed = threading.Condition()
        self._is_closed = False
        self._latency: WorkerLog | None = None
        if options.latency_log is not None:
            self._latency = WorkerLog(
                options.latency_log, worker_id=options.worker_id, job=options.job
            )
        self._loop = EventLoop("switchfold-tables")
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
                unreachable_s=options.reconnect_s,
                latency=self._latency,
            )
            for shard, address in enumerate(servers)
        ]
        try:
            self._enter()
        except BaseException:
            self.close()
            raise

    @property
    def num_shards(self) -> int:
        """Number of servers."""
        return len(self._sessions)

    @property
    def clock(self) -> int:
        """How many iterations this worker, in all its processes, had ended at its start.

        After a crash in `advance`, some servers may know of one more than others: this is the
        smallest number.
        """
        return min(session.clock for session in self._sessions)

    def define(self, definition: TableDefinition) -> SparseTable:
        """Define a table, or check that it was defined alike; wait for all servers.

        Raises PeerMismatchError, ConfigurationError, ServerLostError and ExchangeTimeoutError.
        """
        payload = memoryview(definition.pack())
        gathering = _Gathering[None](self.num_shards, lambda: None)
        self._loop.post(lambda: self._change_all(FrameKind.DEFINE, payload, gathering))
        self._wait(gathering.future, f"definition of table {definition.name!r}")
        return SparseTable(self, definition)

    def advance(self) -> Future[None]:
        """End this worker's iteration: all its pushes of it have been made.

        Done when all servers know it. Workers that pull from a table with a staleness wait for it.
        """
        gathering = _Gathering[None](self.num_shards, lambda: None)
        nothing = memoryview(b"")
        self._loop.post(lambda: self._change_all(FrameKind.ADVANCE, nothing, gathering))
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
                self._sessions[shard].change(
                    kind,
                    payload,
                    gathering.take,
                    table=definition.number,
                    num_keys=num_keys,
                )

        self._post_or_fail(send, gathering)
        return gathering.future

    def pull(self, definition: TableDefinition, keys: NDArray[np.int64]) -> Future[PulledRows]:
        """Ask the servers for the rows of keys; `SparseTable.pull` says the rest."""
        check_array("keys", keys, np.int64, (keys.size,))
        self._check_size(keys.size * VALUE_BYTES * (definition.width + 1))
        found = partition(keys, self.num_shards)
        values = np.empty((keys.size, definition.width), np.float32)
        updates = np.empty(keys.size, np.uint32)
        shards = np.flatnonzero(found.counts).tolist()
        gathering = _Gathering(len(shards), lambda: PulledRows(values, updates))
        ends = np.cumsum(found.counts)

        def ask(shard: int) -> None:
            places = found.order[ends[shard] - found.counts[shard] : ends[shard]]

            def take(rows: PulledRows | HostlibError) -> None:
                if isinstance(rows, HostlibError):
                    gathering.take(rows)
                    return
                values[places], updates[places] = rows
                self._sessions[shard].note_parsed()
                gathering.take(None)

            wanted = np.ascontiguousarray(keys[places])
            self._sessions[shard].pull(definition.number, wanted, definition.width, take)

        def ask_all() -> None:
            self._begin_call()
            for shard in shards:
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

        self._loop.post(enter)
        self._wait(gathering.future, "the first connection")

    def _change_all(
        self, kind: FrameKind, payload: memoryview, gathering: _Gathering[None]
    ) -> None:
        for session in self._sessions:
            session.change(kind, payload, gathering.take)

    def _wait(self, future: Future[None], what: str) -> None:
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
                f"a batch of {num_bytes} bytes; give at most {MAX_BATCH_BYTES} to one server: use"
                " several calls"
            )

    def _reserve(self, size: int) -> None:
        def has_room() -> bool:
            return self._is_closed or self._open_bytes + size <= max(size, MAX_OPEN_BYTES)

        with self._changed:
            if not self._changed.wait_for(has_room, self.options.timeout_s):
                raise ExchangeTimeoutError(
                    f"{self._open_bytes} bytes of gradients have had no receipt for"
                    f" {self.options.timeout_s:g} s, and {size} more would exceed the limit of"
                    f" {MAX_OPEN_BYTES}; are the servers' disks too slow?",
                    [],
                )
            if self._is_closed:
                raise PeerClosedError("the table client is closed")
            self._open_bytes += size

    def _release(self, size: int) -> None:
        with self._changed:
            self._open_bytes -= size
            self._changed.notify_all()

    def _post_or_fail(self, call: Callable[[], None], gathering: _Gathering[_Result]) -> None:
        try:
            self._loop.post(call)
        except PeerClosedError as error:
            gathering.fail(error)

    def _end(self) -> None:
        for session in self._sessions:
            session.close(PeerClosedError("the table client is closed"))


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

        Waits while too many gradients have no receipt. The future's errors: RowTableFullError,
        DiskFullError and other StorageErrors (nothing of this server's part has an effect),
        ServerLostError (unknown). Raises NonFiniteGradientError, RowShapeError, ConfigurationError,
        ExchangeTimeoutError and PeerClosedError.
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
    found = partition(keys, num_shards)
    parts: list[tuple[int, memoryview, int]] = []
    end = 0
    for shard, count in enumerate(found.counts.tolist()):
        first, end = end, end + count
        if not count:
            continue
        places = found.order[first:end]
        key_bytes = KEY_BYTES * count
        payload = np.empty(key_bytes + VALUE_BYTES * count * gradients.shape[1], np.uint8)
        payload[:key_bytes].view(np.int64)[:] = keys[places]
        payload[key_bytes:].view(np.float32).reshape(count, -1)[:] = gradients[places]
        parts.append((shard, payload.data, count))
    return parts
