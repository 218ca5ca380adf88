# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a server measures of the requests of one connection."""

from __future__ import annotations

from typing import final

from ..peers.event_loop import EventLoop
from ..peers.frames import NO_TIMES, FrameKind, ServerTimes, server_times

_Open = tuple[int, int, int]
"""Of a request that waits: when it arrived, and its time in the queue and the handler; ns."""


@final
class ServedRequests:
    """Times of those pushes and pulls whose worker wants them; runs in the loop's thread.

    From its arrival to its answer, a request waits for its turn (queue), is worked on (proc), or
    waits once more (wait): for the log's disk, for slower workers, or for the receipt that it
    shares.
    """

    def __init__(self, loop: EventLoop) -> None:
        self._loop = loop
        self._kind: FrameKind | None = None  # of the request in the handler, without an answer yet
        self._number = 0
        self._arrived_ns = 0
        self._dequeued_ns = 0
        self._pushes: dict[int, _Open] = {}  # by number; after their handler's first part
        self._pulls: dict[int, _Open] = {}
        self._receipts: list[tuple[int, int, int, int]] = []  # number, arrived, queue, proc; ns

    @property
    def is_busy(self) -> bool:
        """Whether any request has been begun, and has no answer."""
        return self._kind is not None or bool(self._pushes or self._pulls)

    def begin(self, kind: FrameKind, number: int, arrived_ns: int) -> None:
        """Learn that the handler of a request begins; what is no push or pull is left out later."""
        self._dequeued_ns = self._loop.clock_ns()
        self._kind, self._number, self._arrived_ns = kind, number, arrived_ns

    def pause(self) -> None:
        """Learn that the handler has returned; the request may wait for more."""
        kind, self._kind = self._kind, None
        if kind is FrameKind.PULL or kind is FrameKind.PUSH:
            dequeued_ns, arrived_ns = self._dequeued_ns, self._arrived_ns
            worked_ns = self._loop.clock_ns() - dequeued_ns
            waiting = self._pulls if kind is FrameKind.PULL else self._pushes
            waiting[self._number] = arrived_ns, dequeued_ns - arrived_ns, worked_ns

    def forget(self, kind: FrameKind, number: int) -> None:
        """Learn that a request is denied."""
        if self._kind is kind and self._number == number:
            self._kind = None
        (self._pulls if kind is FrameKind.PULL else self._pushes).pop(number, None)

    def pulled(self, number: int, began_ns: int) -> ServerTimes:
        """Return the times of a pull that is answered now; its rows were begun at `began_ns`."""
        if not self.is_busy:
            return NO_TIMES
        now_ns = self._loop.clock_ns()
        if self._kind is FrameKind.PULL and self._number == number:  # in its handler
            self._kind = None
            dequeued_ns = self._dequeued_ns
            return server_times(dequeued_ns - self._arrived_ns, now_ns - dequeued_ns, 0)
        served = self._pulls.pop(number, None)
        if served is None:
            return NO_TIMES
        arrived_ns, queue_ns, proc_ns = served
        proc_ns += now_ns - began_ns
        return server_times(queue_ns, proc_ns, now_ns - arrived_ns - queue_ns - proc_ns)

    def applied(self, number: int, began_ns: int) -> None:
        """Learn that a push is applied, which was begun at `began_ns`; its receipt comes later."""
        if not self.is_busy:
            return
        now_ns = self._loop.clock_ns()
        if self._kind is FrameKind.PUSH and self._number == number:  # in its handler
            self._kind = None
            dequeued_ns, arrived_ns = self._dequeued_ns, self._arrived_ns
            queue_ns, proc_ns = dequeued_ns - arrived_ns, now_ns - dequeued_ns
        else:
            served = self._pushes.pop(number, None)
            if served is None:
                return
            arrived_ns, queue_ns, proc_ns = served
            proc_ns += now_ns - began_ns
        self._receipts.append((number, arrived_ns, queue_ns, proc_ns))

    def receipt(self) -> list[tuple[int, ServerTimes]]:
        """Return the times of all pushes whose receipt leaves now."""
        if not self._receipts:
            return []
        receipts, self._receipts = self._receipts, []
        now_ns = self._loop.clock_ns()
        return [
            (number, server_times(queue_ns, proc_ns, now_ns - arrived_ns - queue_ns - proc_ns))
            for number, arrived_ns, queue_ns, proc_ns in receipts
        ]
