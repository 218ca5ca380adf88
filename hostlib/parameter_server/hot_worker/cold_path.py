# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What hot rows need of the connection to the same server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ...errors import HostlibError
from ...hot_rows.sketch import Keys
from ...peers.frames import Packable
from ..rows import PulledRows
from .open_calls import Done

DonePull = Callable[[PulledRows | HostlibError], None]


class ColdPath(Protocol):
    """A session, which reaches the same server by TCP."""

    @property
    def shard(self) -> int:
        """The server's position in the list of servers."""
        ...

    @property
    def can_send(self) -> bool:
        """Whether the server has let this process in, over the present connection."""
        ...

    @property
    def num_ahead(self) -> int:
        """Iterations whose pushes the server has from the worker's process before."""
        ...

    def begin(self) -> None:
        """Connect, and look for silence, for something that is about to be open."""
        ...

    def push(self, table: int, payload: memoryview, num_keys: int, done: Done) -> None:
        """Push keys and gradients."""
        ...

    def pull(self, table: int, keys: Keys, width: int, done: DonePull) -> None:
        """Pull rows."""
        ...

    def send_frame(self, frame: Packable, payload: memoryview) -> None:
        """Send a frame that needs no receipt, if `can_send`."""
        ...
