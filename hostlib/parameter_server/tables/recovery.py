# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The tables that a server's storage holds: those of the newest snapshot, and the log behind it."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import final

from ...errors import ForeignLogError, HostlibError, RowMemoryError, StorageError
from ...peers.frames import FrameKind
from ..hot_server.changes import is_hot, unpack
from ..storage import ServerStorage
from .change import TableChange
from .snapshot import restore
from .state import TableState

_logger = logging.getLogger(__name__)


def recover(state: TableState, storage: ServerStorage, shard: int) -> list[dict[int, HostlibError]]:
    """Give an empty state what is stored; return, by worker, why requests in the log were denied.

    Raises StorageError, StorageDamagedError, ForeignLogError if it is not that of server `shard`,
    and RowMemoryError.
    """
    started_s = time.monotonic()
    replay = RecordReplay(state, storage.log.directory, shard)
    if storage.snapshot is not None:
        restore(state, storage.snapshot.chunks())
        replay.check_shard()
    for lsn, record in storage.records():
        replay.apply(lsn, record)
    _logger.info("applied %d records in %.1f s", replay.num_records, time.monotonic() - started_s)
    return replay.reasons


@final
class RecordReplay:
    """Applies records of a log to tables, in their order; each row leaves out what it has."""

    def __init__(self, state: TableState, directory: Path, shard: int) -> None:
        """`directory`: that of the log, for errors. `shard`: the server whose log it must be."""
        self.num_records = 0
        self.reasons: list[dict[int, HostlibError]] = [{} for _ in state.workers]
        """By worker, why requests were denied, by their numbers."""
        self._state = state
        self._directory = directory
        self._shard = shard

    def apply(self, lsn: int, record: memoryview) -> None:
        """Apply a record.

        Raises StorageDamagedError, ForeignLogError, StorageError if it is of a server with other
        workers, and RowMemoryError.
        """
        state = self._state
        self.num_records += 1
        if is_hot(record):
            state.apply_hot(unpack(record), lsn=lsn, is_replay=True)
            return
        request, payload = TableChange.unpack(record)
        if request.worker_id >= len(state.workers):
            raise self._wrong_number(f"requests of worker {request.worker_id}")
        is_enter = request.kind is FrameKind.ENTER
        if is_enter:
            if request.num_keys != len(state.workers):
                raise self._wrong_number(f"{request.num_keys} workers")
            self.reasons[request.worker_id].clear()
        try:
            state.apply(request, payload, lsn=lsn, is_replay=True)
        except (RowMemoryError, StorageError):
            raise  # it had an effect before
        except HostlibError as error:
            _logger.info("record %d was denied before, too: %s", lsn, error)
            self.reasons[request.worker_id][request.number] = error
        if is_enter:
            self.check_shard()

    def check_shard(self) -> None:
        """Raise ForeignLogError if the state is that of another server."""
        placement = self._state.placement
        if placement is not None and placement.shard != self._shard:
            raise ForeignLogError(
                f"the log in {self._directory} is that of {placement}, but this is server"
                f" {self._shard}: give each server the directory that it had"
            )

    def _wrong_number(self, what: str) -> StorageError:
        return StorageError(
            f"the log in {self._directory} has {what}; start the server with the number of"
            f" workers that it had, not {len(self._state.workers)}"
        )
