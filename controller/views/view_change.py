# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One change of a job's view: whom it asks, what they answered, its boundary, its time limits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ...hostlib.control.session_api import session_pb2 as pb
from ..jobs.job import View, WorkerId


@dataclass
class ChangeRequest:
    """Why a job should get another view; change requests that come together are one change."""

    reasons: list[str] = field(default_factory=list[str])
    is_abort: bool = False
    """The view in use cannot finish its tensors."""
    is_replan: bool = False
    """Another view is better, though the members are the same."""
    is_owed: bool = False
    """Workers have been asked, and hold back tensors until there is a commit."""
    avoid: set[str] = field(default_factory=set[str])
    """Switches that the next view should not use."""
    since_s: float | None = None
    """Since when there is no way to fulfil it, on the loop's clock."""

    def add(
        self,
        *reasons: str,
        is_abort: bool = False,
        is_replan: bool = False,
        is_owed: bool = False,
        avoid: Iterable[str] = (),
    ) -> None:
        """Take up more reasons."""
        self.reasons.extend(reason for reason in reasons if reason not in self.reasons)
        self.is_abort |= is_abort
        self.is_replan |= is_replan
        self.is_owed |= is_owed
        self.avoid.update(avoid)

    @property
    def reason(self) -> str:
        """All reasons in one line."""
        return "; ".join(self.reasons)


@dataclass(eq=False)
class Change:
    """The way from the view in use to `view`."""

    view: View
    is_abort: bool
    reason: str
    asked: set[WorkerId]
    """Who must answer, and must have left the older views before these go."""
    is_proposed: bool = False
    is_committed: bool = False
    positions: dict[WorkerId, int] = field(default_factory=dict[WorkerId, int])
    entered: set[WorkerId] = field(default_factory=set[WorkerId])
    boundary: int = 0
    """First tensor of the new view, once committed."""
    source_worker: WorkerId = 0
    """A worker that has every result before the boundary."""

    @property
    def generation(self) -> int:
        """Generation of the new view."""
        return self.view.generation

    @property
    def silent(self) -> list[WorkerId]:
        """Who has not answered the proposal."""
        return sorted(self.asked - self.positions.keys())

    @property
    def has_left_behind(self) -> list[WorkerId]:
        """Who may still use an older view."""
        return sorted(self.asked - self.entered)

    @property
    def furthest(self) -> int:
        """The furthest position of a worker that has answered."""
        return max(self.positions.values())

    def note_ready(self, worker_id: WorkerId, position: int) -> None:
        """Note a worker's answer to the proposal."""
        self.positions[worker_id] = position

    def note_entered(self, worker_id: WorkerId) -> None:
        """Note that a worker has left all older views."""
        self.entered.add(worker_id)

    def forget(self, worker_id: WorkerId) -> None:
        """Wait no more for a worker that has gone."""
        self.asked.discard(worker_id)
        self.positions.pop(worker_id, None)

    def settle(self, floor: int = 0) -> None:
        """Fix the boundary: the furthest position, at least `floor`."""
        self.boundary = max([floor, *self.positions.values()])
        self.source_worker = min(
            self.positions, key=lambda worker_id: (-self.positions[worker_id], worker_id)
        )
        self.is_committed = True

    def proposal(self) -> pb.ControllerMessage:
        """Return what asks a worker to get ready."""
        return pb.ControllerMessage(
            view_proposal=pb.ViewProposal(
                generation=self.generation, is_abort=self.is_abort, reason=self.reason
            )
        )


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
