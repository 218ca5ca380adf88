# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The seam between hot rows and the tables of their server: what TableService does for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .changes import HotChange
from .planning import PlannedTable
from .served_rows import Floats
from .state import HotState


class ServedTable(PlannedTable, Protocol):
    """A table, as far as hot rows need it."""

    def values(self, keys: NDArray[np.int64]) -> Floats:
        """Return the values of keys, of shape (keys, width)."""
        ...


class HotTables(Protocol):
    """The tables of the server, and their log."""

    @property
    def hot_state(self) -> HotState:
        """The rows and their rounds."""
        ...

    @property
    def hot_tables(self) -> Mapping[int, ServedTable]:
        """All tables by number."""
        ...

    @property
    def counters(self) -> Counter[str]:
        """Where to count."""
        ...

    @property
    def num_applied(self) -> int:
        """Lsn of the last record that was applied; without a log, the number of changes."""
        ...

    @property
    def takes_hot(self) -> bool:
        """Whether the log has room for sums."""
        ...

    def submit_hot(self, change: HotChange) -> None:
        """Log and apply a change, whose sums and fences are claimed."""
        ...
