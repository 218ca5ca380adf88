# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a world tells its controller: at which point to die, and whether the disk is full."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Final

TRIGGER_FILE: Final = "trigger"
POINTS_FILE: Final = "points.log"
"""One line for each point that any controller has reached, or write that a full disk refused."""
REFUSED: Final = "refused: the disk is full"
_WORDS: Final = 2


class Trigger:
    """A mapped file; the one who makes it first sets both words to 0."""

    def __init__(self, folder: Path) -> None:
        path = folder / TRIGGER_FILE
        path.touch()
        with path.open("r+b") as file:
            file.truncate(8 * _WORDS)
            self._words = memoryview(mmap.mmap(file.fileno(), 8 * _WORDS)).cast("Q")

    @property
    def points_left(self) -> int:
        """Points until the controller kills itself; 0: it does not."""
        return self._words[0]

    @points_left.setter
    def points_left(self, number: int) -> None:
        self._words[0] = number

    @property
    def is_disk_full(self) -> bool:
        """Whether the database's file refuses all writes."""
        return bool(self._words[1])

    @is_disk_full.setter
    def is_disk_full(self, is_full: bool) -> None:
        self._words[1] = int(is_full)
