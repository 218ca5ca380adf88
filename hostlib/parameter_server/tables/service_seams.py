# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Whom the tables tell what they have done: workers' connections, and the server of hot rows."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ...errors import HostlibError, PeerError
from ...peers.frames import ModelCameFrame, Packable
from ...peers.pacing import PacedLink
from ..hot_server.state import DecidedRounds
from ..rows import PulledRows
from .change import TableChange


class TableCaller(Protocol):
    """A worker's connection, as the service sees it."""

    def on_applied(self, request: TableChange) -> None:
        """Learn that a request is applied, and durable."""
        ...

    def on_denied(self, number: int, error: HostlibError, *, is_pull: bool) -> None:
        """Learn that a request or a pull has no effect."""
        ...

    def on_rows(self, number: int, table: int, rows: PulledRows) -> None:
        """Take the rows of a pull."""
        ...

    def on_room(self) -> None:
        """Learn that the service may take frames again."""
        ...

    def refuse(self, error: PeerError) -> None:
        """Say why this connection is of no use, and close it."""
        ...

    def drop(self) -> None:
        """Close this connection: the same process has another one."""
        ...


class PacedCaller(Protocol):
    """A worker's connection over which rows leave in pieces, as the keeper of models sees it."""

    @property
    def link(self) -> PacedLink:
        """The connection."""
        ...

    def rows_payload(self, rows: PulledRows) -> memoryview:
        """Return the bytes of an answer with these rows, at the present version."""
        ...

    def send_piece(self, number: int, piece: memoryview) -> None:
        """Send the next bytes of the answer to a pull, but not the last ones."""
        ...

    def send_rows(self, number: int, table: int, num_keys: int, rest: memoryview) -> None:
        """Send the last bytes of the answer to a pull."""
        ...

    def tell(self, frame: Packable) -> None:
        """Tell the worker that an answer is sent on, or comes from another worker."""
        ...


class TablePull(NamedTuple):
    """A pull that waits for the worker's own pushes, for slower workers, or for the scheduler."""

    client: TableCaller
    worker_id: int
    number: int
    table: int
    clock: int
    """Of the worker when it asked."""
    keys: NDArray[np.int64]
    lsn: int
    """Of the worker's last request before it; 0: none that waits."""
    deadline_s: float
    model_to: PacedCaller | None = None
    """Where the rows go, if they are a model, which a scheduler may plan; None: they are none."""


class ModelKeeper(Protocol):
    """Has models leave when the transfer scheduler lets them, as the service sees it."""

    def keep(self, pull: TablePull) -> bool:
        """Answer a pull later; return False if it is to be answered now."""
        ...

    def detach(self, client: TableCaller) -> None:
        """Learn that a connection is gone; its pulls are forgotten."""
        ...

    def on_came(self, client: TableCaller, came: ModelCameFrame) -> None:
        """Learn what became of an answer that another worker has sent."""
        ...

    def on_not_sent_on(self, client: TableCaller, number: int) -> None:
        """Learn that a worker does not send the answer to its pull on."""
        ...


class UpdateListener(Protocol):
    """The receiver of scheduled updates, as the service sees it."""

    def refusal(self, request: TableChange) -> HostlibError | None:
        """Return why a change that is no TRANSFER has no effect, None if it may have."""
        ...

    def on_update_applied(self, request: TableChange) -> None:
        """Learn that one of UPDATES is applied, and durable."""
        ...

    def on_update_denied(self, request: TableChange, error: HostlibError) -> None:
        """Learn that one of UPDATES has no effect."""
        ...

    def on_model_read(self, worker_id: int, table: int) -> None:
        """Learn that a worker has got rows of a table."""
        ...

    def on_logged(self, error: HostlibError | None) -> None:
        """Learn that records are durable, or why some are not; their changes are over."""
        ...


class HotListener(Protocol):
    """The server of hot rows, as the service sees it."""

    def wants_batch(self, table: int) -> bool:
        """Learn that a START or PUSH is applied; return whether to pass it to `on_batch`."""
        ...

    def on_batch(self, table: int, keys: NDArray[np.int64], values: NDArray[np.float32]) -> None:
        """Learn what a START or PUSH has changed."""
        ...

    def on_decided(self, decided: DecidedRounds) -> None:
        """Learn that rounds are decided, and that this is durable."""
        ...

    def on_layout(self) -> None:
        """Learn that other rows are hot from now on."""
        ...

    def on_layout_failed(self) -> None:
        """Learn that the log did not take other hot rows."""
        ...
