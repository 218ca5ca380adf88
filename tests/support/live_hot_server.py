# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A parameter server whose hot rows are in a `RowSwitch`; tests take the controller's place."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from loopback import LOOPBACK
from row_switch import RowEntry, RowSwitch
from switchfold.hostlib.control.row_server_link import RowMember, RowServerRequest, RowView
from switchfold.hostlib.hot_rows.row_packets import SERVER_ID_BASE
from switchfold.hostlib.parameter_server import ParameterServer, ServerOptions
from switchfold.hostlib.parameter_server.hot_server.options import HotRowOptions

NUM_ROWS = 12


class _Link:
    """Puts the server's rows into the switch at once."""

    def __init__(
        self,
        live: LiveHotServer,
        request: RowServerRequest,
        on_view: Callable[[RowView], None],
        on_installed: Callable[[int, int], None],
    ) -> None:
        self._live = live
        self._request = request
        self.on_view, self._on_installed = on_view, on_installed

    def start(self) -> None:
        local = self._request.local
        self._live.switch.attach(SERVER_ID_BASE, local.address, local.udp_port)
        self.on_view(self._live.view())

    def close(self) -> None:
        """Nothing is open."""

    def set_rows(self, generation: int, number: int, rows: NDArray[np.void]) -> None:
        switch = self._live.switch
        with switch.changed:
            if generation != switch.generation:
                return
            switch.delete_rows(switch.rows)
            switch.set_rows(
                {int(row["row"]): RowEntry(int(row["epoch"]), int(row["exponent"])) for row in rows}
            )
            switch.changed.notify_all()
        self._on_installed(generation, number)


class LiveHotServer:
    """Its rows are 2 to NUM_ROWS + 1; it looks for hot keys all the time."""

    def __init__(self, switch: RowSwitch, num_workers: int, **options: Any) -> None:
        self.switch = switch
        self._num_workers = num_workers
        self._port = 0
        self._options = ServerOptions(
            num_workers=num_workers,
            hot=HotRowOptions(
                controller="none", job="job", rows=NUM_ROWS, flush_s=0.01, refresh_s=0.1
            ),
            **options,
        )
        self._start()

    def _start(self) -> None:
        self.tables = ParameterServer(
            self._options, address=LOOPBACK, port=self._port, row_link=self._make_link
        )
        self._port = self.tables.port

    def _make_link(
        self,
        controller: str,
        request: RowServerRequest,
        *,
        on_view: Callable[[RowView], None],
        on_installed: Callable[[int, int], None],
        **rest: Any,
    ) -> _Link:
        self._link = _Link(self, request, on_view, on_installed)
        return self._link

    @property
    def address(self) -> tuple[str, int]:
        return LOOPBACK, self._port

    def view(self) -> RowView:
        switch = self.switch
        return RowView(
            generation=switch.generation,
            tree_id=switch.job_id,
            first_row=2,
            num_rows=NUM_ROWS,
            values_per_packet=32,
            worker_id=SERVER_ID_BASE,
            switch=switch.endpoint,
            num_workers=self._num_workers,
            members=tuple(
                RowMember(worker_id=w, child_id=w, worker_bitmap=1 << w, switch=switch.endpoint)
                for w in range(self._num_workers)
            ),
            reason="",
        )

    def begin_view(self) -> None:
        """Begin the next view of the job."""
        self.switch.begin_view(self.switch.generation + 1, self._num_workers)
        self._link.on_view(self.view())

    def restart(self) -> None:
        """End the server, and start another one with its log."""
        self.tables.close()
        self._start()

    def cut(self, worker_id: int) -> None:
        """Break the connection of a worker, which connects again."""

        def close() -> None:
            caller = self.tables._hot._teller._callers.get(worker_id)
            if caller is not None:
                caller.connection._socket.shutdown(2)

        self.tables.loop.run(close)

    def wait_for_rows(self) -> None:
        """Wait until the switch has hot rows."""
        self.switch.wait(lambda: bool(self.switch.rows))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.tables.close()
