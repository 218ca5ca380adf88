# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One change of a job's view: whom it asks, what they answered, its boundary, its time limits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

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
    """Since when no view can fulfil it, on the loop's clock; None: not known."""

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


class Change:
    """The change from the view in use to `view`."""

    def __init__(self, view: View, is_abort: bool, reason: str, asked: set[WorkerId]) -> None:
        self.is_abort: Final = is_abort
        self.reason: Final = reason
        self.asked: Final = asked
        """Workers that must answer, and must leave the older views before these are removed."""
        self._view = view
        self._is_proposed = False
        self._is_committed = False
        self._positions: dict[WorkerId, int] = {}
        self._entered: set[WorkerId] = set()
        self._boundary = 0
        self._source_worker: WorkerId = 0

    @property
    def view(self) -> View:
        """The new view."""
        return self._view

    @property
    def is_proposed(self) -> bool:
        """Whether the workers have been asked."""
        return self._is_proposed

    @property
    def is_committed(self) -> bool:
        """Whether the boundary is fixed."""
        return self._is_committed

    @property
    def boundary(self) -> int:
        """First tensor of the new view, once committed."""
        return self._boundary

    @property
    def source_worker(self) -> WorkerId:
        """A worker that has every result before the boundary."""
        return self._source_worker

    @property
    def generation(self) -> int:
        """Generation of the new view."""
        return self.view.generation

    @property
    def silent(self) -> list[WorkerId]:
        """Workers that have not answered the proposal."""
        return sorted(self.asked - self._positions.keys())

    @property
    def has_left_behind(self) -> list[WorkerId]:
        """Workers that may still use an older view."""
        return sorted(self.asked - self._entered)

    @property
    def furthest(self) -> int:
        """The furthest position of a worker that has answered."""
        return max(self._positions.values())

    def note_installed(self, view: View) -> None:
        """Note that the switches have the new view."""
        self._view = view

    def note_proposed(self) -> None:
        """Note that the workers have been asked."""
        self._is_proposed = True

    def note_ready(self, worker_id: WorkerId, position: int) -> None:
        """Note a worker's answer to the proposal."""
        self._positions[worker_id] = position

    def note_entered(self, worker_id: WorkerId) -> None:
        """Note that a worker has left all older views."""
        self._entered.add(worker_id)

    def forget(self, worker_id: WorkerId) -> None:
        """Wait no more for a worker that has gone."""
        self.asked.discard(worker_id)
        self._positions.pop(worker_id, None)

    def settle(self, floor: int = 0) -> None:
        """Fix the boundary: the furthest position, at least `floor`."""
        self._boundary = max([floor, *self._positions.values()])
        self._source_worker = min(
            self._positions, key=lambda worker_id: (-self._positions[worker_id], worker_id)
        )
        self._is_committed = True

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
    """Change requests that come within this time are one change."""
    abort_answer_s: float = 1.0
    """A worker that has sent for this long after an abort and not answered it is evicted."""
    graceful_answer_s: float = 2.0
    """A graceful change becomes an abort if a worker has sent for this long and not answered."""
    no_route_s: float = 8.0
    """A job whose view is broken waits this long for another view, then it ends."""
    retry_s: float = 0.3
    """Time between attempts to plan a view."""
    look_s: float = 0.1
    """Time between looks at those who have not answered."""
    held_up_s: float = 0.2
    """If a limit is noticed this much too late, the controller does not blame workers."""
