# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's update on its path to one server, and what became of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from ...control.stations.station import TransferGranted
from ...errors import HostlibError
from ...peers.frames import SummedUpdate
from .granted_rate import GrantedRate


@final
@dataclass(frozen=True, kw_only=True)
class PartOutcome:
    """What became of the part of an update that one server keeps."""

    shard: int
    version: int = 0
    """Number of updates that the server's model contained with it; 0: the part was dropped."""
    delay: int = 0
    """Updates between its version and itself; of a dropped part, the least that there would be.

    0 if the server's answer was lost with a connection.
    """
    is_granted: bool = False
    """Whether it travelled by a grant of the scheduler."""
    is_summed: bool = False
    """Whether it came in the sum of a group."""
    drop_reason: str = ""
    """Why the scheduler had it dropped; empty: it was applied."""


@dataclass(eq=False)
class OutgoingUpdate:
    """A part of an update until its outcome is known; used in the loop's thread."""

    shard: int
    table: int
    num_keys: int
    payload: memoryview
    """Keys, then values."""
    version: int
    norm: float
    clock: int
    """Iterations that the worker had ended when it asked; 0 in asynchronous jobs."""
    done: Callable[[PartOutcome | HostlibError], None]
    number: int = 0
    """At the server; given when it is to be sent."""
    open_from: int = 0
    """On its path to an aggregator: what the server would be told; 0: what the link knows."""
    sum_key: int = 0
    """See TransferRequested."""
    summed: tuple[SummedUpdate, ...] = ()
    """Of a sum: the updates in it."""
    is_in_group: bool = False
    """It travels to an aggregator: nothing of it leaves for the server."""
    has_left_group: bool = False
    """It did so, and now goes to the server."""
    transfer_id: int = 0
    """At the scheduler; 0: it does not know of it."""
    grant: TransferGranted | None = None
    rate: GrantedRate | None = None
    """None: it may leave at once."""
    sent_bytes: int = 0
    """Over the present connection."""
    is_begun: bool = False
    """Whether its head has left over the present connection."""
    first_s: float = 0.0
    """When its first bytes left."""
    last_s: float = 0.0
    """When its last bytes left; 0: they have not."""
    held_since_s: float | None = None
    """Since when the network takes less than the grant allows; None: it does not."""
    network_wait_s: float = 0.0
    """How long it has done so before."""
    is_measured: bool = False
    """Whether its rate has been reported, or cannot be told."""

    @property
    def left_bytes(self) -> int:
        """How many bytes have not left."""
        return 0 if self.is_in_group else self.payload.nbytes - self.sent_bytes

    def note_held(self, is_held: bool, now_s: float) -> None:
        """Note whether the network keeps back what may leave."""
        if self.held_since_s is not None:
            self.network_wait_s += now_s - self.held_since_s
        self.held_since_s = now_s if is_held else None

    def start_again(self) -> None:
        """Forget what left over a connection that broke; the rate is not told then."""
        self.is_measured = self.is_measured or self.is_begun
        self.is_begun, self.sent_bytes, self.last_s = False, 0, 0.0
