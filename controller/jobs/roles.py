# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What the changes of a job need of others, and how long they may wait for it."""

from __future__ import annotations

from collections.abc import Collection, Coroutine, Iterable
from dataclasses import dataclass
from typing import Protocol

from ..errors import ControllerError
from ..views.view_change import Change
from .job import Job, View, Worker
from .live_job import LiveJob
from .worker_lease import WorkerLease


class ViewPlanner(Protocol):
    """What makes views and puts them on switches."""

    def plan(
        self,
        job: Job,
        members: Iterable[Worker],
        *,
        avoid: Collection[str] = (),
        replacing: View | None = None,
    ) -> View:
        """WorkerLease slots for a new view; NoRoomError and its kind when there is no way.

        The slots of `replacing` count as free: nobody sends in it when the new one is installed.
        """
        ...

    async def install(self, view: View) -> View:
        """Put a view on its switches; SwitchError when one refuses."""
        ...

    async def remove(self, view: View) -> View:
        """Take a view off its switches and free its slots."""
        ...


class JobActions(Protocol):
    """What a change may do to its job; the membership does it."""

    def lose(self, live: LiveJob, lease: WorkerLease, why: str) -> None:
        """Take a worker out that is not there any more."""
        ...

    def refuse(self, live: LiveJob, lease: WorkerLease, error: ControllerError) -> None:
        """Send a worker away that waits to join."""
        ...

    def end(self, live: LiveJob, reason: str, error: ControllerError | None = None) -> None:
        """End the job."""
        ...

    def announce(self, live: LiveJob, change: Change) -> None:
        """Store what was committed and tell the workers."""
        ...

    def admit(self, live: LiveJob, leases: list[WorkerLease], boundary: int) -> None:
        """Let workers in that have waited for a boundary."""
        ...

    def rebalance(self) -> None:
        """Look soon whether slots should be shared anew."""
        ...

    def spawn(self, work: Coroutine[object, object, None]) -> None:
        """Do something that outlives the change."""
        ...


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Every wait of a change ends with one of these."""

    coalesce_s: float = 0.05
    """ChangeRequests that come within this time are one change."""
    abort_answer_s: float = 1.0
    """Who has spoken for so long since it was asked, and not answered an abort, is lost."""
    graceful_answer_s: float = 2.0
    """When one has spoken for so long and not answered a graceful change, that becomes an abort."""
    no_way_s: float = 8.0
    """A job whose view is broken waits so long for another way, then it ends."""
    retry_s: float = 0.3
    """Time between attempts to plan a view."""
    look_s: float = 0.1
    """Time between looks at those who have not answered."""
    held_up_s: float = 0.2
    """When a limit is noticed so much too late, workers are not blamed."""
