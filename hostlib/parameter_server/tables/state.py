# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The tables of a server and what it knows of its workers: a state machine without input or output.

The same requests in the same order make the same state. So a server that was killed has its state
again once the records of its log are applied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ...errors import (
    ConfigurationError,
    PeerMismatchError,
    PeerProtocolError,
    RowTableError,
)
from ...peers.frames import FrameKind
from ..rows import PulledRows, RowTable
from .definition import TableDefinition
from .request import Request

KEY_BYTES: Final = 8
VALUE_BYTES: Final = 4
MAX_TABLES: Final = 1 << 12
KEPT_INCARNATIONS: Final = 8


class Push(NamedTuple):
    """Gradients of some keys, which wait for the end of their iteration."""

    worker_id: int
    number: int
    keys: NDArray[np.int64]
    gradients: NDArray[np.float32]


@dataclass
class WorkerState:
    """What the tables know of a worker."""

    incarnation: int = 0
    """Of its newest process; 0: none has entered."""
    replaced: tuple[int, ...] = ()
    """Of its last processes before."""
    number: int = 0
    """The last request of this process that was applied or denied."""
    clock: int = 0
    """How many iterations it has ended."""


@dataclass
class Table:
    """A table, and the pushes that wait for the end of their iteration."""

    definition: TableDefinition
    rows: RowTable
    waiting: dict[int, list[Push]] = field(default_factory=dict[int, list[Push]])
    """Of a synchronous table, by iteration."""


@final
class TableState:
    """All tables of one shard, for workers 0 to `num_workers` - 1; not for several threads.

    `counters`: pushes, pushed_keys (both applied), pulls, pulled_keys, closed_iterations,
    refused_sums (sums of an iteration that were not finite, and were not applied).
    """

    def __init__(self, num_workers: int) -> None:
        self.workers = [WorkerState() for _ in range(num_workers)]
        self.tables: dict[int, Table] = {}
        self.counters: Counter[str] = Counter()

    @property
    def clock(self) -> int:
        """How many iterations all workers have ended."""
        return min(worker.clock for worker in self.workers)

    def check(self, request: Request, payload: memoryview) -> None:
        """Raise what is wrong with a request; make the rows of a push, so that it has room.

        Raises PeerProtocolError, ConfigurationError and RowTableError.
        """
        if request.kind is FrameKind.DEFINE:
            TableDefinition.unpack(bytes(payload))
        elif request.kind in (FrameKind.START, FrameKind.PUSH):
            table, keys, gradients = self._batch(request, payload)
            table.rows.prepare(keys, gradients)

    def apply(
        self, request: Request, payload: memoryview, *, lsn: int = 0, is_replay: bool = False
    ) -> None:
        """Apply a request; `lsn` is that of its record, 0 without a log.

        Raises PeerMismatchError, ConfigurationError and RowTableError if the request has no effect;
        it is over then, too.
        """
        worker = self.workers[request.worker_id]
        if request.kind is FrameKind.ENTER:
            self._enter(request)
            return
        if request.incarnation != worker.incarnation or request.number <= worker.number:
            return  # of a process that was replaced meanwhile
        worker.number = request.number
        match request.kind:
            case FrameKind.DEFINE:
                self._define(TableDefinition.unpack(bytes(payload)))
            case FrameKind.START:
                table, keys, values = self._batch(request, payload)
                table.rows.start(keys, values, lsn=lsn, is_replay=is_replay)
            case FrameKind.PUSH:
                self._push(request, payload, lsn, is_replay)
            case _:
                worker.clock += 1
                if self.clock == worker.clock:
                    self._close(worker.clock - 1, lsn, is_replay)

    def may_pull(self, worker_id: int, number: int) -> bool:
        """Return whether the other workers have come as far as a table's staleness asks for."""
        staleness = self.tables[number].definition.staleness
        return staleness is None or self.workers[worker_id].clock - self.clock <= staleness

    def pull(self, number: int, keys: NDArray[np.int64]) -> PulledRows:
        """Return the rows of keys. Raises RowTableError."""
        self.counters["pulls"] += 1
        self.counters["pulled_keys"] += keys.size
        return self.tables[number].rows.pull(keys)

    def table(self, number: int) -> Table:
        """Return a table. Raises PeerProtocolError."""
        found = self.tables.get(number)
        if found is None:
            raise PeerProtocolError(f"table {number:#010x} has not been defined")
        return found

    def waiting_bytes(self) -> int:
        """Return the size of the pushes that wait for the end of their iteration."""
        return sum(
            push.keys.nbytes + push.gradients.nbytes
            for table in self.tables.values()
            for pushes in table.waiting.values()
            for push in pushes
        )

    def updates(self) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.uint32]]]:
        """Yield table number, keys, and their numbers of updates, until all rows are named."""
        for number, table in self.tables.items():
            for keys, updates in table.rows.updates():
                yield number, keys, updates

    def _enter(self, request: Request) -> None:
        worker = self.workers[request.worker_id]
        if request.incarnation == worker.incarnation:
            return
        if worker.incarnation:
            worker.replaced = (*worker.replaced, worker.incarnation)[-KEPT_INCARNATIONS:]
        worker.incarnation, worker.number = request.incarnation, 0
        # The new process does the iteration that the old one did not end once more.
        for table in self.tables.values():
            begun = table.waiting.get(worker.clock, [])
            begun[:] = [push for push in begun if push.worker_id != request.worker_id]

    def _define(self, definition: TableDefinition) -> None:
        known = self.tables.get(definition.number)
        if known is None:
            if len(self.tables) == MAX_TABLES:
                raise ConfigurationError(f"this server has {MAX_TABLES} tables, and takes no more")
            self.tables[definition.number] = Table(definition, definition.new_rows())
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
        self, request: Request, payload: memoryview
    ) -> tuple[Table, NDArray[np.int64], NDArray[np.float32]]:
        table = self.table(request.table)
        width, count = table.definition.width, request.num_keys
        if len(payload) != count * (KEY_BYTES + VALUE_BYTES * width):
            raise PeerProtocolError(
                f"{len(payload)} bytes of {count} keys with gradients of {width} values"
            )
        keys = np.frombuffer(payload, np.int64, count)
        gradients = np.frombuffer(payload, np.float32, count * width, KEY_BYTES * count)
        return table, keys, gradients.reshape(count, width)

    def _push(self, request: Request, payload: memoryview, lsn: int, is_replay: bool) -> None:
        table, keys, gradients = self._batch(request, payload)
        self.counters["pushes"] += 1
        self.counters["pushed_keys"] += keys.size
        if table.definition.is_synchronous:
            clock = self.workers[request.worker_id].clock
            push = Push(request.worker_id, request.number, keys, gradients)
            table.waiting.setdefault(clock, []).append(push)
            return
        _apply(table.rows, keys, gradients, lsn, is_replay)

    def _close(self, clock: int, lsn: int, is_replay: bool) -> None:
        """Apply what the workers pushed to synchronous tables in an iteration that all ended."""
        self.counters["closed_iterations"] += 1
        refused: RowTableError | None = None
        for table in self.tables.values():
            pushes = sorted(table.waiting.pop(clock, []), key=lambda push: push[:2])
            if not pushes:
                continue
            keys = np.concatenate([push.keys for push in pushes])
            gradients = np.concatenate([push.gradients for push in pushes])
            if table.definition.is_mean:
                gradients /= np.float32(len(self.workers))
            try:
                _apply(table.rows, keys, gradients, lsn, is_replay)
            except RowTableError as error:
                self.counters["refused_sums"] += 1
                refused = refused or error
        if refused is not None:
            raise refused


def _apply(
    rows: RowTable,
    keys: NDArray[np.int64],
    gradients: NDArray[np.float32],
    lsn: int,
    is_replay: bool,
) -> None:
    if is_replay:
        rows.replay(keys, gradients, lsn=lsn)
    else:
        rows.push(keys, gradients, lsn=lsn)
