# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The hot rows that servers have set, by view: what must be in the tables of the switches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...hostlib.control.row_server_link import ROW_DTYPE
from ..jobs.job import Generation, Placement, ServerId
from ..tables.hot_row import RowPlacement

NO_ROWS: Final = np.empty(0, ROW_DTYPE)


class RowSets:
    """Kept in memory alone: after a restart of the controller, servers set their rows again."""

    def __init__(self, placements: Callable[[str], list[Placement]]) -> None:
        """`placements` returns what the installed views hold on a switch."""
        self._placements = placements
        self._sets: dict[tuple[Generation, ServerId], NDArray[np.void] | None] = {}

    def put(self, generation: Generation, server_id: ServerId, rows: NDArray[np.void]) -> None:
        """Replace the rows of a server in a view."""
        self._sets[generation, server_id] = rows

    def expect(self, generation: Generation, server_id: ServerId) -> None:
        """Leave alone what the switches have of a server, until its rows are known."""
        self._sets[generation, server_id] = None

    def forget(self, generation: Generation, server_id: ServerId) -> None:
        """Have no rows of a server in a view any more."""
        self._sets.pop((generation, server_id), None)

    def on_switch(self, switch: str) -> list[RowPlacement]:
        """Return the rows of every server in every installed view at a switch."""
        return [
            RowPlacement(
                placement,
                server,
                self._sets.get((placement.view.generation, server.server_id), NO_ROWS),
            )
            for placement in self._placements(switch)
            for server in placement.tree.row_servers
        ]
