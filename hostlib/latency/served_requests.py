# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a server measures of the requests of one connection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from ..peers.event_loop import EventLoop
from ..peers.frames import Frame, FrameKind, ServerTimes


@dataclass(slots=True)
class _Served:
    arrived_ns: int
    dequeued_ns: int
    proc_ns: int | None = None
    """Of the handler's first part; None while that runs."""


@final
class ServedRequests:
    """Times of pushes and pulls until their answers; runs in the loop's thread.

    From its arrival to its answer, a request waits for its turn (queue), is worked on (proc), or
    waits once more (wait): for the log's disk, for slower workers, or for the receipt that it
    shares.
    """

    def __init__(self, loop: EventLoop) -> None:
        self._loop = loop
        self._open: dict[tuple[FrameKind, int], _Served] = {}
        self._current: _Served | None = None
        self._receipts: list[tuple[int, int, int, int]] = []  # number, arrived, queue, proc; ns

    def begin(self, frame: Frame, arrived_ns: int) -> None:
        """Learn that the handler of a push or pull begins."""
        self._current = _Served(arrived_ns, self._loop.clock_ns())
        self._open[frame.kind, frame.fields[0]] = self._current

    def pause(self) -> None:
        """Learn that the handler has returned; the request may wait for more."""
        current, self._current = self._current, None
        if current is not None:
            current.proc_ns = self._loop.clock_ns() - current.dequeued_ns

    def forget(self, kind: FrameKind, number: int) -> None:
        """Learn that a request is denied, or had been taken before."""
        self._open.pop((kind, number), None)

    def pulled(self, number: int, began_ns: int) -> ServerTimes:
        """Return the times of a pull that is answered now; its rows were begun at `began_ns`."""
        served = self._open.pop((FrameKind.PULL, number), None)
        if served is None:
            return ServerTimes()
        now_ns = self._loop.clock_ns()
        queue_ns, proc_ns = self._worked(served, began_ns, now_ns)
        return ServerTimes.of(queue_ns, proc_ns, now_ns - served.arrived_ns - queue_ns - proc_ns)

    def applied(self, number: int, began_ns: int) -> None:
        """Learn that a push is applied, which was begun at `began_ns`; its receipt comes later."""
        served = self._open.pop((FrameKind.PUSH, number), None)
        if served is not None:
            worked = self._worked(served, began_ns, self._loop.clock_ns())
            self._receipts.append((number, served.arrived_ns, *worked))

    def receipt(self) -> list[tuple[int, ServerTimes]]:
        """Return the times of all pushes whose receipt leaves now."""
        receipts, self._receipts = self._receipts, []
        now_ns = self._loop.clock_ns()
        return [
            (number, ServerTimes.of(queue_ns, proc_ns, now_ns - arrived_ns - queue_ns - proc_ns))
            for number, arrived_ns, queue_ns, proc_ns in receipts
        ]

    @staticmethod
    def _worked(served: _Served, began_ns: int, now_ns: int) -> tuple[int, int]:
        queue_ns = served.dequeued_ns - served.arrived_ns
        if served.proc_ns is None:  # in the handler
            return queue_ns, now_ns - served.dequeued_ns
        return queue_ns, served.proc_ns + now_ns - began_ns
