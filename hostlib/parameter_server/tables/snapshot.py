# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The tables of a server as named chunks, for a snapshot.

`placement`, `workers`, and one `table` for each table, are JSON. `waiting ...` are the pushes to
synchronous tables that wait for the end of their iteration, and `hot ...` the hot rows. All these
are taken at one moment.
`rows ...` are made later, one by one, while records are applied: each row has the lsn of its last
push, so a replay leaves that out.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import chain
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from ...errors import HostlibError, StorageDamagedError
from ..storage import ServerStorage
from .change import ShardPlace
from .defined_table import DefinedTable, Push, SetRate
from .definition import TableDefinition
from .state import KEY_BYTES, TableState, WorkerProgress

PLACEMENT: Final = "placement"
_WORKERS: Final = "workers"
_TABLE: Final = "table"
_WAITING: Final = "waiting"
_ROWS: Final = "rows"
_HOT: Final = "hot"
Chunk = tuple[str, bytes | memoryview]
_logger = logging.getLogger(__name__)


@final
class Snapshots:
    """Stores a snapshot in a thread whenever the log has grown by `every_bytes`."""

    def __init__(self, storage: ServerStorage, state: TableState, every_bytes: int) -> None:
        self._storage = storage
        self._state = state
        self._every_bytes = every_bytes
        self._grown_bytes = 0
        self._thread: threading.Thread | None = None

    def note(self, lsn: int, num_bytes: int) -> None:
        """Learn that the record `lsn` is applied; in the thread that applies changes."""
        self._grown_bytes += num_bytes
        is_idle = self._thread is None or not self._thread.is_alive()
        if self._grown_bytes >= self._every_bytes and is_idle:
            self._grown_bytes = 0
            chunks = chain(capture(self._state), row_chunks([*self._state.tables.items()]))
            self._thread = threading.Thread(
                target=self._write, args=(lsn, chunks), name="switchfold-snapshot"
            )
            self._thread.start()

    def close(self) -> None:
        """Wait for a snapshot that is under way."""
        if self._thread is not None:
            self._thread.join()

    def _write(self, lsn: int, chunks: Iterable[Chunk]) -> None:
        started_s = time.monotonic()
        try:
            self._storage.write_snapshot(lsn, chunks)
        except HostlibError as error:
            # The log has everything; the next snapshot may succeed.
            _logger.error("no snapshot at lsn %d: %s", lsn, error)
        except Exception:  # a defect, which must not be silent; the log has everything here, too
            _logger.exception("no snapshot at lsn %d", lsn)
        else:
            _logger.info("snapshot at lsn %d in %.1f s", lsn, time.monotonic() - started_s)


def capture(state: TableState) -> list[Chunk]:
    """Return the chunks that are to be taken at one moment, in the thread that applies changes."""
    chunks: list[Chunk] = []
    if state.placement is not None:
        chunks.append(placement_chunk(state.placement, len(state.workers)))
    chunks.append(workers_chunk(state.workers))
    for number, table in state.tables.items():
        chunks.append(table_chunk(table))
        for clock, pushes in table.waiting.items():
            chunks += (waiting_chunk(number, clock, push) for push in pushes)
    chunks += [(f"{_HOT} {name}", packed) for name, packed in state.hot.pack()]
    return chunks


def placement_chunk(placement: ShardPlace, num_workers: int) -> Chunk:
    """Return the first chunk, which says whose snapshot it is."""
    return PLACEMENT, json.dumps([*placement, num_workers]).encode()


def workers_chunk(workers: Iterable[WorkerProgress]) -> Chunk:
    """Return the chunk of the workers."""
    return _WORKERS, json.dumps([asdict(worker) for worker in workers]).encode()


def table_chunk(table: DefinedTable) -> Chunk:
    """Return the chunk of a table, which comes before its pushes and rows."""
    described = {
        "definition": table.definition.pack().decode(),
        "rate": table.rows.optimiser.rate,
        "rates": [(clock, *rate) for clock, rates in table.rates.items() for rate in rates],
    }
    return _TABLE, json.dumps(described).encode()


def waiting_chunk(table: int, clock: int, push: Push) -> Chunk:
    """Return the chunk of a push that waits for the end of an iteration."""
    name = f"{_WAITING} {table} {clock} {push.worker_id} {push.number} {push.keys.size}"
    return name, push.keys.tobytes() + push.gradients.tobytes()


def rows_chunk(table: int, rows: NDArray[np.uint8]) -> Chunk:
    """Return the chunk of some rows, as RowTable exports them."""
    return f"{_ROWS} {table}", rows.data


def table_of_rows(chunk: tuple[str, memoryview]) -> int | None:
    """Return the table of a chunk of rows; None: it is another chunk."""
    kind, *numbers = chunk[0].split(" ")
    return int(numbers[0]) if kind == _ROWS else None


def placement_of(payload: memoryview) -> tuple[ShardPlace, int]:
    """Return what the first chunk says, and the number of workers. Raises ValueError."""
    shard, num_servers, num_workers = (int(number) for number in json.loads(bytes(payload)))
    return ShardPlace(shard, num_servers), num_workers


def row_chunks(tables: Iterable[tuple[int, DefinedTable]]) -> Iterator[Chunk]:
    """Yield the rows of tables, in any thread."""
    for number, table in tables:
        cursor: int | None = 0
        while cursor is not None:
            chunk = table.rows.export(cursor, table.rows.rows_at_once)
            yield rows_chunk(number, chunk.data)
            cursor = chunk.next_cursor


def restore(state: TableState, chunks: Iterable[Chunk]) -> None:
    """Give an empty state what a snapshot holds. Raises StorageDamagedError."""
    try:
        for name, payload in chunks:
            kind, *numbers = name.split(" ")
            if kind == PLACEMENT:
                state.placement, _ = placement_of(memoryview(payload))
            elif kind == _WORKERS:
                _restore_workers(state, json.loads(bytes(payload)))
            elif kind == _TABLE:
                _restore_table(state, json.loads(bytes(payload)))
            elif kind == _WAITING:
                _restore_push(state, [int(number) for number in numbers], memoryview(payload))
            elif kind == _HOT:
                state.hot.restore(numbers[0], memoryview(payload))
            elif kind == _ROWS:
                state.tables[int(numbers[0])].rows.import_rows(payload)
            else:
                raise ValueError(f"a chunk {name!r}")
    except (ValueError, TypeError, KeyError, IndexError, HostlibError) as error:
        raise StorageDamagedError(
            f"the snapshot of a parameter server cannot be taken over: {error!r}. It is of another"
            " release, or of a server with other options; start that one, or restore a copy"
        ) from error


def _restore_table(state: TableState, described: dict[str, Any]) -> None:
    definition = TableDefinition.unpack(described["definition"].encode())
    table = DefinedTable(definition, definition.new_rows())
    if described["rate"] is not None:
        table.set_rate(float(described["rate"]))
    for clock, *waiting in described["rates"]:
        table.rates.setdefault(int(clock), []).append(SetRate(*waiting))
    state.tables[definition.number] = table


def _restore_workers(state: TableState, described: list[dict[str, Any]]) -> None:
    workers = [
        WorkerProgress(
            incarnation=int(worker["incarnation"]),
            replaced=tuple(int(one) for one in worker["replaced"]),
            number=int(worker["number"]),
            denied=[int(one) for one in worker["denied"]],
            clock=int(worker["clock"]),
            num_commits=int(worker.get("num_commits", 0)),
            updates=[int(one) for one in worker.get("updates", ())],
            updates_from=int(worker.get("updates_from", 0)),
        )
        for worker in described
    ]
    if len(workers) != len(state.workers):
        raise ValueError(f"it is of {len(workers)} workers, this server has {len(state.workers)}")
    state.workers[:] = workers


def _restore_push(state: TableState, numbers: list[int], payload: memoryview) -> None:
    table_number, clock, worker_id, number, count = numbers
    table = state.tables[table_number]
    keys = np.frombuffer(payload, np.int64, count)
    gradients = np.frombuffer(payload, np.float32, offset=KEY_BYTES * count)
    push = Push(worker_id, number, keys, gradients.reshape(count, table.definition.width))
    table.waiting.setdefault(clock, []).append(push)
