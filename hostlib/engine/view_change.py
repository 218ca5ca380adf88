# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A change of the job's view, as one worker sees it."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final, final

from ..control.controller_seam import ControllerLink
from ..control.view import JobView


@dataclass(frozen=True, kw_only=True)
class Commit:
    """The view that was agreed on."""

    view: JobView
    boundary: int
    """Number of the first tensor that runs there."""
    source_worker: int
    """This worker has the results of all tensors before the boundary."""


class State(enum.Enum):
    """How far a worker is in leaving its view."""

    RUNNING = enum.auto()
    """No change is known: tensors start and run."""
    HOLDING = enum.auto()
    """A graceful change is proposed: tensors run, but none starts."""
    DRAINING = enum.auto()
    """A view is committed: the tensors before its boundary start and run to their end."""
    STOPPED = enum.auto()
    """An abort is proposed: no tensor runs, so that the position that was answered stays true."""
    LEAVING = enum.auto()
    """A view is committed and no tensor runs: the worker enters the view in this turn."""


_ALLOWED: Final[dict[State, set[State]]] = {
    State.RUNNING: {State.HOLDING, State.STOPPED, State.DRAINING, State.LEAVING},
    State.HOLDING: {State.HOLDING, State.STOPPED, State.DRAINING, State.LEAVING},
    State.DRAINING: {State.DRAINING, State.STOPPED, State.LEAVING, State.RUNNING},
    State.STOPPED: {State.STOPPED, State.LEAVING},
    State.LEAVING: {State.STOPPED, State.LEAVING, State.RUNNING},
}


@final
class ViewChange:
    """The state machine of a worker's view changes; used by the I/O thread alone.

    ```text
              propose(graceful)            agree            all tensors < boundary done
    RUNNING ------------------> HOLDING ---------> DRAINING ----------------------------> RUNNING
       |   propose(abort)          |                  |                               in the new
       +------------+--------------+------------------+                                  view
                    v                       agree                                         ^
                 STOPPED -----------------------------------------> LEAVING --------------+
    ```

    - A proposal of a later generation takes the place of an earlier one, but no graceful one takes
      the place of an abort.
    - A graceful proposal that comes while a committed view is to be entered waits until the worker
      is there. Other workers may have started tensors in that view, which have to run there.
    - An abort takes the place of everything, also of a commit.
    - A commit counts without a proposal. If this worker has started tensors beyond its boundary,
      they have to run again in the new view, so RUNNING, HOLDING and DRAINING go to LEAVING.
    - The controller repeats what may have been lost with a connection. A repeated proposal gets the
      same answer, and a repeated commit of an entered view is confirmed again.
    """

    def __init__(self, generation: int, link: ControllerLink | None) -> None:
        """Start in the view `generation`; `link` takes the answers."""
        self.state: State = State.RUNNING
        self.generation = generation
        """The newest view that is entered, proposed or committed."""
        self.limit: int | None = None
        """Number of the first tensor that must not start in the present view; None: no limit."""
        self._link = link
        self._entered = generation
        self._commit: Commit | None = None
        self._deferred = 0  # generation of a graceful proposal that waits until a view is entered

    @property
    def is_stopped(self) -> bool:
        """Whether no tensor may run in the present view."""
        return self.state in (State.STOPPED, State.LEAVING)

    @property
    def is_committed(self) -> bool:
        """Whether the next view is known."""
        return self.state in (State.DRAINING, State.LEAVING)

    @property
    def committed(self) -> int:
        """Generation of the newest view that is entered or committed; any thread."""
        return self.generation if self.is_committed else self._entered

    def propose(
        self, generation: int, *, is_abort: bool, num_started: int, num_completed: int
    ) -> None:
        """Take a proposal, and answer it with this worker's position; ignore an outdated one."""
        if generation <= self.committed or generation < self.generation:
            return
        if generation <= self._deferred and not is_abort:
            return  # the latest one is answered once the committed view is entered
        if generation == self.generation:
            self._answer()
            return
        if is_abort:
            self._move(State.STOPPED, generation, num_completed)
            self._answer()
        elif self.is_committed:
            self._deferred = generation
        elif self.state is not State.STOPPED:
            self._move(State.HOLDING, generation, num_started)
            self._answer()

    def agree(self, commit: Commit, *, num_started: int) -> None:
        """Take a commit; ignore an outdated one."""
        generation = commit.view.generation
        if generation <= self._entered:
            self._confirm(generation)
            return
        if generation < self.generation or generation == self.committed:
            return
        deferred = self._deferred
        has_to_redo = self.is_stopped or num_started > commit.boundary
        state = State.LEAVING if has_to_redo else State.DRAINING
        self._move(state, generation, commit.boundary)
        self._commit = commit
        self._deferred = deferred if deferred > generation else 0

    def ready(self, num_completed: int) -> Commit | None:
        """Return the commit whose view this worker is to enter now, if there is one."""
        commit = self._commit
        if commit is None or not (self.is_stopped or num_completed >= commit.boundary):
            return None
        return commit

    def enter(self) -> int:
        """Note that the committed view is entered, and confirm it to the controller.

        Returns the generation of a graceful proposal to be proposed again; 0 if none waits.
        """
        deferred, generation = self._deferred, self.generation
        self._move(State.RUNNING, generation, None)
        self._entered = generation
        self._confirm(generation)
        return deferred

    def _move(self, state: State, generation: int, limit: int | None) -> None:
        """Go to a state, and forget what an earlier change has left."""
        assert state in _ALLOWED[self.state], f"from {self.state} to {state}"
        self.state, self.generation, self.limit = state, generation, limit
        self._commit = None
        self._deferred = 0

    def _answer(self) -> None:
        """Tell the controller this worker's position, which is where it starts no more tensors."""
        assert self.limit is not None
        if self._link is not None:
            self._link.view_ready(self.generation, self.limit)

    def _confirm(self, generation: int) -> None:
        """Tell the controller that no view older than `generation` is in use here."""
        if self._link is not None:
            self._link.view_entered(generation)
