# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a session's engine and its link to the controller tell each other.

The link that speaks gRPC is imported when a session joins a job.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..errors import HostlibError
from .submitted_tensor import SubmittedTensors
from .view import JobView


class ViewListener(Protocol):
    """What a link tells an engine; called from the link's thread, must return at once.

    The link passes on every message. A message that the controller repeats comes again.
    """

    @property
    def view(self) -> JobView:
        """The newest view that this worker has entered."""
        ...

    @property
    def proposed(self) -> int:
        """Generation of a proposal that was heard and whose commit was not, 0 without one."""
        ...

    def propose(self, generation: int, *, is_abort: bool) -> None:
        """Get ready for another view, and call the link's `view_ready` with the position.

        Graceful: start no further tensor; the position is the number of tensors started.
        Abort: stop sending; the position is the number of tensors completed.
        A later proposal takes the place of an earlier one, which then needs no answer.
        """
        ...

    def commit(self, view: JobView, boundary: int, source_worker: int) -> None:
        """Run tensors from number `boundary` on in the new view.

        After an abort, `source_worker` has the results before the boundary that this worker misses.
        When no tensor needs an older view any more, the engine calls the link's `view_entered`.
        """
        ...

    def note_missing(self, generation: int, missing_workers: Sequence[int]) -> None:
        """Learn which workers this one and all others wait for in a view."""
        ...

    def fail(self, error: HostlibError) -> None:
        """Break the session: the job is over for this worker."""
        ...


class ControllerLink(Protocol):
    """A worker's membership in a job; safe to use from any thread."""

    @property
    def boundary(self) -> int:
        """Number of the first tensor that this worker takes part in."""
        ...

    def listen(self, listener: ViewListener) -> None:
        """Tell `listener` of changes from now on, and of those that have come since the join."""
        ...

    def view_ready(self, generation: int, position: int) -> None:
        """Answer the proposal of a view with this worker's position."""
        ...

    def view_entered(self, generation: int) -> None:
        """Report that this worker uses no view older than `generation`."""
        ...

    def stalled(
        self,
        generation: int,
        missing_workers: Sequence[int],
        submitted: SubmittedTensors,
        silent_s: float = 0.0,
        silent_tree: int = 0,
    ) -> None:
        """Report that nothing comes back in a view though this worker sends.

        `submitted`: the tensors that it waits for. `silent_s`: how long its switch has answered not
        even probes. `silent_tree`: the tree that they asked about.
        """
        ...

    def barrier(self, name: str, timeout_s: float) -> None:
        """Wait until all workers have reached the barrier of this name."""
        ...

    def close(self, position: int | None = None) -> None:
        """Leave the job; `position`: tensors run to their end, None: some were given up."""
        ...
