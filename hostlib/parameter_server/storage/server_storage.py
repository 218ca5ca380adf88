# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Everything that a server keeps on disk: the newest snapshot and the log behind it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import final

from ...closable import Closable
from ...errors import StorageDamagedError, StorageError
from .disk import BytesLike, make_directory
from .log import LogEvents, LogOptions, WriteAheadLog
from .new_storage import check_finished
from .snapshot import KEPT_SNAPSHOTS, SnapshotStore

_logger = logging.getLogger(__name__)


@final
class ServerStorage(Closable):
    """A server's log and snapshots, in `log` and `snapshots` below a directory.

    A server comes back in three steps. It takes the chunks of `snapshot`, unless that is None. It
    applies `records`; each row leaves out those up to the lsn that it carries. Then it takes
    pushes: it appends each to `log`, and applies and answers it when it is durable.

    Two rules make the state exact. It changes by durable records alone, in the order of the log.
    What has no lsn of its own, such as which pushes were applied, is in chunks that are made at the
    lsn at which the snapshot begins.

    Raises LogLockedError, StorageDamagedError, DiskFullError, UnfinishedReshardError and
    StorageError.
    """

    def __init__(
        self, directory: Path, events: LogEvents, options: LogOptions | None = None
    ) -> None:
        check_finished(directory)
        try:
            make_directory(directory)
        except OSError as error:
            raise StorageError(
                f"cannot keep a server's state in {directory}: {error}; choose a directory that"
                " this server may write to"
            ) from error
        self.log = WriteAheadLog(directory / "log", events, options)
        try:
            self._snapshots = SnapshotStore(
                directory / "snapshots", self.log.identity, lambda: self.log.durable_lsn
            )
            self.snapshot = self._snapshots.newest()
            """The newest whole snapshot when the storage was opened."""
            self._first_lsn = 1 if self.snapshot is None else self.snapshot.lsn + 1
            self._check_log()
        except BaseException:
            self.log.close()
            raise
        _logger.info(
            "%s: the snapshot holds the log up to lsn %d; the log ends with lsn %d",
            directory,
            self._first_lsn - 1,
            self.log.durable_lsn,
        )

    def _check_log(self) -> None:
        """Check that the log holds all that the snapshot does not, and did not lose any."""
        if self.snapshot is not None and self.snapshot.last_lsn > self.log.durable_lsn:
            raise StorageDamagedError(
                f"{self.snapshot.path} was written when lsn {self.snapshot.last_lsn} was durable,"
                f" but the log in {self.log.directory} ends with lsn {self.log.durable_lsn}:"
                " restore the log's newest segments from a copy",
                self.snapshot.path,
            )
        self.log.replay(self._first_lsn)

    def records(self) -> Iterator[tuple[int, memoryview]]:
        """Return lsn and payload of the records behind the snapshot's lsn, as `replay` does."""
        return self.log.replay(self._first_lsn)

    def write_snapshot(self, lsn: int, chunks: Iterable[tuple[str, BytesLike]]) -> None:
        """Store a snapshot that began behind a durable record; drop the log that none needs.

        The log reaches back to the older one of two snapshots, in case the newer one is damaged.
        Call it from one thread at a time. Raises DiskFullError and StorageError, after which the
        stored state is as it was.
        """
        if lsn > self.log.durable_lsn:
            raise ValueError(f"lsn {lsn} is not durable yet, only {self.log.durable_lsn} is")
        self._snapshots.write(lsn, chunks)
        kept = self._snapshots.lsns()
        if len(kept) == KEPT_SNAPSHOTS:
            self.log.drop_before(kept[0] + 1)

    def close(self) -> None:
        """Make durable what waits, and let another process have the directory."""
        self.log.close()
