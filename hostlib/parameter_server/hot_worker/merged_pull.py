# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A pull of hot and cold keys."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Final, final

import numpy as np

from ...errors import HostlibError
from ...hot_rows.hot_cells import Floats, Indices
from ...hot_rows.sketch import Keys
from ..rows import PulledRows
from .cold_path import ColdPath, DonePull
from .open_calls import Done

UNKNOWN_UPDATES: Final = (1 << 32) - 1
"""In `PulledRows.updates`, of keys whose values came from a switch."""


@final
class MergedPull:
    """The rows of a pull, from the switch and from the server."""

    def __init__(  # noqa: PLR0917 - what a pull is
        self,
        cold: ColdPath,
        table: int,
        keys: Keys,
        width: int,
        hot: Indices,
        done: DonePull,
    ) -> None:
        self._cold = cold
        self._table = table
        self._keys = keys
        self._hot = hot
        self._done = done
        self.by_tcp: Callable[[], AbstractContextManager[None]] = nullcontext
        """What the server is asked in, for keys that the switch does not have."""
        updates = np.full(keys.size, UNKNOWN_UPDATES, np.uint32)
        self.values: Floats = np.empty((keys.size, width), np.float32)
        self._rows = PulledRows(self.values, updates)
        self._num_parts = 1
        self._error: HostlibError | None = None

    def pull_rest(self, places: Indices) -> None:
        """Ask the server for the cold keys."""
        if places.size:
            self._num_parts += 1
            self._pull(places, self.finish)

    def pull_cold(self, positions: Indices, done: Done) -> None:
        """Ask the server for keys that the switch does not have."""
        with self.by_tcp():
            self._pull(self._hot[positions], done)

    def finish(self, error: HostlibError | None) -> None:
        """End a part."""
        self._error = self._error or error
        self._num_parts -= 1
        if not self._num_parts:
            self._done(self._error or self._rows)

    def _pull(self, places: Indices, done: Done) -> None:
        def take(rows: PulledRows | HostlibError) -> None:
            if isinstance(rows, HostlibError):
                done(rows)
                return
            self._rows.values[places], self._rows.updates[places] = rows.values, rows.updates
            done(None)

        self._cold.pull(self._table, self._keys[places], self._rows.values.shape[1], take)
