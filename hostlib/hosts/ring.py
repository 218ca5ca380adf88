# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Ring allreduce: reduce-scatter, then all-gather, segment by segment.

With n members, the values form n blocks. In step s = 0 .. n - 2 member p gets block p - s - 1 (mod
n) of its predecessor's partial sums and adds its own; after these steps, block p + 1 is final at p.
In step s = n - 1 .. 2 n - 3 it gets the final block p - s + n - 1. A segment that arrives in one
step leaves in the next, so segments do not wait for each other.
"""

from __future__ import annotations

from collections import deque
from typing import final

import numpy as np

from ..errors import PeerProtocolError
from ..peers.frames import ValueFlag, ValuesFrame
from .reduction import Reduction, SendValues
from .values import Scratch, Sums, bytes_of, combine, cut, saturate


@final
class RingSchedule:
    """A ring for one reduction; implements ReductionSchedule."""

    def __init__(
        self,
        reduction: Reduction,
        position: int,
        num_members: int,
        send: SendValues,
        scratch: Scratch,
    ) -> None:
        self._reduction = reduction
        self._position = position
        self._num_members = num_members
        self._send = send
        self._predecessor = (position - 1) % num_members
        self._successor = (position + 1) % num_members
        self._scratch = scratch.of(self._predecessor)
        self._own = deque(self._segments(position))  # not sent yet
        self._due = {
            (step, first): count
            for step in range(2 * num_members - 2)
            for first, count in self._segments(position - step - 1)
        }

    def _segments(self, block: int) -> list[tuple[int, int]]:
        """Return the segments of a block (mod n)."""
        grain, num_members = self._reduction.grain, self._num_members
        num_grains = len(self._reduction.values) // grain
        block %= num_members
        first, end = (at * num_grains // num_members * grain for at in (block, block + 1))
        return cut(first, end, grain)

    def start(self) -> bool:
        """Send a segment of the own block; return whether there are more."""
        if self._own:
            first, count = self._own.popleft()
            self._reduction.prepare(first, count)
            own = self._reduction.values[first : first + count]
            self._send(self._successor, 0, first, own, 0)
        return bool(self._own)

    @property
    def is_complete(self) -> bool:
        """Whether every segment is final."""
        return not self._due

    @property
    def awaited(self) -> set[int]:
        """The predecessor, while segments are still due."""
        return {self._predecessor} if self._due else set()

    def target(self, sender: int, frame: ValuesFrame) -> memoryview:
        """Return scratch for partial sums; final sums go to their place at once."""
        count = self._due.get((frame.step, frame.first))
        if sender != self._predecessor or count is None or count != frame.num_values:
            raise PeerProtocolError(f"values out of place in a ring: {frame}")
        first = frame.first
        if frame.step >= self._num_members - 1 and not frame.flags & ValueFlag.WIDE:
            # All members have this member's values of the segment, so it need not keep them.
            return bytes_of(self._reduction.values[first : first + count])
        return self._scratch.data

    def on_values(self, sender: int, frame: ValuesFrame) -> None:
        """Add partial sums, or take final ones; pass them on."""
        first, count, step = frame.first, frame.num_values, frame.step
        del self._due[step, first]
        own = self._reduction.values[first : first + count]
        if step >= self._num_members - 1:
            if frame.flags & ValueFlag.WIDE:
                raise PeerProtocolError("final sums are not int32")
            self._note_final(step, first, own, frame.flags)
            return
        received: Sums = self._scratch.view(np.int32)[:count]
        if frame.flags & ValueFlag.WIDE:
            received = self._scratch.view(np.int64)[:count]
        self._reduction.prepare(first, count)
        wide = combine(self._reduction.operation, own, received)
        if step < self._num_members - 2:
            sums, flags = (own, 0) if wide is None else (wide, ValueFlag.WIDE)
            self._send(self._successor, step + 1, first, sums, flags)
        elif wide is None:
            self._note_final(step, first, own, 0)
        else:
            saturate(wide, own)
            self._note_final(step, first, own, ValueFlag.OVERFLOW)

    def _note_final(self, step: int, first: int, own: Sums, flags: int) -> None:
        if flags & ValueFlag.OVERFLOW:
            self._reduction.has_saturated = True
        if step + 1 < 2 * self._num_members - 2:
            self._send(self._successor, step + 1, first, own, flags)
        self._reduction.settle(first, len(own))
