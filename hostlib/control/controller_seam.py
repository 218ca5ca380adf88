# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a session needs of the control plane; the real one speaks gRPC and is imported lazily."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ..errors import HostlibError
from .view import JobView


class ViewListener(Protocol):
    """What a link tells its session; called from the link's thread, must return at once."""

    def on_view_proposal(
        self, generation: int, is_abort: bool, reply: Callable[[int], None]
    ) -> None:
        """Get ready for another view and call `reply` with the position, from any thread.

        Graceful: start no further tensor; the position is the number of tensors started.
        Abort: stop sending; the position is the number of tensors completed.
        A later proposal takes the place of an earlier one, whose `reply` need not be called.
        """
        ...

    def on_view_commit(self, view: JobView, boundary: int, source_worker: int) -> None:
        """Run tensors from number `boundary` on in the new view.

        After an abort, results before the boundary that lack here are at `source_worker`. When no
        tensor needs an older view any more, the session calls the link's `view_entered`.
        """
        ...

    def on_missing(self, generation: int, missing_workers: Sequence[int]) -> None:
        """Learn whom this worker and all others wait for in a view."""
        ...

    def fail(self, error: HostlibError) -> None:
        """Break the session: the job is over for this worker."""
        ...


class ControllerLink(Protocol):
    """A worker's membership in a job."""

    @property
    def boundary(self) -> int:
        """Number of the first tensor that this worker takes part in."""
        ...

    def listen(self, listener: ViewListener) -> None:
        """Tell `listener` of changes from now on, and of those that have come since the join."""
        ...

    def view_entered(self, generation: int) -> None:
        """Say that this worker uses no view older than `generation`; any thread."""
        ...

    def stalled(
        self, generation: int, missing_workers: Sequence[int], silent_s: float = 0.0
    ) -> None:
        """Say that nothing comes back in a view though this worker sends; any thread.

        `silent_s`: how long its switch has answered not even probes.
        """
        ...

    def barrier(self, name: str, timeout_s: float) -> None:
        """Wait until all workers have reached the barrier of this name."""
        ...

    def close(self, position: int | None = None) -> None:
        """Leave the job; `position`: tensors run to their end, None: some were given up."""
        ...
