# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""From the directories of the old servers to those of the new ones, as a whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import final

from ...errors import ReshardError
from ..options import MOST_SERVERS
from ..storage import NewStorage, check_free
from ..tables.change import ShardPlace
from ..tables.snapshot import placement_chunk, table_chunk, workers_chunk
from .joined_run import JoinedRun
from .old_servers import OldServer, open_servers
from .row_mover import RowMover


@final
@dataclass(frozen=True)
class TableReport:
    """A table that was moved; old and new servers have been compared."""

    name: str
    num_rows: int
    """At all servers together."""
    num_moved: int
    """Rows that are on a server of another number now."""
    checksum: int
    """64-bit sum over the rows, the same before and after."""
    by_server: tuple[int, ...]
    """Rows of each new server."""


@final
@dataclass(frozen=True)
class ReshardReport:
    """What was moved."""

    num_before: int
    num_after: int
    version: int
    """With which all new servers begin: the highest one of the old servers."""
    tables: tuple[TableReport, ...]


def reshard(old: Sequence[Path], new: Sequence[Path]) -> ReshardReport:
    """Write the tables of stopped servers to new directories, one for each new server, in order.

    The old directories stay as they are. Servers refuse a new one until all are complete and have
    been compared. One old server's tables are in memory at a time. Raises ReshardError,
    LogLockedError for a server that runs, and other StorageErrors.
    """
    _check_directories(old, new)
    with ExitStack() as stack:
        servers = open_servers(old, stack)
        version = max(server.storage.log.durable_lsn for server in servers)
        storages = [stack.enter_context(NewStorage(directory, version)) for directory in new]
        for shard, storage in enumerate(storages):
            place = ShardPlace(shard, len(new))
            storage.add(*placement_chunk(place, servers[0].num_workers))
        run, mover = JoinedRun(), RowMover(storages)
        for server in servers:
            _move(server, run, mover, storages)
        for storage in storages:
            storage.add(*workers_chunk(run.workers))
        mover.check([storage.finish() for storage in storages])
        for storage in storages:
            storage.publish()
    return ReshardReport(
        num_before=len(old),
        num_after=len(new),
        version=version,
        tables=tuple(
            TableReport(
                name=run.name_of(number),
                num_rows=total.num_rows,
                num_moved=mover.num_moved[number],
                checksum=total.checksum,
                by_server=tuple(mover.num_rows[number, shard] for shard in range(len(new))),
            )
            for number, total in mover.totals.items()
        ),
    )


def _move(
    server: OldServer, run: JoinedRun, mover: RowMover, storages: Sequence[NewStorage]
) -> None:
    """Write what a server has; its tables are in memory until this returns."""
    state = server.load()
    for table in run.join(server.place.shard, state):
        for storage in storages:
            storage.add(*table_chunk(table))
    mover.move(server.place, state)


def _check_directories(old: Sequence[Path], new: Sequence[Path]) -> None:
    if not old or not 1 <= len(new) <= MOST_SERVERS:
        raise ReshardError(
            f"from {len(old)} directories to {len(new)}; give one for each server, at most"
            f" {MOST_SERVERS}"
        )
    places = [directory.resolve() for directory in (*old, *new)]
    for number, place in enumerate(places):
        if place in places[:number]:
            raise ReshardError(f"{place} is given twice; give each server a directory of its own")
    for directory in new:
        check_free(directory)
