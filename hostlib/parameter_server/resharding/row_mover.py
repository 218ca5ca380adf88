# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Rows and waiting pushes on their path from old servers to new ones, and their totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple, final

import numpy as np

from ...errors import ReshardError
from ..rows import partition, shard_of
from ..rows.chunks import StoredRows, add_checksums
from ..storage import NewStorage, StoredSnapshot
from ..tables.change import ShardPlace
from ..tables.defined_table import DefinedTable, Push
from ..tables.snapshot import rows_chunk, table_of_rows, waiting_chunk
from ..tables.state import TableState


class RowTotal(NamedTuple):
    """All rows of a table that were counted."""

    num_rows: int = 0
    checksum: int = 0

    def plus(self, rows: StoredRows) -> RowTotal:
        """Return it with the rows of a chunk."""
        return RowTotal(self.num_rows + rows.count, add_checksums(self.checksum, rows.checksum))


@final
class RowMover:
    """Writes each row to the server that has its key now. Memory: a chunk of 16 MiB at a time."""

    def __init__(self, new: Sequence[NewStorage]) -> None:
        self._new = new
        self.totals: dict[int, RowTotal] = {}
        """By table, what the old servers have."""
        self.num_moved: Counter[int] = Counter()
        """By table, rows that are on a server of another number now."""
        self.num_rows: Counter[tuple[int, int]] = Counter()
        """By table and new server."""

    def move(self, place: ShardPlace, state: TableState) -> None:
        """Write what an old server has. Raises ReshardError and StorageError."""
        for number, table in state.tables.items():
            self.totals.setdefault(number, RowTotal())
            for clock, pushes in table.waiting.items():
                for push in pushes:
                    self._move_push(number, clock, push)
            cursor: int | None = 0
            while cursor is not None:
                chunk = table.rows.export(cursor, table.rows.rows_at_once)
                self._move_rows(place, number, table, StoredRows(chunk.data))
                cursor = chunk.next_cursor

    def _move_rows(
        self, place: ShardPlace, number: int, table: DefinedTable, rows: StoredRows
    ) -> None:
        keys = rows.keys
        if (shard_of(keys, place.num_servers) != place.shard).any():
            raise ReshardError(
                f"{place} has rows of table {table.definition.name!r} that belong to other servers"
            )
        self.totals[number] = self.totals[number].plus(rows)
        for shard, places in _places(keys, len(self._new)):
            self._new[shard].add(*rows_chunk(number, rows.take(places)))
            self.num_moved[number] += places.size * (shard != place.shard)
            self.num_rows[number, shard] += places.size
            if self.num_rows[number, shard] > table.definition.max_rows:
                raise ReshardError(
                    f"server {shard} of {len(self._new)} would have more rows of table"
                    f" {table.definition.name!r} than its max_rows, {table.definition.max_rows}:"
                    " give more servers"
                )

    def _move_push(self, number: int, clock: int, push: Push) -> None:
        for shard, places in _places(push.keys, len(self._new)):
            part = push._replace(keys=push.keys[places], gradients=push.gradients[places])
            self._new[shard].add(*waiting_chunk(number, clock, part))

    def check(self, snapshots: Sequence[StoredSnapshot]) -> None:
        """Read what was written; raise ReshardError unless it is what the old servers have."""
        found = dict.fromkeys(self.totals, RowTotal())
        for shard, snapshot in enumerate(snapshots):
            for chunk in snapshot.chunks():
                number = table_of_rows(chunk)
                if number is None:
                    continue
                rows = StoredRows(np.frombuffer(chunk[1], np.uint8))
                if (shard_of(rows.keys, len(snapshots)) != shard).any():
                    raise ReshardError(f"{snapshot.path} has rows of other servers; check the disk")
                found[number] = found[number].plus(rows)
        if found != self.totals:
            raise ReshardError(
                f"the new servers have {found} by table, but the old ones {self.totals}: check the"
                " disks, and repeat"
            )


def _places(
    keys: np.ndarray[tuple[int, ...], np.dtype[np.int64]], num_servers: int
) -> Iterator[tuple[int, np.ndarray[tuple[int, ...], np.dtype[np.int64]]]]:
    """Yield each server that has some of the keys, with their places."""
    found = partition(keys, num_servers)
    ends = np.cumsum(found.counts)
    for shard in np.flatnonzero(found.counts).tolist():
        yield shard, found.order[ends[shard] - found.counts[shard] : ends[shard]]
