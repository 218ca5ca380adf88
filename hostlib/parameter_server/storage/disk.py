# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Durable files: complete writes, durable names, full disks, and one owner of a directory."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol, final

from ...errors import LogLockedError

MAX_PARTS: Final = 1024
"""Most parts of one writev; Linux's IOV_MAX."""
BytesLike = bytes | bytearray | memoryview
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class DiskCalls(Protocol):
    """The two system calls that may fail on a bad or full disk; the module `os` has them."""

    def writev(self, fd: int, buffers: Sequence[bytes | memoryview], /) -> int:
        """Write some of the bytes, as os.writev does."""
        ...

    def fdatasync(self, fd: int, /) -> None:
        """Make the file's bytes and size durable, as os.fdatasync does."""
        ...


def is_disk_full(error: OSError) -> bool:
    """Return whether there is no space, no quota, or no room below the limit of file sizes."""
    return error.errno in _FULL


def write_all(calls: DiskCalls, fd: int, parts: Sequence[bytes | memoryview]) -> None:
    """Write all parts in order; memoryviews must be of bytes. Raises OSError."""
    left = list(parts)
    first = 0
    while first < len(left):
        some = left[first : first + MAX_PARTS]
        written = calls.writev(fd, some)
        for part in some:
            if written < len(part):
                left[first] = memoryview(part)[written:]
                break
            written -= len(part)
            first += 1


def sync_directory(directory: Path) -> None:
    """Make created, renamed and removed names durable. Raises OSError.

    It takes fsync: fdatasync may leave out names that do not change the directory's size.
    """
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def make_directory(directory: Path) -> None:
    """Create a directory, if it is not there, below one that is. Raises OSError.

    Its name is durable in any case: a process before this one may have ended in between.
    """
    if not directory.is_dir():
        directory.mkdir()
    sync_directory(directory.parent)


@final
class DirectoryLock:
    """Lock of a directory that the kernel gives back when the process ends, however it ends.

    The file `lock` in the directory holds the owner's process id. It is never removed: another
    process might have it open already. Raises LogLockedError and OSError.
    """

    def __init__(self, directory: Path) -> None:
        path = directory / "lock"
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            owner = os.pread(self._fd, 32, 0).decode("ascii", "replace").strip()
            os.close(self._fd)
            raise LogLockedError(
                f"{directory} is in use by process {owner or '(starting)'}: stop it first, or give"
                " this server a directory of its own",
            ) from error
        except OSError:
            os.close(self._fd)
            raise
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode("ascii"), 0)

    def release(self) -> None:
        """Let another process have the directory."""
        os.close(self._fd)
