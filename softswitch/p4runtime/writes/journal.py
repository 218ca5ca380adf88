# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Undo steps of the writes in progress, so that a failed update or batch leaves nothing behind."""

from collections.abc import Callable
from typing import Any


class Journal:
    """Steps that undo the changes since the last `forget`, newest first.

    A step may use the data plane; it cannot fail if the change itself has succeeded.
    """

    def __init__(self) -> None:
        self._steps: list[Callable[[], object]] = []
        self.is_batch = False
        """Whether updates that have succeeded may still be undone."""

    def note(self, undo: Callable[[], object]) -> None:
        """Remember how to undo a change that has just been made."""
        self._steps.append(undo)

    def rollback(self) -> None:
        """Undo every change noted."""
        while self._steps:
            self._steps.pop()()

    def forget(self) -> None:
        """Keep the changes for good."""
        self._steps.clear()


class Backend:
    """What the stores of one pipeline write to: a data plane, and the journal that undoes it."""

    def __init__(self, dataplane: Any) -> None:
        self.dataplane = dataplane
        """A DataPlane, or a RecordingDataPlane until COMMIT."""
        self.journal = Journal()
