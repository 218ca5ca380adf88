# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's update on its path to one server, and what became of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from ...control.stations.station import TransferDropped, TransferRequested
from ...errors import HostlibError, UpdateRefusedError
from ...peers.frames import SummedUpdate
from .granted_rate import PacedBytes


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
class OutgoingUpdate(PacedBytes):
    """A part of an update until its outcome is known; used in the loop's thread."""

    shard: int
    table: int
    num_keys: int
    payload: memoryview
    """Keys, then values."""
    version: int
    norm: float
    done: Callable[[PartOutcome | HostlibError], None]
    number: int = 0
    """At the server; given when it is to be sent."""
    open_from: int = 0
    """On its path to an aggregator: what the server would be told; 0: what the link knows."""
    sum_key: int = 0
    """See TransferRequested."""
    clock: int = 0
    """Iterations that the worker had ended when it asked; 0 in asynchronous jobs."""
    whole_bytes: int = 0
    """See TransferRequested."""
    summed: tuple[SummedUpdate, ...] = ()
    """Of a sum: the updates in it."""
    is_in_group: bool = False
    """It travels to an aggregator: nothing of it leaves for the server."""
    has_left_group: bool = False
    """It did so, and now goes to the server."""
    is_settled: bool = False
    """Whether its outcome is known; a copy may still be on its path to a replica."""
    early: PartOutcome | None = None
    """What the replica has said before the server: that it has applied the update."""

    def request(self) -> TransferRequested:
        """Return what to ask the scheduler for."""
        return TransferRequested(
            self.transfer_id,
            self.shard,
            self.payload.nbytes,
            self.version,
            self.norm,
            self.sum_key,
            self.clock,
            self.whole_bytes,
        )

    def drop(self, dropped: TransferDropped) -> None:
        """Learn that it is not sent."""
        reason = dropped.reason or "the scheduler gives no reason"
        self.settle(PartOutcome(shard=self.shard, delay=dropped.delay, drop_reason=reason))

    def refuse(self, reason: str) -> None:
        """Learn that the scheduler cannot plan it: it is not sent."""
        self.settle(UpdateRefusedError(f"server {self.shard}: {reason}"))

    def settle(self, outcome: PartOutcome | HostlibError) -> None:
        """Tell its outcome, which is the only one."""
        self.is_settled = True
        self.done(outcome)

    @property
    def left_bytes(self) -> int:
        """How many bytes have not left."""
        return 0 if self.is_in_group else self.payload.nbytes - self.sent_bytes

    def ask_again(self) -> None:
        """Forget grant and number: it is to be granted once more, for another server."""
        self.number = 0
        self.forget_grant()

    def start_again(self) -> None:
        """Forget what left over a connection that broke; the rate is not told then."""
        self.is_measured = self.is_measured or self.is_begun
        self.is_begun, self.sent_bytes, self.last_s = False, 0, 0.0
