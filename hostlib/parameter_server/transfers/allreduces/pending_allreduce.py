# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A member's call of all_reduce, as it asks the scheduler for a grant."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import final

from ....control.stations.allreduce_terms import AllreduceRequested
from ....control.stations.station import TransferDropped, TransferGranted
from ...rules import Values
from ..granted_rate import GrantedRate


@final
@dataclass(eq=False, kw_only=True)
class PendingAllreduce:
    """Used in the loop's thread; what is sent for it is in RunningAllreduce."""

    vector: Values
    """The member's own, which nobody changes."""
    num_members: int
    wait_s: float
    """How long the others may take to ask."""
    future: Future[Values]
    on_refused: Callable[[str], None]
    """Called if the scheduler cannot plan it."""
    number: int = 0
    """Of the member's count, from 1; given when it begins."""
    is_noted: bool = False
    """Whether the scheduler knows of it, and waits for others."""
    was_cut: bool = False
    """Whether the stream broke meanwhile: others may have grants of an earlier scheduler."""
    transfer_id: int = 0
    grant: TransferGranted | None = None
    rate: GrantedRate | None = None
    """None: each leg has its own."""

    @property
    def must_wait(self) -> bool:
        """Whether it waits for other members, and not for the scheduler."""
        return self.is_noted and not self.was_cut

    @property
    def shard(self) -> int:
        """No server has a part in it."""
        return 0

    def request(self) -> AllreduceRequested:
        """Return what to ask the scheduler for."""
        return AllreduceRequested(
            self.transfer_id, self.number, self.vector.nbytes, self.num_members, self.wait_s
        )

    def drop(self, dropped: TransferDropped) -> None:
        """Learn that there is no sum; but the scheduler drops none: all members wait for it."""
        self.on_refused(dropped.reason)

    def refuse(self, reason: str) -> None:
        """Learn that the scheduler cannot plan it."""
        self.on_refused(reason)
