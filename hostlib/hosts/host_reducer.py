# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The reducer of a view without a switch: its members reduce the chunks among themselves.

Quantisation and order are those of a view on switches, so the results are the same bytes. It waits
for all members, whatever the job's policy for stragglers is.
"""

from __future__ import annotations

import threading
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
from ..peers.frames import Purpose
from ..slots.counters import StreamCounters
from ..slots.wire import Operation
from ..summation.chunks import ChunkSource
from .allreduce import HostAllreduce
from .reduction import Reduction
from .source_parts import SourceParts

STALL_S = 5.0
"""Longer than a host allreduce takes to name a lost member."""
FLOW_S = 1.5
"""Values that moved so lately still flow: a host allreduce looks twice a second."""


class HostStream:
    """The tensors of one purpose, each reduced as a whole."""

    def __init__(self, reducer: HostReducer, purpose: Purpose) -> None:
        self.counters = StreamCounters()
        self._reducer = reducer
        self._purpose = purpose
        self._unfinished: set[int] = set()  # identities of sources

    @property
    def round_trip_s(self) -> float:
        """0: no single chunk is timed."""
        return 0.0

    @property
    def window(self) -> int:
        """0: TCP has its own windows."""
        return 0

    @property
    def incast_trials(self) -> int:
        """0: no chunks go to roots."""
        return 0

    @property
    def is_empty(self) -> bool:
        """Whether no tensor is being reduced."""
        return not self._unfinished

    def enqueue(self, source: ChunkSource) -> None:
        """Hand the source to the host allreduce, which works in the memory of the results."""
        self._unfinished.add(id(source))
        self.counters.sent += source.num_chunks
        contributors = np.full(source.num_chunks, self._reducer.view.num_workers, np.uint16)
        source.keep(source.results.view(np.int32), contributors)

        def finish(has_saturated: bool) -> None:
            self._finish(source, has_saturated=has_saturated)

        source.times.note_first_packet()
        # With padding, tensors of different lengths may have the same number of values.
        # The upper bits of the id, too, tell tensors apart that must not be added up.
        folded = (source.tensor_id ^ source.tensor_id >> 17) & 0x7FFF
        tag = 1 << 31 | folded << 16 | source.num_elements & 0xFFFF
        parts = SourceParts(source)
        if self._purpose is Purpose.REDUCE_EXPONENTS:
            # Few values that take long: they would hold up the peer thread.
            parts.prepare(0, len(parts.values))
        operation = Operation.AGGREGATE_MAX if source.is_maximum else Operation.AGGREGATE_ADD
        self._reducer.reduce(
            operation, parts, finish, tag=tag, is_plain=source.is_plain, purpose=self._purpose
        )

    def _finish(self, source: ChunkSource, *, has_saturated: bool) -> None:
        if id(source) in self._unfinished:
            self._unfinished.remove(id(source))
            self.counters.received += source.num_chunks
            source.times.note_last_result()
            source.has_saturated = has_saturated

    def abandon(self, source: ChunkSource) -> None:
        """Ignore the result that is due: it was fetched."""
        self._unfinished.discard(id(source))

    def is_finished(self, source: ChunkSource) -> bool:
        """Return whether the result of an enqueued tensor is there."""
        return id(source) not in self._unfinished


@final
class HostReducer:
    """Reduces a view's chunks by the host allreduce of its members."""

    def __init__(
        self,
        view: JobView,
        server: PeerServer,
        *,
        first_tensor: int = 0,
    ) -> None:
        self.view = view
        self.first_tensor = first_tensor
        self.exponents = HostStream(self, Purpose.REDUCE_EXPONENTS)
        self.values = HostStream(self, Purpose.REDUCE_VALUES)
        self.failure: HostlibError | None = None
        self.multicast: BlockExchange | None = None
        self._news = threading.Event()
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
        self._news.set()

    def reduce(
        self,
        operation: Operation,
        parts: SourceParts,
        then: Callable[[bool], None],
        *,
        tag: int,
        is_plain: bool,
        purpose: Purpose,
    ) -> None:
        """Reduce a tensor's values in place; `then(has_saturated)` is called in the I/O thread."""

        def on_done(reduction: Reduction) -> None:
            self._done.append(lambda: then(reduction.has_saturated))
            self._news.set()

        try:
            self._host_allreduce.reduce(
                operation,
                parts.values,
                on_done,
                tag=tag,
                is_plain=is_plain,
                parts=parts if purpose is Purpose.REDUCE_VALUES else None,
                purpose=purpose,
            )
        except PeerError as error:
            self.failure = error

    def poll(self, until_s: float) -> Arrivals:
        """Wait for finished reductions of the peer thread, and take them."""
        if not self._done:
            self._news.wait(max(0.0, until_s - time.monotonic()))
        self._news.clear()
        while self._done:
            self._done.popleft()()
        self.failure = self.failure or self._server.loop.failure
        return Arrivals()

    def interrupt(self) -> None:
        """Make `poll` return."""
        self._news.set()

    @property
    def is_waiting(self) -> bool:
        """Whether results are due."""
        return not (self.exponents.is_empty and self.values.is_empty)

    @property
    def stall_s(self) -> float:
        """Longer than it takes to name a lost member, as another view has the same hosts."""
        return STALL_S

    @property
    def moved_s(self) -> float:
        """When bytes of values last came or left, whether or not they completed a segment."""
        return self._host_allreduce.standing.moved_s

    def ask(self, now_s: float) -> None:
        """Do nothing: the host allreduce itself names dead members."""

    def end_probe(self) -> None:
        """Do nothing: there are no probes."""

    @property
    def missing(self) -> list[int]:
        """The member that the host allreduce has lost, if any."""
        if isinstance(self.failure, MemberError):
            return [self.failure.worker_id]
        return []

    def silent_s(self, now_s: float) -> float:
        """0: no switch is probed."""
        return 0.0

    @property
    def silent_tree(self) -> int:
        """0: there is none."""
        return 0

    def note_missing(self, workers: Sequence[int]) -> None:
        """Do nothing: the host allreduce itself names dead members."""

    def verdict(self, task: Task) -> AllreduceTimeoutError:
        """Return the error of a task whose time is over."""
        what = f"tensor {task.tensor_id}: no result of the host allreduce after {task.timeout_s} s"
        if self.missing:
            return WorkerMissingError(f"{what}; {self.failure}", self.missing)
        if self.failure is not None:
            return AllreduceTimeoutError(f"{what}; {self.failure}")
        standing = self._host_allreduce.standing
        still_s = time.monotonic() - standing.moved_s
        if still_s < FLOW_S:
            return AllreduceTimeoutError(
                f"{what}, though its values flow: the last moved {still_s:.1f} s ago; give a tensor"
                " of this size more time on these links"
            )
        awaited = f", which waits for values of workers {list(standing.awaited)}"
        return AllreduceTimeoutError(
            f"{what}; all members live, but no values have moved at this worker"
            f"{awaited if standing.awaited else ''} for {still_s:.0f} s. A guess: some worker has"
            " not submitted this tensor, or waits for one that has not; see whether each"
            " submits the same sequence of tensors"
        )

    def close(self) -> None:
        """Leave the view; after this no callback comes."""
        self._host_allreduce.close()
