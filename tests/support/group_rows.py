# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A server's link to its controller that puts rows for switch groups into a `RowSwitch` at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from row_switch import RowEntry, RowSwitch
from switchfold.hostlib.control.row_server_link import RowMember, RowServerRequest, RowView
from switchfold.hostlib.control.view import Endpoint
from switchfold.hostlib.hot_rows.row_packets import SERVER_ID_BASE

FIRST_ROW = 5


class GroupRowLink:
    """Attaches a row server to a switch; `make` is a RowLinkFactory."""

    def __init__(self, switch: RowSwitch, num_rows: int = 8) -> None:
        self.switch, self.num_rows = switch, num_rows
        self.sets: list[NDArray[np.void]] = []
        self.elsewhere: set[int] = set()
        """Workers at another switch."""
        self.is_closed = False

    def make(
        self,
        controller: str,
        request: RowServerRequest,
        *,
        on_view: Callable[[RowView], None],
        on_installed: Callable[[int, int], None],
        **rest: Any,
    ) -> GroupRowLink:
        self.request = request
        self.on_view, self._on_installed = on_view, on_installed
        return self

    @property
    def worker_id(self) -> int:
        """Of the server's packets."""
        return SERVER_ID_BASE + self.request.server_id

    def start(self) -> None:
        local = self.request.local
        self.is_closed = False
        self.switch.attach(self.worker_id, local.address, local.udp_port)
        self.on_view(self.view())

    def close(self) -> None:
        self.is_closed = True

    def set_rows(self, generation: int, number: int, rows: NDArray[np.void]) -> None:
        self.sets.append(rows)
        switch = self.switch
        with switch.changed:
            if generation != switch.generation:
                return
            switch.delete_rows(switch.rows)
            switch.set_rows(
                {int(row["row"]): RowEntry(int(row["epoch"]), 0, self.worker_id) for row in rows}
            )
            switch.changed.notify_all()
        self._on_installed(generation, number)

    def view(self) -> RowView:
        switch, other = self.switch, Endpoint(address="10.0.9.9", udp_port=21318)
        return RowView(
            generation=switch.generation,
            tree_id=switch.job_id,
            first_row=FIRST_ROW,
            num_rows=self.num_rows,
            values_per_packet=32,
            worker_id=self.worker_id,
            switch=replace(switch.endpoint, mac="02:00:00:00:00:fe"),
            num_workers=switch.num_workers,
            members=tuple(
                RowMember(
                    worker_id=worker,
                    child_id=worker,
                    worker_bitmap=1 << worker,
                    switch=other if worker in self.elsewhere else switch.endpoint,
                )
                for worker in range(switch.num_workers)
            ),
            reason="",
        )

    def begin_view(self, num_workers: int | None = None) -> None:
        """Begin the next view of the job."""
        workers = self.switch.num_workers if num_workers is None else num_workers
        self.switch.begin_view(self.switch.generation + 1, workers)
        self.on_view(self.view())
