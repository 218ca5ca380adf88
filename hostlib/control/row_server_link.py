# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A parameter server's place in a job: the switch rows that the controller gives it.

gRPC is loaded when a link starts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

import numpy as np
from numpy.typing import NDArray

from ..errors import ConfigurationError, HostlibError
from .controller_addresses import ControllerAddresses
from .kept_stream import KeptStream
from .view import Endpoint

if TYPE_CHECKING:
    from .row_server_stream import RowStream


MAX_ROW_SERVERS: Final = 32
"""Servers of one job; server k has the header's `worker_id` 32 + k."""
ROW_DTYPE: Final = np.dtype([("row", np.uint32), ("epoch", np.uint32), ("exponent", np.int8)])
"""A hot row: its number in the tree, its epoch (at least 32, with epoch % 32 == server id), and its
exponent without bias: value = lane * 2^exponent."""


@dataclass(frozen=True, kw_only=True)
class RowServerRequest:
    """What a server tells the controller about itself when it attaches."""

    job: str
    """Name of the job, which need not exist yet."""
    server_id: int
    """0..31."""
    identity: bytes
    """16 bytes: kept with the server's log; without a log, drawn when the server starts."""
    local: Endpoint
    """Where sums and receipts come: address, UDP port, and MAC address unless the controller's
    configuration lists the host."""
    rows_wanted: int
    """Most hot rows of all its tables."""
    values_per_packet: int = 0
    """0: any."""
    ingress_port: int | str = 0
    """Switch port, by number or by name (s1-eth1); 0: the configured one of this address."""
    switch_name: str = ""
    """Empty: the only switch, or that of the configured host."""
    token: str = field(default="", repr=False)
    """The controller's token."""
    credentials: str | None = None
    """Folder with this server's certificate, key and authority; None: no TLS."""
    job_token: str = field(default="", repr=False)
    """The job's token, if its workers have one."""


@dataclass(frozen=True, kw_only=True)
class RowMember:
    """A worker of the view, as the headers of its pushes name it."""

    worker_id: int
    child_id: int
    """The header's `worker_id`."""
    worker_bitmap: int
    switch: Endpoint
    """Where this worker sends pushes and reads to."""


@dataclass(frozen=True, kw_only=True)
class RowView:
    """A server's rows in the view that the job uses."""

    generation: int
    """0: the job has no view yet."""
    tree_id: int
    """In the header's `job_id` field."""
    first_row: int
    num_rows: int
    """0: no place; `reason` says why."""
    values_per_packet: int
    worker_id: int
    """In the headers that this server sends: 32 + server id."""
    switch: Endpoint
    """Where this server sends to."""
    num_workers: int
    """Contributions that complete a round."""
    members: tuple[RowMember, ...]
    """By worker id."""
    reason: str
    """Why there is no place, or fewer rows than wanted; else empty."""


@dataclass(frozen=True)
class RowSet:
    """All hot rows of a server in one view."""

    generation: int
    number: int
    rows: NDArray[np.void]
    """ROW_DTYPE."""


@dataclass(frozen=True)
class RowsInstalled:
    """Every switch of the tree has this set of rows."""

    generation: int
    number: int


@final
class RowServerLink:
    """One stream to the controller, opened again whenever it breaks.

    The callbacks are called from the link's thread, one at a time, and must return soon.
    """

    def __init__(
        self,
        controller: str,
        request: RowServerRequest,
        *,
        on_view: Callable[[RowView], None],
        on_installed: Callable[[int, int], None],
        on_down: Callable[[HostlibError], None],
    ) -> None:
        """`controller`: HOST:PORT or unix:/PATH, or several with commas.

        Call `start` to open the stream.

        `on_view(view)`: at each attachment and for each committed view; the same view may come
        again. `on_installed(generation, number)`: a set of rows is on all switches of the tree; may
        come again. `on_down(error)`: the controller refuses this server, and the link does not try
        again: JobRefusedError, VersionMismatchError, or WorkerTakenError when another process has
        taken the place, or has it for TAKEN_WAIT_S.
        """
        self._controllers = ControllerAddresses(controller)
        self._request = request
        self._on_view = on_view
        self._on_installed = on_installed
        self._rows: RowSet | None = None
        self._kept = KeptStream["RowStream", RowView | RowsInstalled](
            self._open,
            lambda stream: stream.events(),
            on_event=self._tell,
            on_failed=on_down,
            on_open=self._send_last_rows,
            name="switchfold-rows",
            meanwhile="rows stay as they are",
        )

    def start(self) -> None:
        """Open the stream in a thread of the link's own; keeps trying while nobody answers.

        Raises ConfigurationError when the request cannot be sent.
        """
        from .row_server_stream import check_row_request  # noqa: PLC0415 - loads gRPC

        check_row_request(self._request)
        self._kept.start()

    def set_rows(self, generation: int, number: int, rows: NDArray[np.void]) -> None:
        """Have exactly these rows (ROW_DTYPE) be hot in a view; returns at once.

        A later call takes the place of an earlier one. After a broken stream, the link sends the
        last set again. A set of an older generation is ignored: `on_view` has told of a newer one,
        or will.
        """
        if rows.dtype != ROW_DTYPE:
            raise ConfigurationError(f"rows of {rows.dtype}; {ROW_DTYPE} is needed")
        with self._kept.lock:
            self._rows = RowSet(generation, number, rows.copy())
            if self._kept.stream is not None:
                self._kept.stream.send_rows(self._rows)

    def close(self) -> None:
        """End the stream; no callback comes later. The rows stay for a few seconds.

        Not to be called from a callback.
        """
        self._kept.close()

    def _open(self) -> RowStream:
        """Open the stream; raises CredentialsError."""
        from .row_server_stream import RowStream  # noqa: PLC0415 - loads gRPC

        return RowStream(self._controllers, self._request)

    def _send_last_rows(self, stream: RowStream) -> None:
        if self._rows is not None:
            stream.send_rows(self._rows)

    def _tell(self, event: RowView | RowsInstalled) -> None:
        if isinstance(event, RowView):
            self._on_view(event)
        else:
            self._on_installed(event.generation, event.number)
