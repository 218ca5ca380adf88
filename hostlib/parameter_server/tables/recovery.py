# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The tables that a server's storage holds: those of the newest snapshot, and the log behind it."""

from __future__ import annotations

import logging
import time

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
    if storage.snapshot is not None:
        restore(state, storage.snapshot.chunks())
        _check_shard(state, storage, shard)
    num_records = 0
    reasons: list[dict[int, HostlibError]] = [{} for _ in state.workers]
    for lsn, record in storage.records():
        num_records += 1
        if is_hot(record):
            state.apply_hot(unpack(record), lsn=lsn, is_replay=True)
            continue
        request, payload = TableChange.unpack(record)
        if request.worker_id >= len(state.workers):
            raise _wrong_number(state, storage, f"requests of worker {request.worker_id}")
        is_enter = request.kind is FrameKind.ENTER
        if is_enter:
            if request.num_keys != len(state.workers):
                raise _wrong_number(state, storage, f"{request.num_keys} workers")
            reasons[request.worker_id].clear()
        try:
            state.apply(request, payload, lsn=lsn, is_replay=True)
        except (RowMemoryError, StorageError):
            raise  # it had an effect before
        except HostlibError as error:
            _logger.info("record %d was denied before, too: %s", lsn, error)
            reasons[request.worker_id][request.number] = error
        if is_enter:
            _check_shard(state, storage, shard)
    _logger.info("applied %d records in %.1f s", num_records, time.monotonic() - started_s)
    return reasons


def _check_shard(state: TableState, storage: ServerStorage, shard: int) -> None:
    if state.placement is not None and state.placement.shard != shard:
        raise ForeignLogError(
            f"the log in {storage.log.directory} is that of {state.placement}, but this is server"
            f" {shard}: give each server the directory that it had"
        )


def _wrong_number(state: TableState, storage: ServerStorage, what: str) -> StorageError:
    return StorageError(
        f"the log in {storage.log.directory} has {what}; start the server with the number of"
        f" workers that it had, not {len(state.workers)}"
    )
