# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A view without a switch: the same chunks, reduced by its members among themselves.

Quantisation and order are those of the switch path, so the results are the same bytes. All members
are waited for, whatever the job's policy for stragglers says.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import final

import numpy as np

from ..allgather import BlockExchange
from ..control.view import JobView
from ..engine.reducer import Arrivals, Task
from ..errors import (
    AllreduceTimeoutError,
    HostlibError,
    MemberError,
    PeerError,
    WorkerMissingError,
)
from ..peers import PeerServer
from ..slots.datagram_ring import Words
from ..slots.slot_stream import StreamCounters
from ..slots.wire import Operation
from ..summation.chunks import ChunkSource
from .allreduce import HostAllreduce
from .reduction import Reduction
from .source_parts import SourceParts

STALL_S = 5.0
"""Longer than the host path takes to name a member that it has lost."""
FLOW_S = 1.5
"""Lanes that moved so lately still flow: a path looks each half second."""


class HostStream:
    """One operation's tensors, each reduced at once."""

    def __init__(self, lanes: HostReducer, operation: Operation) -> None:
        self.counters = StreamCounters()
        self._lanes = lanes
        self._operation = operation
        self._unfinished: set[int] = set()  # identities of sources

    @property
    def round_trip_s(self) -> float:
        """No single chunk is timed."""
        return 0.0

    @property
    def queueing_s(self) -> float:
        """Not measured here."""
        return 0.0

    @property
    def window(self) -> int:
        """TCP has windows of its own."""
        return 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing is under way."""
        return not self._unfinished

    def enqueue(self, source: ChunkSource) -> None:
        """Hand the source to the host path, which reduces its lanes where the results are kept."""
        self._unfinished.add(id(source))
        self.counters.sent += source.num_chunks
        contributors = np.full(source.num_chunks, self._lanes.view.num_workers, np.uint16)
        source.keep(source.results.view(np.int32), contributors)

        def finish(has_saturated: bool) -> None:
            self._finish(source, has_saturated=has_saturated)

        source.times.note_first_packet()
        # Padding hides small differences in length from the number of lanes.
        # The upper bits of the id, too, tell tensors apart that are not to be added up.
        folded = (source.tensor_id ^ source.tensor_id >> 17) & 0x7FFF
        tag = 1 << 31 | folded << 16 | source.num_elements & 0xFFFF
        parts = SourceParts(source)
        if self._operation is Operation.AGGREGATE_MAX:
            # Few lanes that take long: they would hold up the host path's thread.
            parts.prepare(0, len(parts.lanes))
        self._lanes.reduce(self._operation, parts, finish, tag=tag, is_plain=source.is_plain)

    def _finish(self, source: ChunkSource, *, has_saturated: bool) -> None:
        if id(source) in self._unfinished:
            self._unfinished.remove(id(source))
            self.counters.received += source.num_chunks
            source.times.note_last_result()
            source.has_saturated = has_saturated

    def abandon(self, source: ChunkSource) -> None:
        """Ignore the result that is to come: it came another way."""
        self._unfinished.discard(id(source))

    def is_finished(self, source: ChunkSource) -> bool:
        """Return whether the result of an enqueued tensor is there."""
        return id(source) not in self._unfinished


@final
class HostReducer:
    """Runs a view's chunks over the host path of its members."""

    def __init__(
        self,
        view: JobView,
        server: PeerServer,
        wake: Callable[[], None],
        *,
        first_tensor: int = 0,
    ) -> None:
        self.view = view
        self.first_tensor = first_tensor
        self.exponents = HostStream(self, Operation.AGGREGATE_MAX)
        self.values = HostStream(self, Operation.AGGREGATE_ADD)
        self.failure: HostlibError | None = None
        self.multicast: BlockExchange | None = None
        self._wake = wake
        self._server = server
        self._done: deque[Callable[[], None]] = deque()
        self._host_allreduce = HostAllreduce(
            server,
            generation=view.generation,
            members=view.members,
            on_failure=self._fail,
        )

    def _fail(self, error: PeerError) -> None:
        self.failure = error
        self._wake()

    def reduce(
        self,
        operation: Operation,
        parts: SourceParts,
        then: Callable[[bool], None],
        *,
        tag: int,
        is_plain: bool,
    ) -> None:
        """Reduce a tensor's lanes in place; `then(has_saturated)` is called in the I/O thread."""

        def on_done(reduction: Reduction) -> None:
            self._done.append(lambda: then(reduction.has_saturated))
            self._wake()

        try:
            self._host_allreduce.reduce(
                operation,
                parts.lanes,
                on_done,
                tag=tag,
                is_plain=is_plain,
                parts=parts if operation is Operation.AGGREGATE_ADD else None,
            )
        except PeerError as error:
            self.failure = error

    def pump(self, now_s: float) -> bool:
        """Take what the other thread has finished; False then, as its tensors can go on at once."""
        is_idle = not self._done
        while self._done:
            self._done.popleft()()
        return is_idle

    @property
    def outstanding(self) -> int:
        """No chunk waits in a queue of the network that a pause could empty."""
        return 0

    @property
    def is_waiting(self) -> bool:
        """Whether results are due."""
        return not (self.exponents.is_empty and self.values.is_empty)

    @property
    def stall_s(self) -> float:
        """Later than the host path names a lost member: another view has the same hosts."""
        return STALL_S

    @property
    def moved_s(self) -> float:
        """When bytes of lanes last came or went, of finished segments or not."""
        return self._host_allreduce.standing.moved_s

    def take(self, words: Words, now_s: float) -> Arrivals:
        """Refuse datagrams: they are of a view on switches."""
        return Arrivals(results=0)

    def keep_time(self, now_s: float) -> None:
        """Nothing is sent again: the connections are TCP."""

    @property
    def next_s(self) -> float:
        """Never."""
        return np.inf

    def ask(self, now_s: float) -> None:
        """Members that die are named by the host path itself."""

    def end_probe(self) -> None:
        """Nothing was asked."""

    @property
    def missing(self) -> list[int]:
        """The member that the host path has lost, if it has."""
        if isinstance(self.failure, MemberError):
            return [self.failure.worker_id]
        return []

    def silent_s(self, now_s: float) -> float:
        """No switch is asked."""
        return 0.0

    def note_missing(self, workers: Sequence[int]) -> None:
        """Members that die are named by the host path itself."""

    def verdict(self, task: Task) -> AllreduceTimeoutError:
        """Return the error that says what a task waited for in vain."""
        what = f"tensor {task.tensor_id}: no result after {task.timeout_s} s on the host path"
        if self.missing:
            return WorkerMissingError(f"{what}; {self.failure}", self.missing)
        if self.failure is not None:
            return AllreduceTimeoutError(f"{what}; {self.failure}")
        standing = self._host_allreduce.standing
        still_s = time.monotonic() - standing.moved_s
        if still_s < FLOW_S:
            return AllreduceTimeoutError(
                f"{what}, though its lanes flow: the last moved {still_s:.1f} s ago; give a tensor"
                " of this size more time on these links"
            )
        awaited = f", which waits for lanes of workers {list(standing.awaited)}"
        return AllreduceTimeoutError(
            f"{what}; all members live, but no lanes have moved at this worker"
            f"{awaited if standing.awaited else ''} for {still_s:.0f} s. A guess: some worker has"
            " not submitted this tensor, or waits itself for one that has not; see whether each"
            " submits the same sequence of tensors"
        )

    def close(self) -> None:
        """Leave the view; no callback comes any more."""
        self._host_allreduce.close()
