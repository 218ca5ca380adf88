# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The tables of a server and what it knows of its workers: a state machine without input or output.

The same requests in the same order make the same state. So a server that was killed has its state
again once the records of its log are applied.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from ...errors import (
    ConfigurationError,
    PeerMismatchError,
    PeerProtocolError,
    RowMemoryError,
    RowTableError,
)
from ...hot_rows import EMPTY
from ...peers.frames import FrameKind
from ..hot_server.changes import HotChange, HotLayout
from ..hot_server.rounds import count_workers
from ..hot_server.state import DecidedRounds, HotState
from ..rows import PulledRows
from ..summed_updates import SumMember, are_open, count_update, is_open, unpack_members
from .change import (
    MAX_OPEN_REQUESTS,
    UPDATE_BYTES,
    ScheduledUpdate,
    ShardPlace,
    TableChange,
    unpack_rate,
)
from .defined_table import DefinedTable, Push, SetRate
from .definition import TableDefinition

KEY_BYTES: Final = 8
VALUE_BYTES: Final = 4
VERSION_BYTES: Final = 16
"""The versions behind rows: that of the tables, and the number of scheduled updates in them."""
MAX_TABLES: Final = 1 << 12
KEPT_INCARNATIONS: Final = 8
_logger = logging.getLogger(__name__)


@dataclass
class WorkerProgress:
    """What the tables know of a worker."""

    incarnation: int = 0
    """Of its newest process; 0: none has entered."""
    replaced: tuple[int, ...] = ()
    """Of its last processes before."""
    number: int = 0
    """The last request of this process that was applied, or denied when it was to be applied."""
    denied: list[int] = field(default_factory=list[int])
    """Of the last MAX_OPEN_REQUESTS numbers up to it, those whose requests had no effect.

    Requests that were denied before they were logged are among them: their numbers are missing.
    """
    clock: int = 0
    """How many iterations it has ended."""
    num_commits: int = 0
    """How many of its scheduled updates have been applied, from all its processes."""
    updates: list[int] = field(default_factory=list[int])
    """Numbers of this process's scheduled updates that have been applied, in rising order.

    Only those whose outcome the worker may not know yet: see `ScheduledUpdate.open_from`.
    """
    updates_from: int = 0
    """This process's scheduled updates before this number are over: none counts any more."""


@final
class TableState:
    """All tables of one shard, for workers 0 to `num_workers` - 1; not for several threads.

    `counters`: pushes, pushed_keys (both applied), commits (of scheduled updates), sums (of them
    that came added up), pulls,
    pulled_keys, closed_iterations, hot_sums (of rounds of hot rows), hot_pushes (the pushes in
    them), hot_fences (rounds that count no worker), refused_sums (sums that were not finite, or had
    no room, and were not applied).
    """

    def __init__(self, num_workers: int) -> None:
        self.workers = [WorkerProgress() for _ in range(num_workers)]
        self.tables: dict[int, DefinedTable] = {}
        self.placement: ShardPlace | None = None
        """None until a worker has said how many servers there are."""
        self.hot = HotState(num_workers)
        self.counters: Counter[str] = Counter()

    @property
    def clock(self) -> int:
        """How many iterations all workers have ended."""
        return min(worker.clock for worker in self.workers)

    @property
    def num_commits(self) -> int:
        """How many scheduled updates have been applied."""
        return sum(worker.num_commits for worker in self.workers)

    def check(self, request: TableChange, payload: memoryview, *, is_next: bool = False) -> None:
        """Raise what is wrong with a request; make the rows of a push, so that it has room.

        `is_next`: it is applied at once, which checks asynchronous pushes once more.

        Raises PeerProtocolError, ConfigurationError and RowTableError.
        """
        if request.kind is FrameKind.DEFINE:
            TableDefinition.unpack(bytes(payload))
        elif request.kind in (FrameKind.START, FrameKind.PUSH):
            table, keys, gradients = self._batch(request, payload)
            is_push = request.kind is FrameKind.PUSH
            if is_next and not (is_push and table.definition.is_synchronous):
                return
            table.prepare(keys, gradients)
        elif request.kind is FrameKind.TRANSFER:
            table, keys, gradients = self._scheduled(request, payload[UPDATE_BYTES:])
            if not is_next or table.definition.is_synchronous:
                table.prepare(keys, gradients)
        elif request.kind is FrameKind.SUM:
            _, table, keys, gradients = self._summed(request, payload)
            if not is_next:
                table.prepare(keys, gradients)
        elif request.kind is FrameKind.RATE:
            self.table(request.table).definition.optimiser.with_rate(unpack_rate(payload))

    def apply(
        self, request: TableChange, payload: memoryview, *, lsn: int = 0, is_replay: bool = False
    ) -> DecidedRounds | None:
        """Apply a request; `lsn` is that of its record, 0 without a log.

        Returns the rounds of hot rows that an ENTER has decided: nothing that the worker's older
        process has pushed counts from now on, unless it did before.

        Raises PeerMismatchError, ConfigurationError and RowTableError if the request has no effect;
        it is over then, too. An ADVANCE whose sums are refused counts as an end of the iteration.
        """
        worker = self.workers[request.worker_id]
        if request.kind is FrameKind.ENTER:
            return self._enter(request, payload)
        if request.kind is FrameKind.TRANSFER:
            self._commit(worker, request, payload, lsn, is_replay)
            return None
        if request.kind is FrameKind.SUM:
            self._commit_sum(request, payload, lsn, is_replay)
            return None
        if request.incarnation != worker.incarnation or request.number <= worker.number:
            return None  # of a process that was replaced meanwhile
        _count(worker, request.number)
        try:
            match request.kind:
                case FrameKind.DEFINE:
                    self._define(TableDefinition.unpack(bytes(payload)))
                case FrameKind.START:
                    table, keys, values = self._batch(request, payload)
                    table.start(keys, values, lsn, is_replay=is_replay)
                case FrameKind.PUSH:
                    self._push(request, payload, lsn, is_replay)
                case FrameKind.RATE:
                    self._set_rate(request, unpack_rate(payload))
                case _:
                    worker.clock += 1
                    if self.clock == worker.clock:
                        self._close(worker.clock - 1, lsn, is_replay)
        except Exception:
            worker.denied.append(request.number)
            raise
        return None

    def apply_hot(
        self, change: HotChange, *, lsn: int = 0, is_replay: bool = False
    ) -> DecidedRounds:
        """Apply a change of hot rows; return the rounds that it decided.

        Raises RowMemoryError in a replay, and StorageDamagedError.
        """
        decided, batches = self.hot.apply(change)
        num_pushes = count_workers(decided.rounds["bitmap"])
        self.counters["hot_sums"] += int((num_pushes > 0).sum())
        self.counters["hot_pushes"] += int(num_pushes.sum())
        self.counters["hot_fences"] += int((num_pushes == 0).sum())
        if isinstance(change, HotLayout):
            self._prepare(change, is_replay)
        for number, keys, gradients in batches:
            try:
                self.table(number).apply(keys, gradients, lsn, is_replay=is_replay)
            except RowTableError as error:
                self._refuse(error, is_replay)
        return decided

    def _prepare(self, change: HotLayout, is_replay: bool) -> None:
        """Make the rows of all hot keys, so that their sums have room."""
        for number, layout in change.served.layouts:
            table, keys = self.table(number), layout.keys[layout.keys != EMPTY]
            try:
                table.prepare(keys, np.zeros((keys.size, table.definition.width), np.float32))
            except RowTableError as error:
                self._refuse(error, is_replay)

    def _refuse(self, error: RowTableError, is_replay: bool) -> None:
        """Count what cannot be applied; a replay must not lose what had an effect before."""
        if is_replay and isinstance(error, RowMemoryError):
            raise error
        self.counters["refused_sums"] += 1
        _logger.error("a sum of hot rows has no effect: %s", error)

    def check_placement(self, worker_id: int, placement: ShardPlace) -> None:
        """Raise PeerMismatchError if a worker spreads keys over another number of servers."""
        if self.placement not in (None, placement):
            raise PeerMismatchError(
                f"worker {worker_id} has {placement.num_servers} servers, but this is"
                f" {self.placement}: give all workers the same list. `switchfold ps reshard` moves"
                " tables to another number of servers"
            )

    def may_pull(self, clock: int, number: int) -> bool:
        """Return whether all workers are as far as a table's staleness asks for at a clock."""
        staleness = self.tables[number].definition.staleness
        return staleness is None or clock - self.clock <= staleness

    def pull(self, number: int, keys: NDArray[np.int64]) -> PulledRows:
        """Return the rows of keys. Raises RowTableError."""
        self.counters["pulls"] += 1
        self.counters["pulled_keys"] += keys.size
        return self.tables[number].pull(keys)

    def table(self, number: int) -> DefinedTable:
        """Return a table. Raises ConfigurationError."""
        found = self.tables.get(number)
        if found is None:
            raise ConfigurationError(
                f"table {number:#010x} has not been defined on this server; call `define` first"
            )
        return found

    def batch(
        self, request: TableChange, payload: memoryview
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return keys and gradients of a PUSH, or first values of a START."""
        _, keys, values = self._batch(request, payload)
        return keys, values

    def updates(self) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.uint32]]]:
        """Yield table number, keys, and their numbers of updates, until all rows are named."""
        for number, table in self.tables.items():
            for keys, updates in table.rows.updates():
                yield number, keys, updates

    def _enter(self, request: TableChange, payload: memoryview) -> DecidedRounds | None:
        if payload:
            placement = ShardPlace.unpack(payload)
            self.check_placement(request.worker_id, placement)
            self.placement = placement
        worker = self.workers[request.worker_id]
        if request.incarnation == worker.incarnation:
            return None
        if worker.incarnation:
            worker.replaced = (*worker.replaced, worker.incarnation)[-KEPT_INCARNATIONS:]
        worker.incarnation, worker.number = request.incarnation, 0
        worker.denied.clear()
        worker.updates.clear()
        worker.updates_from = 0
        # The new process does the iteration that the old one did not end once more.
        for table in self.tables.values():
            begun = table.waiting.get(worker.clock, [])
            begun[:] = [push for push in begun if push.worker_id != request.worker_id]
            rates = table.rates.get(worker.clock, [])
            rates[:] = [rate for rate in rates if rate.worker_id != request.worker_id]
        return self.hot.enter(request.worker_id)

    def _define(self, definition: TableDefinition) -> None:
        known = self.tables.get(definition.number)
        if known is None:
            if len(self.tables) == MAX_TABLES:
                raise ConfigurationError(f"this server has {MAX_TABLES} tables, and takes no more")
            self.tables[definition.number] = DefinedTable(definition, definition.new_rows())
        elif known.definition.name != definition.name:
            raise ConfigurationError(
                f"table {definition.name!r} has the number of {known.definition.name!r}, which is"
                " the CRC-32 of its name; give one of them another name"
            )
        elif known.definition != definition:
            raise PeerMismatchError(
                f"table {definition.name!r} has been defined otherwise:"
                f" {definition.differences(known.definition)}; define it alike on all workers"
            )

    def _batch(
        self, request: TableChange, payload: memoryview
    ) -> tuple[DefinedTable, NDArray[np.int64], NDArray[np.float32]]:
        table = self.table(request.table)
        width, count = table.definition.width, request.num_keys
        if len(payload) != count * (KEY_BYTES + VALUE_BYTES * width):
            raise PeerProtocolError(
                f"{len(payload)} bytes of {count} keys with gradients of {width} values"
            )
        keys = np.frombuffer(payload, np.int64, count)
        gradients = np.frombuffer(payload, np.float32, count * width, KEY_BYTES * count)
        return table, keys, gradients.reshape(count, width)

    def _push(self, request: TableChange, payload: memoryview, lsn: int, is_replay: bool) -> None:
        table, keys, gradients = self._batch(request, payload)
        self.counters["pushes"] += 1
        self.counters["pushed_keys"] += keys.size
        if table.definition.is_synchronous:
            push = Push(request.worker_id, request.number, keys, gradients)
            table.wait(self.workers[request.worker_id].clock, push, is_replay=is_replay)
            return
        table.apply(keys, gradients, lsn, is_replay=is_replay)

    def _scheduled(
        self, request: TableChange, payload: memoryview
    ) -> tuple[DefinedTable, NDArray[np.int64], NDArray[np.float32]]:
        table, keys, gradients = self._batch(request, payload)
        if table.definition.hot_keys:
            raise ConfigurationError(
                f"table {table.definition.name!r}: scheduled updates need a table without hot keys"
            )
        return table, keys, gradients

    def _summed(
        self, request: TableChange, payload: memoryview
    ) -> tuple[list[SumMember], DefinedTable, NDArray[np.int64], NDArray[np.float32]]:
        members, rest = unpack_members(payload)
        table, keys, gradients = self._scheduled(request, rest)
        if table.definition.staleness is not None:
            raise ConfigurationError(
                f"table {table.definition.name!r}: sums of updates need an asynchronous table"
                " (staleness None)"
            )
        if table.definition.optimiser.num_states:
            raise ConfigurationError(
                f"table {table.definition.name!r}: a sum of updates has not the effect of each, as"
                f" {type(table.definition.optimiser).__name__} has a state"
            )
        return members, table, keys, gradients

    def _commit(
        self,
        worker: WorkerProgress,
        request: TableChange,
        payload: memoryview,
        lsn: int,
        is_replay: bool,
    ) -> None:
        """Apply a scheduled update, unless it has been applied.

        In a synchronous table, it waits for the end of its iteration, as a push does.
        """
        update = ScheduledUpdate.unpack(payload)
        is_replaced = request.incarnation != worker.incarnation
        if is_replaced and update.open_from:
            return
        table, keys, gradients = self._scheduled(request, payload[UPDATE_BYTES:])
        is_known = request.number < update.open_from or not is_open(worker, request.number)
        if is_known and not is_replaced:
            return
        if update.factor != 1.0:
            gradients = gradients * np.float32(update.factor)
        if table.definition.is_synchronous:
            push = Push(request.worker_id, request.number, keys, gradients)
            table.wait(worker.clock, push, is_replay=is_replay)
        else:
            table.apply(keys, gradients, lsn, is_replay=is_replay)
        if is_replaced:
            worker.num_commits += 1
        else:
            count_update(worker, request.number, update.open_from)
        self.counters["commits"] += 1

    def _commit_sum(
        self, request: TableChange, payload: memoryview, lsn: int, is_replay: bool
    ) -> None:
        """Apply a sum of scheduled updates as all of them, or not at all."""
        members, table, keys, gradients = self._summed(request, payload)
        if not are_open(members, self.workers):
            return
        table.apply(keys, gradients, lsn, is_replay=is_replay)
        for member in members:
            count_update(self.workers[member.worker_id], member.number, member.open_from)
        self.counters["commits"] += len(members)
        self.counters["sums"] += 1

    def _set_rate(self, request: TableChange, rate: float) -> None:
        table = self.table(request.table)
        if table.definition.is_synchronous:
            clock = self.workers[request.worker_id].clock
            waiting = SetRate(request.worker_id, request.number, rate)
            table.rates.setdefault(clock, []).append(waiting)
        else:
            table.set_rate(rate)

    def _close(self, clock: int, lsn: int, is_replay: bool) -> None:
        """Apply what the workers pushed to synchronous tables in an iteration that all ended."""
        self.counters["closed_iterations"] += 1
        refused: RowTableError | None = None
        for table in self.tables.values():
            for _, _, rate in sorted(table.rates.pop(clock, [])):
                table.set_rate(rate)
            pushes = sorted(table.waiting.pop(clock, []), key=lambda push: push[:2])
            if not pushes:
                continue
            keys = np.concatenate([push.keys for push in pushes])
            gradients = np.concatenate([push.gradients for push in pushes])
            if table.definition.is_mean:
                gradients /= np.float32(len(self.workers))
            try:
                table.apply(keys, gradients, lsn, is_replay=is_replay)
            except RowTableError as error:
                self.counters["refused_sums"] += 1
                refused = refused or error
        if refused is not None:
            raise refused


def _count(worker: WorkerProgress, number: int) -> None:
    """Go on to the number of a request; those that are left out were denied."""
    oldest = number - MAX_OPEN_REQUESTS
    worker.denied += range(max(worker.number, oldest) + 1, number)
    if worker.denied and worker.denied[0] <= oldest:
        worker.denied = [denied for denied in worker.denied if denied > oldest]
    worker.number = number
