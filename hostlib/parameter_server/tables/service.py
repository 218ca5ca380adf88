# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The tables of one server, behind its connections and in front of its log.

A request is checked, logged, applied when its record is durable, and receipted. So the tables never
hold what the log has not got, and a receipt means that nothing loses the request any more. Without
a log it is applied at once.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import time
import zlib
from collections import Counter, deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ...errors import (
    ConfigurationError,
    HostlibError,
    PeerClosedError,
    PeerProtocolError,
    StorageError,
)
from ...peers.event_loop import EventLoop
from ...peers.frames import MAX_BATCH_BYTES, FrameKind
from ..hot_server.changes import HotChange, HotFence, HotLayout
from ..hot_server.rounds import RowsOfRounds
from ..hot_server.state import HotState
from ..rows import PulledRows
from ..storage import LogEvents, LogOptions, ServerStorage
from .change import MAX_OPEN_REQUESTS, UPDATES, ShardPlace, TableChange
from .change_queue import NOTHING, ChangeQueue, QueuedChange
from .defined_table import DefinedTable
from .denial import is_replaced, too_late, was_denied
from .recovery import recover
from .service_seams import (
    HotListener,
    ModelKeeper,
    PacedCaller,
    TableCaller,
    TablePull,
    UpdateListener,
)
from .snapshot import Snapshots
from .state import KEPT_INCARNATIONS, TableState

SNAPSHOT_BYTES = 1 << 30
"""Growth of the log after which there is a new snapshot."""
_CHECK_S = 0.5
_OF_HOT_ROWS = {FrameKind.DECIDE, FrameKind.SKETCH, FrameKind.BATCHES}
_OF_MODELS = {FrameKind.MODEL_CAME, FrameKind.NOT_SENT_ON}
_UNLOGGED = {FrameKind.ENTER, FrameKind.HEARTBEAT} | _OF_HOT_ROWS | _OF_MODELS
"""Frames that need no room in the log: there are few of them."""
_LOG_OPTIONS = LogOptions(waiting_bytes=2 * MAX_BATCH_BYTES)
_logger = logging.getLogger(__name__)


class _Owed(NamedTuple):
    """Claimed rounds whose record the log refused: they are to count no worker."""

    generation: int
    rounds: RowsOfRounds


@final
class TableService:
    """Runs in the loop's thread, except for the constructor and `close`.

    With a `directory`, the log is there, and what it holds is applied before the constructor
    returns. Raises StorageError, ForeignLogError if it is the log of another shard than `shard`,
    and what `WriteAheadLog` raises.
    """

    def __init__(  # noqa: PLR0913 - the options of a server
        self,
        loop: EventLoop,
        num_workers: int,
        *,
        shard: int = 0,
        directory: Path | None = None,
        log_options: LogOptions | None = None,
        snapshot_bytes: int = SNAPSHOT_BYTES,
        timeout_s: float = 30.0,
    ) -> None:
        self.state = TableState(num_workers)
        self.began_ns = 0
        """When applying, or reading rows, last began; on the loop's clock of measurements."""
        self.num_applied = 0
        """Lsn of the last record that was applied; without a log, the number of changes.

        Workers know it as the version of the tables.
        """
        self._shard = shard
        self._loop = loop
        self._timeout_s = timeout_s
        self._clients: dict[int, TableCaller] = {}
        self._accepted = [0] * num_workers
        """By worker, the last request that is logged or applied."""
        self._incarnations = [0] * num_workers
        self._replaced: list[deque[int]] = [
            deque(maxlen=KEPT_INCARNATIONS) for _ in range(num_workers)
        ]
        self._denials: list[deque[tuple[int, HostlibError]]] = [deque() for _ in range(num_workers)]
        self._owed: list[_Owed] = []
        self.hot: HotListener | None = None
        """Learns of changes that matter to hot rows."""
        self.updates: UpdateListener | None = None
        """Learns of scheduled updates."""
        self.models: ModelKeeper | None = None
        """Has models leave when the scheduler lets them; None: all pulls are answered at once."""
        self._pulls: list[TablePull] = []
        self.full_identity = secrets.token_bytes(16)
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
            self.full_identity = self._storage.log.identity.bytes
            try:
                self._recover(self._storage)
            except BaseException:
                self._storage.close()
                raise
            self._snapshots = Snapshots(self._storage, self.state, snapshot_bytes)
        self.log = None if self._storage is None else self._storage.log
        """None: the tables do not outlive the server."""
        self._queue = ChangeQueue(self.log, num_workers, self._apply, self._fail)
        self.identity = zlib.crc32(self.full_identity)
        """32 bits for workers, which change with `full_identity`."""
        loop.run(self._watch)

    def close(self) -> None:
        """Make durable what is logged, and close the log."""
        if self._snapshots is not None:
            self._snapshots.close()
        if self._storage is not None:
            self._storage.close()

    def takes(self, kind: FrameKind) -> bool:
        """Return whether clients may pass on such a frame; if not, they wait for `on_room`."""
        if self._storage is None or kind in _UNLOGGED:
            return True
        # A pull waits for the pushes before it, and none of those may still have to be logged.
        return not self._queue.is_held and (kind is FrameKind.PULL or self._queue.has_room)

    def enter(self, client: TableCaller, request: TableChange) -> None:
        """Answer a worker through this client from now on; the request is its ENTER.

        The newest process of a worker wins. Raises PeerRefusedError for one that it replaced, and
        PeerMismatchError for one that has another number of servers.
        """
        worker_id, incarnation = request.worker_id, request.incarnation
        placement = ShardPlace(self._shard, request.table) if request.table else None
        if placement is not None:
            self.state.check_placement(worker_id, placement)
        if incarnation in (*self.state.workers[worker_id].replaced, *self._replaced[worker_id]):
            raise is_replaced(worker_id)
        current = self._incarnations[worker_id]
        older = self._clients.get(worker_id)
        self._clients[worker_id] = client
        if older is not None and older is not client:
            self.detach(worker_id, older)
            if incarnation == current:
                older.drop()  # what it sent last comes again through this one
            else:
                older.refuse(is_replaced(worker_id))
        if incarnation == current:
            # Otherwise the ENTER waits for the log, and then this client gets the answer.
            if self.state.workers[worker_id].incarnation == incarnation:
                client.on_applied(request)
            return
        if current:
            self._replaced[worker_id].append(current)
        self._incarnations[worker_id], self._accepted[worker_id] = incarnation, 0
        self._denials[worker_id].clear()
        # What its older process has in open rounds must not count as the new one's.
        claimed = self.state.hot.claim_all()
        request = request._replace(num_keys=len(self.state.workers))
        payload = NOTHING if placement is None else memoryview(placement.pack())
        self._take(QueuedChange(request, payload, claimed))

    def detach(self, worker_id: int, client: TableCaller) -> None:
        """Learn that a connection is gone; its pulls are forgotten, as the worker asks again."""
        if self._clients.get(worker_id) is client:
            del self._clients[worker_id]
        self._pulls = [pull for pull in self._pulls if pull.client is not client]
        if self.models is not None:
            self.models.detach(client)

    def accepted(self, worker_id: int) -> int:
        """Return the last request of the worker's process that need not come again."""
        return self._accepted[worker_id]

    def num_open(self, worker_id: int) -> int:
        """Return how far before `accepted` the first request is that is not durable, plus 1."""
        waiting = self._queue.requests()
        numbers = (
            request.number
            for request in waiting
            if request.worker_id == worker_id and request.kind not in UPDATES
        )
        accepted = self._accepted[worker_id]
        return accepted + 1 - min(numbers, default=accepted + 1)

    def denials(self, worker_id: int) -> list[tuple[int, HostlibError]]:
        """Return the last requests of the worker's process that had no effect."""
        return list(self._denials[worker_id])

    def submit(self, request: TableChange, payload: memoryview) -> None:
        """Take a DEFINE, START, PUSH, RATE or ADVANCE, whose payload then belongs to the service.

        Requests that were taken before are ignored. One that is denied counts as taken.
        """
        worker_id = request.worker_id
        if request.incarnation != self._incarnations[worker_id]:
            raise PeerProtocolError(f"{request.kind.name} frame before the answer to ENTER")
        if request.number <= self._accepted[worker_id]:
            return
        try:
            if self.updates is not None and (refusal := self.updates.refusal(request)):
                raise refusal
            self.state.check(request, payload, is_next=self._storage is None)
        except HostlibError as error:
            self._accepted[worker_id] = request.number
            self._deny(request, error)
            return
        self._accepted[worker_id] = request.number
        self._take(QueuedChange(request, payload))

    def incarnation(self, worker_id: int) -> int:
        """Return that of the worker's newest process; 0: none has entered."""
        return self._incarnations[worker_id]

    def submit_update(self, request: TableChange, payload: memoryview) -> None:
        """Take a TRANSFER or SUM, whose payload begins as it is logged and now belongs here.

        `updates` learns of its end. The caller sees to it that none comes twice at a time.
        """
        try:
            self.state.check(request, payload, is_next=self._storage is None)
        except HostlibError as error:
            self._deny(request, error)
            return
        self._take(QueuedChange(request, payload))

    @property
    def version(self) -> int:
        """Of what the tables hold: two reads at one version see the same values."""
        return self.num_applied

    @property
    def hot_state(self) -> HotState:
        """The hot rows."""
        return self.state.hot

    @property
    def hot_tables(self) -> Mapping[int, DefinedTable]:
        """All tables by number."""
        return self.state.tables

    @property
    def counters(self) -> Counter[str]:
        """Those of the state, and of hot rows."""
        return self.state.counters

    @property
    def takes_hot(self) -> bool:
        """Whether sums of hot rows may come; if not, the switch can repeat them."""
        return self._queue.has_room

    def submit_hot(self, change: HotChange) -> None:
        """Take a change of hot rows; the rounds of sums and fences are claimed."""
        if isinstance(change, HotLayout):
            claimed = self.state.hot.claim_layout(change)
        elif change.decided.rows.size:
            claimed = change.decided
        else:
            return
        self._take(QueuedChange(change, claimed=claimed))

    def _take(self, change: QueuedChange) -> None:
        self._queue.take(change)
        if self._storage is None:
            self._serve_pulls()

    def pull(
        self,
        client: TableCaller,
        origin: tuple[int, int, int],
        table: int,
        keys: NDArray[np.int64],
        model_to: PacedCaller | None = None,
    ) -> None:
        """Answer with rows that hold the worker's own pushes so far; wait for those if need be.

        `origin`: the worker's id, the pull's number, and the worker's clock when it asked.
        `model_to`: see TablePull.
        """
        worker_id, number, clock = origin
        try:
            self.state.table(table)
        except ConfigurationError as error:
            client.on_denied(number, error, is_pull=True)
            return
        lsn = self._queue.last_lsn(worker_id)
        deadline_s = time.monotonic() + self._timeout_s
        pull = TablePull(client, worker_id, number, table, clock, keys, lsn, deadline_s, model_to)
        self._pulls.append(pull)
        self._serve_pulls()

    def _post(self, call: Callable[[], None]) -> None:
        with contextlib.suppress(PeerClosedError):  # the server is closed: nobody waits for it
            self._loop.post(call)

    def _recover(self, storage: ServerStorage) -> None:
        self.resume(storage.log.durable_lsn, recover(self.state, storage, self._shard))

    def resume(self, lsn: int, reasons: list[dict[int, HostlibError]]) -> None:
        """Go on from the state that records up to an lsn have made; `reasons`: see `recover`."""
        self.num_applied = lsn
        for worker_id, worker in enumerate(self.state.workers):
            self._accepted[worker_id] = worker.number
            self._incarnations[worker_id] = worker.incarnation
            self._denials[worker_id] = deque(
                (number, reasons[worker_id].get(number) or was_denied(number))
                for number in worker.denied
            )

    def _on_durable(self, lsn: int) -> None:
        self._queue.on_durable(lsn)
        self._go_on()

    def _on_failed(self, first_lsn: int, last_lsn: int, error: StorageError) -> None:
        self._queue.on_failed(first_lsn, last_lsn, error)
        self._go_on(error)

    def _go_on(self, error: StorageError | None = None) -> None:
        """Take what waits for the log."""
        if self._queue.take_held():
            self._on_room()
        self._serve_pulls()
        if self.updates is not None:
            self.updates.on_logged(error)

    def _on_room(self) -> None:
        for client in list(self._clients.values()):
            client.on_room()

    def _apply(self, change: QueuedChange, lsn: int, num_bytes: int) -> None:
        self.began_ns = self._loop.clock_ns()
        self.num_applied = lsn or self.num_applied + 1
        if isinstance(change.request, TableChange):
            self._apply_request(change.request, change.payload, lsn)
        else:
            self._apply_hot(change.request, lsn)
        if self._snapshots is not None:
            self._snapshots.note(lsn, num_bytes)

    def _apply_request(self, request: TableChange, payload: memoryview, lsn: int) -> None:
        try:
            decided = self.state.apply(request, payload, lsn=lsn)
        except HostlibError as error:
            self._deny(request, error)
        except Exception as error:  # a defect: the worker must not take the request for done
            _logger.exception("applying %s failed", request)
            text = f"applying request {request.number} failed: {error!r}; see the server's log"
            self._deny(request, PeerProtocolError(text))
        else:
            if self.hot is not None and decided is not None:
                self.hot.on_decided(decided)
            if request.kind in UPDATES:
                if self.updates is not None:
                    self.updates.on_update_applied(request)
                return
            client = self._client_of(request)
            if client is not None:
                client.on_applied(request)
            # After the receipt, which depends on nothing that is done for hot rows.
            is_batch = request.kind in (FrameKind.START, FrameKind.PUSH)
            if self.hot is not None and is_batch and self.hot.wants_batch(request.table):
                self.hot.on_batch(request.table, *self.state.batch(request, payload))
        if request.kind is FrameKind.ADVANCE:
            self._serve_pulls()  # before the records of the next iteration

    def _apply_hot(self, change: HotChange, lsn: int) -> None:
        try:
            decided = self.state.apply_hot(change, lsn=lsn)
        except Exception:  # a defect; the rounds may be open still, and workers ask about them
            _logger.exception("applying a change of hot rows failed")
            return
        if self.hot is not None:
            self.hot.on_decided(decided)
            if isinstance(change, HotLayout):
                self.hot.on_layout()

    def _fail(self, change: QueuedChange, error: HostlibError) -> None:
        """Learn that the log has not taken a change."""
        if change.claimed.rows.size:
            self._owed.append(_Owed(self.state.hot.generation, change.claimed))
        if isinstance(change.request, TableChange):
            self._deny(change.request, error)
            return
        _logger.warning("a change of hot rows has no effect: %s", error)
        if isinstance(change.request, HotLayout) and self.hot is not None:
            self.hot.on_layout_failed()

    def _fence_owed(self) -> None:
        """Decide the rounds whose records the log had refused, if it takes records again."""
        owed, self._owed = self._owed, []
        for generation, rounds in owed:
            open_rounds = rounds.where(self.state.hot.rounds.is_undecided(rounds))
            if generation == self.state.hot.generation and open_rounds.rows.size:
                self.submit_hot(HotFence(generation, open_rounds))

    def _deny(self, request: TableChange, error: HostlibError) -> None:
        _logger.warning(
            "request %d of worker %d has no effect: %s", request.number, request.worker_id, error
        )
        if request.kind in UPDATES:
            if self.updates is not None:
                self.updates.on_update_denied(request, error)
            return
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
        first_lsn = self._queue.first_lsn
        waiting: list[TablePull] = []
        for pull in self._pulls:
            has_own = not first_lsn or pull.lsn < first_lsn
            if not (has_own and self.state.may_pull(pull.clock, pull.table)):
                waiting.append(pull)
            elif pull.model_to is None or self.models is None or not self.models.keep(pull):
                self.answer(pull)
        self._pulls = waiting

    def answer(self, pull: TablePull) -> None:
        """Send the rows of a pull that need not wait any longer."""
        rows = self.rows_of(pull)
        if rows is not None:
            pull.client.on_rows(pull.number, pull.table, rows)

    def rows_of(self, pull: TablePull) -> PulledRows | None:
        """Read the rows of a pull as they are now; None if it was denied."""
        self.began_ns = self._loop.clock_ns()
        try:
            rows = self.state.pull(pull.table, pull.keys)
        except HostlibError as error:
            pull.client.on_denied(pull.number, error, is_pull=True)
            return None
        self.note_read(pull)
        return rows

    def note_read(self, pull: TablePull) -> None:
        """Learn that a worker gets the rows of a pull as they are now."""
        if self.updates is not None:
            self.updates.on_model_read(pull.worker_id, pull.table)

    def _watch(self) -> None:
        self._watch_pulls()
        self._fence_owed()
        self._loop.call_later(_CHECK_S, self._watch)

    def _watch_pulls(self) -> None:
        now_s = time.monotonic()
        for pull in [pull for pull in self._pulls if pull.deadline_s < now_s]:
            self._pulls.remove(pull)
            error = too_late(self.state, pull.worker_id, pull.table, pull.clock, self._timeout_s)
            pull.client.on_denied(pull.number, error, is_pull=True)
