# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What the engine needs of a reducer, which sums over switch slots or among hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..allgather import AllgatherTask, BlockExchange
from ..control.view import JobView
from ..errors import HostlibError
from ..slots.datagram_ring import Words
from ..slots.slot_stream import StreamCounters
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
    def queueing_s(self) -> float:
        """Part of the round-trip time that queues and waiting account for."""
        ...

    @property
    def window(self) -> int:
        """Most chunks that may be without result now, 0 where nothing limits them."""
        ...


@dataclass(frozen=True, kw_only=True)
class Arrivals:
    """What a batch of datagrams brought."""

    results: int
    """Number of awaited results."""
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

    def pump(self, now_s: float) -> bool:
        """Send what may be sent; return False when the transport took less."""
        ...

    @property
    def outstanding(self) -> int:
        """Value chunks that were sent and have no result yet."""
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
        """When awaited data last moved without a call of `take`."""
        ...

    def take(self, words: Words, now_s: float) -> Arrivals:
        """Take datagrams; count those that are not for this view."""
        ...

    def keep_time(self, now_s: float) -> None:
        """Send again what timers ask for."""
        ...

    @property
    def next_s(self) -> float:
        """When `keep_time` is to be called next."""
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

    def note_missing(self, workers: Sequence[int]) -> None:
        """Learn from the controller which of the workers that `missing` names are missing."""
        ...

    def verdict(self, task: Task) -> HostlibError:
        """Return the error that says why a task has no result in time."""
        ...

    def close(self) -> None:
        """Give the view up; nothing is sent any more."""
        ...
