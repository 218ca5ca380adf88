# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One layer's synchronisation: Move, Send, Receive, Move.

The four steps and their order are reconstructed from what is public about Poseidon (Zhang et al.,
ATC'17). The first Move copies the gradient into host memory. Send submits it to the layer's
channels and returns. Receive waits for the answers. The second Move writes the mean gradient, which
it computes from factors where the layer sends factors.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, final

from ...tracing.timeline import Timeline, Transfer
from ..staging.streams import CopyStream
from .completion_vector import CompletionVector
from .submission_order import SubmissionOrder
from .sync_error import sync_error
from .sync_parts import SyncPart

SyncStep = Literal["move", "send", "receive"]
TRACE_EVENTS = 1 << 14
"""Number of events that a trace keeps; it drops the oldest."""


class SyncEvent(NamedTuple):
    """One step of one layer; times are time.monotonic() in seconds."""

    layer: str
    iteration: int
    step: SyncStep
    start_s: float
    end_s: float


@final
class SyncerTrace:
    """The steps of all syncers, in the order in which they ended."""

    def __init__(self) -> None:
        self._events: deque[SyncEvent] = deque(maxlen=TRACE_EVENTS)
        self._lock = threading.Lock()

    @contextmanager
    def step(self, layer: str, iteration: int, step: SyncStep) -> Generator[None]:
        """Record the context's run time as a step, unless it raises."""
        start_s = time.monotonic()
        yield
        with self._lock:
            self._events.append(SyncEvent(layer, iteration, step, start_s, time.monotonic()))

    def events(self, layer: str | None = None, iteration: int | None = None) -> list[SyncEvent]:
        """Return the events, of one layer or iteration if given."""
        with self._lock:
            return [
                event
                for event in self._events
                if layer in (None, event.layer) and iteration in (None, event.iteration)
            ]


@dataclass(frozen=True)
class Turn:
    """Where a syncer stands among all syncers of an iteration."""

    index: int = 0
    """Position in the start order, and of its bit in the completion vector."""
    first_ticket: int = 0
    """The first of its tickets in the submission order."""


@final
class Syncer:
    """Exchanges one layer's gradient with the other workers for the mean gradient."""

    def __init__(
        self,
        turn: Turn,
        name: str,
        parts: list[SyncPart],
        *,
        place: str,
        trace: SyncerTrace,
        timeline: Timeline | None = None,
    ) -> None:
        self.index = turn.index
        """Index of its bit in the completion vector, and its position in the start order."""
        self.name = name
        self.parts = parts
        self.num_contributors = 0
        """Least number of workers in any part of the last mean gradient."""
        self._turn = turn
        self._tickets = {
            part.key: turn.first_ticket + number
            for number, part in enumerate(part for part in parts if part.is_ordered)
        }
        self._place = place
        self._trace = trace
        self._timeline = timeline

    @property
    def _schemes(self) -> str:
        return "+".join(dict.fromkeys(part.scheme.value for part in self.parts))

    @property
    def num_tickets(self) -> int:
        """Number of tickets that it uses in each iteration."""
        return len(self._tickets)

    @property
    def next_turn(self) -> Turn:
        """The turn of the next syncer."""
        return Turn(self.index + 1, self._turn.first_ticket + self.num_tickets)

    def move_out(self, stream: CopyStream) -> None:
        """Move: copy the layer's gradient into host memory."""
        for part in self.parts:
            part.move_out(stream)

    def send(self, iteration: int, order: SubmissionOrder) -> None:
        """Send: submit the gradient to the channels; never waits for other workers."""
        for part in self.parts:
            part.send(iteration, order, self._tickets.get(part.key, -1))

    def receive(self, deadline_s: float) -> None:
        """Receive: wait for all answers, until `deadline_s` of time.monotonic()."""
        for part in self.parts:
            part.receive(max(0.0, deadline_s - time.monotonic()))

    def move_in(self, stream: CopyStream) -> None:
        """Move: write the mean gradient."""
        self.num_contributors = min(part.move_in(stream) for part in self.parts)

    def run(
        self,
        stream: CopyStream,
        *,
        iteration: int,
        order: SubmissionOrder,
        completion: CompletionVector,
        deadline_s: float,
        mark: Any = None,
    ) -> None:
        """Do all steps, then set the layer's bit; an error goes to the completion vector.

        `mark` is what the device must have done first.
        """
        ready_s = time.monotonic()
        try:
            stream.follow(mark)
            with self._trace.step(self.name, iteration, "move"):
                self.move_out(stream)
            sent_s = time.monotonic()
            with self._trace.step(self.name, iteration, "send"):
                self.send(iteration, order)
            with self._trace.step(self.name, iteration, "receive"):
                self.receive(deadline_s)
            received_s = time.monotonic()
            with self._trace.step(self.name, iteration, "move"):
                self.move_in(stream)
            self._record(ready_s, sent_s, received_s)
        except Exception as error:
            where = f"{self._place}, layer {self.name} ({self._schemes}), iteration {iteration}"
            failure = sync_error(where, error)
            completion.fail(failure)
            order.fail(failure)
        else:
            completion.set(self.index)

    def _record(self, ready_s: float, sent_s: float, received_s: float) -> None:
        """Add the layer's transfer to the timeline, if this process records one."""
        if self._timeline is None:
            return
        self._timeline.add_transfer(
            Transfer(
                name=f"{self.name} by {self._schemes}",
                num_bytes=sum(part.num_bytes for part in self.parts),
                ready_s=ready_s,
                first_packet_s=sent_s,
                last_result_s=received_s,
                done_s=time.monotonic(),
            )
        )
