# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A disk of its own for one database or log, which can be full."""

from __future__ import annotations

import errno
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_BLOCK: Final = bytes(4096)


class SmallDisk:
    """A file system in memory, mounted for the duration of a `with` block; needs root."""

    def __init__(self, folder: Path, mebibytes: int = 16) -> None:
        self.folder = folder
        self._size = f"size={mebibytes}m"
        self._filler = folder / "filler"

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        command = ["mount", "-t", "tmpfs", "-o", self._size, "tmpfs", str(self.folder)]
        subprocess.run(command, check=True)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        subprocess.run(["umount", str(self.folder)], check=True)

    def fill(self) -> None:
        """Take up all room."""
        with self._filler.open("wb", buffering=0) as file:
            try:
                while file.write(_BLOCK) == len(_BLOCK):
                    pass
            except OSError as exc:
                if exc.errno != errno.ENOSPC:
                    raise

    def make_room(self) -> None:
        """Undo `fill`."""
        self._filler.unlink(missing_ok=True)
