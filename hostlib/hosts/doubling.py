# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Recursive doubling: in step s partners whose positions differ in bit s - 1 exchange their sums.

Of n members the first 2^k <= n take part. A member beyond them sends its values to the one 2^k
places before it in step 0, and gets the result from it in step k + 1. Addition is exact, so all
members get the same result, though they add in different orders. Segments do not wait for each
other.
"""

from __future__ import annotations

from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ..errors import PeerProtocolError
from ..peers.frames import ValueFlag, ValuesFrame
from .reduction import Reduction, SendValues
from .values import Scratch, Sums, Values, bytes_of, combine, cut, is_narrow, saturate


class Move(NamedTuple):
    """One step of a member."""

    step: int
    partner: int
    is_sending: bool
    is_receiving: bool


def plan_moves(position: int, num_members: int) -> list[Move]:
    """Return the moves of one member, in order."""
    bits = num_members.bit_length() - 1
    width = 1 << bits
    last = bits + 1
    if position >= width:
        partner = position - width
        return [Move(0, partner, True, False), Move(last, partner, False, True)]
    moves = [Move(bit + 1, position ^ 1 << bit, True, True) for bit in range(bits)]
    if position + width < num_members:
        moves.insert(0, Move(0, position + width, False, True))
        moves.append(Move(last, position + width, True, False))
    return moves


class _Segment:
    """State of one segment at this member."""

    def __init__(self, values: Values) -> None:
        self.values = values  # its part of the reduction's values
        self.wide: NDArray[np.int64] | None = None  # the sums, if they are not int32
        self.place = 0  # in the plan
        self.has_sent = False  # the message of this place
        self.coming: dict[int, Sums] = {}  # by step: not complete yet
        self.arrived: dict[int, Sums] = {}
        self.flags = 0


@final
class DoublingSchedule:
    """Recursive doubling for one reduction; implements ReductionSchedule."""

    def __init__(
        self,
        reduction: Reduction,
        position: int,
        num_members: int,
        send: SendValues,
        _scratch: Scratch,
    ) -> None:
        self._reduction = reduction
        self._send = send
        self._moves = plan_moves(position, num_members)
        self._last_step = num_members.bit_length()
        self._segments = {
            first: _Segment(reduction.values[first : first + count])
            for first, count in cut(0, len(reduction.values))
        }
        self._num_open = len(self._segments)

    def start(self) -> bool:
        """Send all values that need no others."""
        for first, segment in self._segments.items():
            self._go_on(first, segment)
        return False

    @property
    def is_complete(self) -> bool:
        """Whether every segment has its final sums."""
        return not self._num_open

    @property
    def awaited(self) -> set[int]:
        """Positions of the members whose messages any segment still needs."""
        return {
            move.partner
            for segment in self._segments.values()
            for move in self._moves[segment.place :]
            if move.is_receiving and move.step not in segment.arrived
        }

    def target(self, sender: int, frame: ValuesFrame) -> memoryview:
        """Return new memory, as partners may be a step ahead."""
        segment = self._segments.get(frame.first)
        if segment is None or not self._is_due(segment, sender, frame):
            raise PeerProtocolError(f"values out of place in recursive doubling: {frame}")
        is_wide = frame.flags & ValueFlag.WIDE
        if is_wide and frame.step == self._last_step:
            raise PeerProtocolError("final sums are not int32")
        values: Sums = np.empty(frame.num_values, np.int32)
        if is_wide:
            values = np.empty(frame.num_values, np.int64)
        segment.coming[frame.step] = values
        return bytes_of(values)

    def _is_due(self, segment: _Segment, sender: int, frame: ValuesFrame) -> bool:
        is_planned = any(
            move.is_receiving and (move.step, move.partner) == (frame.step, sender)
            for move in self._moves[segment.place :]
        )
        is_new = frame.step not in segment.arrived and frame.step not in segment.coming
        return is_planned and is_new and frame.num_values == len(segment.values)

    def on_values(self, sender: int, frame: ValuesFrame) -> None:
        """Take the values, and continue with their segment."""
        segment = self._segments[frame.first]
        segment.arrived[frame.step] = segment.coming.pop(frame.step)
        segment.flags |= frame.flags & ValueFlag.OVERFLOW
        self._go_on(frame.first, segment)

    def _go_on(self, first: int, segment: _Segment) -> None:
        while segment.place < len(self._moves):
            move = self._moves[segment.place]
            if move.is_sending and not segment.has_sent:
                self._send_sums(move, first, segment)
                segment.has_sent = True
            if move.is_receiving:
                received = segment.arrived.pop(move.step, None)
                if received is None:
                    return
                self._take(move, segment, received)
            segment.place += 1
            segment.has_sent = False
        self._finish(segment)
        self._num_open -= 1

    def _send_sums(self, move: Move, first: int, segment: _Segment) -> None:
        if move.step == self._last_step:
            self._finish(segment)
            self._send(move.partner, move.step, first, segment.values, segment.flags)
        elif segment.wide is not None:
            self._send(move.partner, move.step, first, segment.wide, ValueFlag.WIDE)
        else:
            # A copy: the partner's sums may be added before these have left.
            self._send(move.partner, move.step, first, segment.values.copy(), 0)

    def _take(self, move: Move, segment: _Segment, received: Sums) -> None:
        if move.step == self._last_step:
            segment.values[...] = received
        elif segment.wide is None:
            segment.wide = combine(self._reduction.operation, segment.values, received)
        else:
            sums = segment.wide + received.astype(np.int64)
            segment.wide = sums
            if is_narrow(sums):
                segment.values[...] = sums
                segment.wide = None

    def _finish(self, segment: _Segment) -> None:
        if segment.wide is not None:
            saturate(segment.wide, segment.values)
            segment.wide = None
            segment.flags |= ValueFlag.OVERFLOW
        if segment.flags:
            self._reduction.has_saturated = True
