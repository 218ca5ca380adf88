# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Build folders: removed after the build, or by the next build if the process was killed."""

import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from ..errors import CacheError

PREFIX = "locked-build-"
"""Not `building-`: older versions may run at the same time and do not lock such folders."""


FULL_TEXTS = ("No space left on device", "Disk quota exceeded")
"""Messages of a compiler that cannot write because the disk is full, with LC_ALL=C."""
_FULL = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def cache_errors(cache: Path) -> Generator[None]:
    """Turn errors of files below `cache` into CacheError."""
    try:
        yield
    except OSError as exc:
        raise cache_error(cache, exc.strerror or str(exc), is_full=exc.errno in _FULL) from exc


def cache_error(cache: Path, why: str, *, is_full: bool) -> CacheError:
    """Return the error for a folder of compiled programs that cannot be used, with the remedy."""
    remedy = "Free some space there" if is_full else "Make it a folder that you may write"
    return CacheError(
        f"compiled programs cannot be kept in {cache}: {why}. {remedy}, or set XDG_CACHE_HOME to "
        f"another folder"
    )


@contextmanager
def build_folder(parent: Path) -> Generator[Path]:
    """Make a folder below `parent` for the block, and remove folders that are no longer in use.

    A folder is locked while it is in use; the lock ends with the process that holds it.
    """
    parent.mkdir(parents=True, exist_ok=True)
    for stale in parent.glob(f"{PREFIX}*"):
        _remove_if_free(stale)
    while True:
        folder = Path(tempfile.mkdtemp(dir=parent, prefix=PREFIX))
        lock = _lock(folder)
        # Before the lock, another process may have removed the folder as stale.
        if lock is not None and folder.exists():
            break
        if lock is not None:
            os.close(lock)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
        os.close(lock)


def _lock(folder: Path) -> int | None:
    """Return a descriptor that holds the folder's lock.

    None if the lock is taken, or if the folder is gone or belongs to another user.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _remove_if_free(folder: Path) -> None:
    descriptor = _lock(folder)
    if descriptor is not None:
        shutil.rmtree(folder, ignore_errors=True)  # two processes may remove it together
        os.close(descriptor)
