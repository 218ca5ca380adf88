# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The seam between the engine and the way that a view's chunks take: switches or hosts."""

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
        """Count all chunks of an enqueued tensor as done: its result came another way."""
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
        """Part of it that queues and waiting account for."""
        ...

    @property
    def window(self) -> int:
        """Most chunks that may be without result now, 0 where nothing limits them."""
        ...


@dataclass(frozen=True, kw_only=True)
class Arrivals:
    """What a batch of datagrams brought."""

    results: int
    """Results that were waited for."""
    behind: tuple[int, ...] = ()
    """Tensor ids whose rounds the others have left behind."""


class Reducer(Protocol):
    """One view at work; used by the I/O thread alone."""

    view: JobView
    first_tensor: int
    """Number of the first tensor that runs here."""
    failure: HostlibError | None
    """Why nothing will come of this view any more, if that is known."""
    multicast: BlockExchange | None
    """Where the view's allgathers run, if a switch copies there."""

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
        """A worker that waits for so long while nothing moves tells the controller."""
        ...

    @property
    def moved_s(self) -> float:
        """When something of what is waited for last moved that `take` does not tell of."""
        ...

    def take(self, words: Words, now_s: float) -> Arrivals:
        """Take datagrams; count those that are not for this view."""
        ...

    def keep_time(self, now_s: float) -> None:
        """Do what timers ask for."""
        ...

    @property
    def next_s(self) -> float:
        """When `keep_time` is to be called next."""
        ...

    def ask(self, now_s: float) -> None:
        """Find out what the oldest chunk waits for, soon."""
        ...

    def end_probe(self) -> None:
        """Ask no more."""
        ...

    @property
    def missing(self) -> list[int]:
        """Workers that the oldest chunk waits for, as far as asking has shown."""
        ...

    def silent_s(self, now_s: float) -> float:
        """Return how long the switch has answered no question; 0: it has, or none was asked."""
        ...

    def note_missing(self, workers: Sequence[int]) -> None:
        """Learn from the controller who does lack, of those that `missing` names."""
        ...

    def verdict(self, task: Task) -> HostlibError:
        """Return the error that says what a task waited for in vain."""
        ...

    def close(self) -> None:
        """Give the view up; nothing is sent any more."""
        ...
