# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A directory that is filled with a server's storage, and that servers refuse until it is whole."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import TracebackType
from typing import Final, Self, final
from uuid import uuid4

from ...errors import ReshardError, StorageError, UnfinishedReshardError
from .disk import BytesLike, make_directory, sync_directory
from .record import SegmentHeader
from .segment import create_segment
from .snapshot import SnapshotStore, StoredSnapshot

_MARKER: Final = "unfinished"
"""A file that is in the directory from before anything else is until all is durable."""
_LOG: Final = "log"
_SNAPSHOTS: Final = "snapshots"


def check_finished(directory: Path) -> None:
    """Raise UnfinishedReshardError for a directory that is being filled."""
    if (directory / _MARKER).exists():
        raise UnfinishedReshardError(
            f"{directory} is not complete: `switchfold ps reshard` is writing it, or has ended"
            " midway. Run it again, with the same directories; the old ones are as they were"
        )


def check_free(directory: Path) -> None:
    """Raise ReshardError unless a directory is new, empty, or was not completed before."""
    if directory.exists() and not (directory / _MARKER).exists():
        if not directory.is_dir() or any(directory.iterdir()):
            raise ReshardError(
                f"{directory} is not empty: give a directory that is new or empty. If an earlier"
                " run ended while it completed its directories, remove all of them first"
            )
    elif not directory.parent.is_dir():
        raise ReshardError(f"{directory.parent}, in which {directory.name} is to be, is missing")


@final
class NewStorage:
    """A snapshot under way, and an empty log behind it, whose records follow `lsn`.

    What an earlier process left in the directory is removed. Raises DiskFullError and StorageError.
    """

    def __init__(self, directory: Path, lsn: int) -> None:
        self.directory = directory
        self._lsn = lsn
        identity = uuid4()
        try:
            make_directory(directory)
            (directory / _MARKER).touch()
            sync_directory(directory)
            for name in (_LOG, _SNAPSHOTS):
                if (directory / name).exists():
                    shutil.rmtree(directory / name)
            make_directory(directory / _LOG)
            header = SegmentHeader(identity, lsn + 1, lsn)
            _, fd = create_segment(directory / _LOG, header, os)
            os.close(fd)
        except OSError as error:
            raise StorageError(
                f"cannot write to {directory}: {error}; choose a directory on a disk with space"
            ) from error
        self._snapshots = SnapshotStore(directory / _SNAPSHOTS, identity, lambda: lsn)
        self._writer = self._snapshots.begin(lsn)

    def add(self, name: str, data: BytesLike) -> None:
        """Write a chunk of the snapshot."""
        self._writer.add(name, data)

    def finish(self) -> StoredSnapshot:
        """Make the snapshot durable; return it as it is on the disk, all checksums compared."""
        self._writer.finish(self._lsn)
        found = self._snapshots.newest()
        if found is None:
            raise StorageError(f"the snapshot in {self.directory} is damaged; check the disk")
        return found

    def publish(self) -> None:
        """Let servers have the directory."""
        try:
            (self.directory / _MARKER).unlink()
            sync_directory(self.directory)
        except OSError as error:
            raise StorageError(f"cannot complete {self.directory}: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._writer.close()
