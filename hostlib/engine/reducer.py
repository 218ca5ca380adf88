# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What the engine needs of a reducer, which sums over switch slots or among hosts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ..allgather import AllgatherTask, BlockExchange
from ..control.view import JobView
from ..errors import HostlibError
from ..slots.counters import StreamCounters
from ..summation.chunks import ChunkSource
from .allreduce_task import AllreduceTask

Task = AllreduceTask | AllgatherTask


class ChunkStream(Protocol):
    """Reduces the chunks of one tensor after the other, with one operation."""

    @property
    def counters(self) -> StreamCounters:
        """What was sent and received, in chunks."""
        ...

    def enqueue(self, source: ChunkSource) -> None:
        """Append a tensor to the sequence."""
        ...

    def abandon(self, source: ChunkSource) -> None:
        """Count all chunks of an enqueued tensor as done: its result came from another worker."""
        ...

    def is_finished(self, source: ChunkSource) -> bool:
        """Return whether all results of an enqueued tensor are there."""
        ...

    @property
    def round_trip_s(self) -> float:
        """Smoothed round-trip time, 0 where there is none."""
        ...

    @property
    def window(self) -> int:
        """Most chunks that may be without result now, 0 where nothing limits them."""
        ...

    @property
    def incast_trials(self) -> int:
        """How often other numbers of chunks under way were tried, with `dynamic_incast`."""
        ...


class Arrivals(NamedTuple):
    """What came during a poll."""

    results: int = 0
    """Number of awaited results."""
    progress_s: float = 0.0
    """When the last of them came, on the monotonic clock."""
    behind: tuple[int, ...] = ()
    """Ids of tensors whose rounds the other workers have left."""


class Reducer(Protocol):
    """One view at work; used by the I/O thread alone."""

    view: JobView
    first_tensor: int
    """Number of the first tensor that runs here."""
    failure: HostlibError | None
    """Why no result of this view will come any more; None if that is not known."""
    multicast: BlockExchange | None
    """Runs the view's allgathers; None if no switch copies blocks."""

    @property
    def exponents(self) -> ChunkStream:
        """The stream that maximises."""
        ...

    @property
    def values(self) -> ChunkStream:
        """The stream that adds."""
        ...

    def poll(self, until_s: float) -> Arrivals:
        """Send, receive and keep timers until something has come, or until `until_s`."""
        ...

    def interrupt(self) -> None:
        """Make `poll`, or the next one, return at once (any thread)."""
        ...

    @property
    def is_waiting(self) -> bool:
        """Whether results are due."""
        ...

    @property
    def stall_s(self) -> float:
        """Time without progress after which a worker that waits reports a stall."""
        ...

    @property
    def moved_s(self) -> float:
        """When awaited data last moved without a result of `poll`."""
        ...

    def ask(self, now_s: float) -> None:
        """Begin to find out what the oldest chunk waits for."""
        ...

    def end_probe(self) -> None:
        """Stop asking, and forget the answers."""
        ...

    @property
    def missing(self) -> list[int]:
        """Workers that the oldest chunk waits for, as far as asking has shown."""
        ...

    def silent_s(self, now_s: float) -> float:
        """Return how long the switch has answered no question; 0: it has, or none was asked."""
        ...

    @property
    def silent_tree(self) -> int:
        """The tree that was asked about in that time; 0: none was."""
        ...

    def note_missing(self, workers: Sequence[int]) -> None:
        """Learn from the controller which of the workers that `missing` names are missing."""
        ...

    def verdict(self, task: Task) -> HostlibError:
        """Return the error that says why a task has no result in time."""
        ...

    def close(self) -> None:
        """Give the view up; nothing is sent any more."""
        ...
