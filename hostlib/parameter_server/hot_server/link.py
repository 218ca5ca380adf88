# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The seam between a server with hot rows and the controller of its job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ...control.row_server_link import RowServerLink, RowServerRequest, RowView
from ...errors import HostlibError


class RowLink(Protocol):
    """What a server needs of RowServerLink."""

    def start(self) -> None:
        """Begin to attach."""
        ...

    def set_rows(self, generation: int, number: int, rows: NDArray[np.void]) -> None:
        """Have exactly these rows be hot."""
        ...

    def close(self) -> None:
        """Detach; no callback comes later."""
        ...


class RowLinkFactory(Protocol):
    """Makes a link; RowServerLink does."""

    def __call__(
        self,
        controller: str,
        request: RowServerRequest,
        *,
        on_view: Callable[[RowView], None],
        on_installed: Callable[[int, int], None],
        on_down: Callable[[HostlibError], None],
    ) -> RowLink:
        """Return a link that has not started."""
        ...


controller_link: RowLinkFactory = RowServerLink
"""Attaches at a real controller."""
