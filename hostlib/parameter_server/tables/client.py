# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sparse tables on parameter servers, for a worker."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from ...closable import Closable
from ...errors import (
    ConfigurationError,
    ExchangeTimeoutError,
    HostlibError,
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
from ..rows import PulledRows, Versions
from ..rows.optimisers import check_array
from .change import MAX_OPEN_REQUESTS, pack_rate
from .definition import TableDefinition
from .parts import GatheredRows, Gathering, check_finite, places_of, split
from .session import ShardSession
from .state import VALUE_BYTES, VERSION_BYTES

MAX_OPEN_BYTES: Final = 256 << 20
"""Gradients without a receipt; a push that would exceed them waits."""
_CLOSED: Final = "the table client is closed; make a new one"


@final
class TableClient(Closable):
    """Tables whose rows are spread over servers by their keys; safe from any thread.

    `servers`: (address, port) by shard, the same on all workers. The constructor waits until all
    servers have answered. Raises ServerLostError, PeerRefusedError, ExchangeTimeoutError and
    CredentialsError.
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
        options.require_choice()
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
            return ServerRows(
                self._loop,
                session,
                options,
                choice,
                make_counts=make_counts,
                meter=session.switch_meter,
            )

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
                    credentials=options.credentials,
                    server_role=options.server_role,
                ),
                self._incarnation,
                options=options,
                latency=self._latency,
                make_hot=None if options.use_hot_rows is HotRowUse.NEVER else make_hot,
            )
            for shard, address in enumerate(servers)
        ]
        for session in self._sessions:
            session.num_servers = len(servers)
        self._loop.on_failure(self._end)
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
    def incarnation(self) -> int:
        """What this process calls itself at the servers."""
        return self._incarnation

    @property
    def loop(self) -> EventLoop:
        """The thread of the connections."""
        return self._loop

    @property
    def sessions(self) -> Sequence[ShardSession]:
        """The sessions with the servers, for the loop's thread."""
        return self._sessions

    def replace_session(self, session: ShardSession) -> None:
        """Let a server's replica answer from now on; in the loop's thread."""
        old, self._sessions[session.shard] = self._sessions[session.shard], session
        old.hand_over(session)

    @property
    def num_shards(self) -> int:
        """Number of servers."""
        return len(self._sessions)

    @property
    def versions(self) -> Versions:
        """The last version of each server's tables that this worker has heard of."""
        return np.array([session.version for session in self._sessions], np.uint64)

    def define(self, definition: TableDefinition) -> SparseTable:
        """Define a table, or check that it was defined alike; wait for all servers.

        Raises PeerMismatchError, ConfigurationError, ServerLostError and ExchangeTimeoutError.
        """
        payload = memoryview(definition.pack())
        gathering = Gathering[None](self.num_shards, lambda: None)

        def define() -> None:
            for session in self._sessions:
                session.change(FrameKind.DEFINE, payload, gathering.take)
                if definition.hot_keys and session.hot is not None:
                    session.hot.count_keys(definition.number, definition.sketch_capacity)

        self._post(define)
        self._wait(gathering.future, f"definition of table {definition.name!r}")
        return SparseTable(self, definition)

    def advance(self) -> Future[Versions]:
        """End this worker's iteration: all its pushes of it have been made.

        Done when all servers know it; the result is that of `SparseTable.push`. Workers that pull
        from a table with a staleness wait for it.

        The future's errors are those of `SparseTable.push`. After a StorageError or a
        ServerLostError, call it again, before further pushes: it then asks those servers alone that
        have not ended the iteration. RowTableError: the iteration has ended, but the sums of some
        table were refused; only the last worker to end it learns of that.

        Waits, and raises, as `SparseTable.push` does.
        """
        return self._ask_all(self.end_iteration)

    @property
    def iteration(self) -> int:
        """How many iterations this worker has ended at all servers; for the loop's thread."""
        return min(session.clock - session.num_ahead for session in self._sessions)

    def end_iteration(self, gathering: Gathering[Versions]) -> None:
        """Do what `advance` does, in the loop's thread."""
        ended = self.iteration
        for session in self._sessions:
            if session.clock - session.num_ahead == ended:
                session.change(FrameKind.ADVANCE, memoryview(b""), gathering.take)
            else:
                gathering.take(None)

    def set_learning_rate(self, definition: TableDefinition, rate: float) -> Future[Versions]:
        """Set a table's learning rate; `SparseTable.set_learning_rate` says the rest."""
        checked = definition.optimiser.with_rate(rate).rate
        assert checked is not None
        payload = memoryview(pack_rate(checked))

        def set_rate(gathering: Gathering[Versions]) -> None:
            for session in self._sessions:
                session.change(FrameKind.RATE, payload, gathering.take, table=definition.number)

        return self._ask_all(set_rate)

    def _ask_all(self, ask: Callable[[Gathering[Versions]], None]) -> Future[Versions]:
        """Let `ask` send a small change to all servers, in the loop's thread."""
        self._reserve(0)
        gathering = Gathering(self.num_shards, lambda: self.versions)
        gathering.future.add_done_callback(lambda _: self._release(0))
        self._post_or_fail(lambda: ask(gathering), gathering)
        return gathering.future

    def pause_latency_log(self, is_paused: bool) -> None:
        """Record no push or pull from now on, or record them again: of the training alone, say.

        Servers go on measuring until theirs is paused, too. Raises ConfigurationError without
        ClientOptions.latency_log.
        """
        log = self._latency
        if log is None:
            raise ConfigurationError(
                "this client has no latency log; give ClientOptions.latency_log"
            )
        self._loop.run(lambda: log.pause(is_paused))

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

    def send(
        self,
        kind: FrameKind,
        definition: TableDefinition,
        keys: NDArray[np.int64],
        gradients: NDArray[np.float32],
    ) -> Future[Versions]:
        """Send a PUSH or START to the servers of the keys; `SparseTable` says the rest."""
        check_array("keys", keys, np.int64, (keys.size,))
        check_array("gradients", gradients, np.float32, (keys.size, definition.width))
        check_finite(definition.name, keys, gradients)
        parts = split(keys, gradients, self.num_shards)
        size = sum(payload.nbytes for _, payload, _ in parts)
        self._check_size(max((payload.nbytes for _, payload, _ in parts), default=0))
        self._reserve(size)
        gathering = Gathering(len(parts), lambda: self.versions)
        gathering.future.add_done_callback(lambda _: self._release(size))

        def send() -> None:
            if kind is FrameKind.PUSH:
                self._begin_call()
            for shard, payload, num_keys in parts:
                session, table = self._sessions[shard], definition.number
                if definition.hot_keys and session.hot is not None and kind is FrameKind.PUSH:
                    session.hot.push(table, payload, num_keys, gathering.take)
                else:
                    session.change(kind, payload, gathering.take, table=table, num_keys=num_keys)
            self._end_call()

        self._post_or_fail(send, gathering)
        return gathering.future

    def pull(
        self, definition: TableDefinition, keys: NDArray[np.int64], *, is_model: bool = False
    ) -> Future[PulledRows]:
        """Ask the servers for the rows of keys; `SparseTable.pull` says the rest.

        `is_model`: as of `DenseTensor.read`.
        """
        check_array("keys", keys, np.int64, (keys.size,))
        parts = places_of(keys, self.num_shards)
        # By a copy of the keys: the caller's may change.
        wanted = {shard: keys.take(places) for shard, places in parts}
        most = max((each.size for each in wanted.values()), default=0)
        self._check_size(most * VALUE_BYTES * (definition.width + 1) + VERSION_BYTES)
        collected = GatheredRows(parts, keys.size, definition.width, self.num_shards)
        gathering = Gathering(len(parts), collected.result)

        def ask(shard: int) -> None:
            def take(rows: PulledRows | HostlibError) -> None:
                if isinstance(rows, HostlibError):
                    gathering.take(rows)
                    return
                collected.add(shard, rows)
                self._sessions[shard].note_parsed()
                gathering.take(None)

            session = self._sessions[shard]
            asked = definition.number, wanted[shard], definition.width, take
            if definition.hot_keys and session.hot is not None:
                session.hot.pull(*asked)
            else:
                session.pull(*asked, is_model=is_model)

        def ask_all() -> None:
            self._begin_call()
            for shard in wanted:
                ask(shard)
            self._end_call()

        self._post_or_fail(ask_all, gathering)
        return gathering.future

    def _begin_call(self) -> None:
        if self._latency is not None:
            self._latency.begin_call()

    def _end_call(self) -> None:
        if self._latency is not None:
            self._latency.end_call()

    def _enter(self) -> None:
        gathering = Gathering[None](self.num_shards, lambda: None)

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

    def _post_or_fail(self, call: Callable[[], None], gathering: Gathering[Any]) -> None:
        try:
            self._post(call)
        except PeerClosedError as error:
            gathering.fail(error)

    def _post(self, call: Callable[[], None]) -> None:
        try:
            self._loop.post(call)
        except PeerClosedError as error:
            raise self._loop.failure or PeerClosedError(_CLOSED) from error

    def _end(self, error: PeerClosedError | None = None) -> None:
        for session in self._sessions:
            session.close(error or PeerClosedError(_CLOSED))


@final
class SparseTable:
    """A table of a client."""

    def __init__(self, client: TableClient, definition: TableDefinition) -> None:
        self.definition = definition
        self._client = client

    def push(self, keys: NDArray[np.int64], gradients: NDArray[np.float32]) -> Future[Versions]:
        """Send gradients of shape (number of keys, width); return at once with a future.

        It is done when the servers have applied them, and have them on disk if they keep a log; in
        a synchronous table, they are applied later, with those of the other workers. Gradients of
        a key that repeats are added first. The arrays may change after the call.

        The result: a version of each server's tables, of shape (servers,), at which its keys of the
        push had been taken. It is the last one that this worker has heard of, so others may have
        changed the tables in between.

        In a table with hot keys, gradients of these may go to a switch, which adds up those of
        several workers: they are rounded to multiples of a power of two that the server chooses for
        their row. Await the futures before `advance` if no push of an ended iteration may be
        missing after a crash of this process. The result says nothing of these keys.

        Waits while too many gradients have no receipt. The future's errors: RowTableFullError,
        DiskFullError and other StorageErrors (nothing of this server's part has an effect),
        ServerLostError and LogBrokenError (unknown), ServerRestartedError (the server lost its
        tables), PeerRefusedError (a newer process has this worker's id). Raises
        NonFiniteGradientError, RowShapeError, ConfigurationError, ExchangeTimeoutError and
        PeerClosedError.
        """
        return self._client.send(FrameKind.PUSH, self.definition, keys, gradients)

    def start(self, keys: NDArray[np.int64], values: NDArray[np.float32]) -> Future[Versions]:
        """Give rows their first values, unless they have been started or pushed to before.

        Keys must not repeat. Raises RowShapeError, and as `push` does.
        """
        if np.unique(keys).size != keys.size:
            raise RowShapeError("keys repeat; give each row its first values once")
        return self._client.send(FrameKind.START, self.definition, keys, values)

    def set_learning_rate(self, rate: float) -> Future[Versions]:
        """Set the learning rate of the servers' optimiser: of Ftrl, alpha.

        This worker's later pushes have it, and not its earlier ones. In a synchronous table, it
        takes effect at the end of this worker's iteration: the sums of that iteration have it. If
        workers give different rates in one iteration, that of the highest worker id counts; in the
        other modes, the one that comes last.

        In a table with hot keys, earlier pushes that wait for a switch may have it, too: await
        their futures first. The rate stays when workers or servers are started again; the
        definition keeps the one that the table began with.

        The future's result and errors, and what is raised, are those of `push`. Raises
        ConfigurationError for a rate that is not above 0 and finite, and for GradientSum, which has
        none.
        """
        return self._client.set_learning_rate(self.definition, rate)

    def pull(self, keys: NDArray[np.int64]) -> Future[PulledRows]:
        """Ask for the rows of keys, in the keys' order; they hold this worker's earlier pushes.

        Their `versions` of shape (servers,) are those at which the rows were read: what is read of
        a server at one version is the same, and a version less an earlier one is how many changes
        the server has made since.

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
    ) -> tuple[Future[Versions], Future[PulledRows]]:
        """Push gradients, and pull rows that hold them."""
        return self.push(keys, gradients), self.pull(wanted)
