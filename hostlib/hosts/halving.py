# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Recursive halving, then doubling: few messages, and about as few bytes as a ring's.

Of n members the first w = 2^k <= n take part. The values form w blocks, and block b ends up at
member b. A member begins with all blocks. In each step it sends its partner the half in which the
partner's block is, and adds the other half that the partner sends. Partners differ in bit k - 1,
then k - 2, and so on. After k steps a member has one block. In k more steps, in reverse order, the
members send each other their final blocks. A member beyond w sends block b to member b at once, and
gets the final block from there.

    step 0 .. k - 1    partial sums of halves
    step k .. 2 k - 1  final sums, in reverse order
    step 2 k, 2 k + 1  blocks from, and final blocks to, a member beyond w
"""

from __future__ import annotations

from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ..errors import PeerProtocolError
from ..peers.frames import ValueFlag, ValuesFrame
from .reduction import Reduction, SendValues
from .values import SEGMENT_VALUES, Scratch, Sums, bytes_of, combine, is_narrow, saturate


class Exchange(NamedTuple):
    """One step of one member; blocks are ranges (first, end)."""

    step: int
    partner: int
    given: tuple[int, int]
    taken: tuple[int, int]


def plan_exchanges(position: int, bits: int) -> list[Exchange]:
    """Return the 2 * bits exchanges of a member that takes part, in order."""
    halvings: list[Exchange] = []
    for bit in range(bits - 1, -1, -1):
        own, other = ((at >> bit << bit) for at in (position, position ^ 1 << bit))
        size = 1 << bit
        halvings.append(
            Exchange(bits - 1 - bit, position ^ 1 << bit, (other, other + size), (own, own + size))
        )
    doublings = [
        Exchange(2 * bits - 1 - halving.step, halving.partner, halving.taken, halving.given)
        for halving in reversed(halvings)
    ]
    return halvings + doublings


@final
class HalvingSchedule:
    """Recursive halving and doubling for one reduction; implements ReductionSchedule."""

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
        self._bits = num_members.bit_length() - 1
        self._width = 1 << self._bits
        self._exchanges: list[Exchange] = []
        self._wide: NDArray[np.int64] | None = None  # all sums, once some are not int32
        self._flags = 0
        self._place = 0  # in the exchanges
        self._scratch = scratch
        self._due: dict[tuple[int, int, int], int] = {}  # (step, sender, first value): values
        self._open: dict[int, int] = {}  # step: messages that are due
        if position < self._width:
            self._exchanges = plan_exchanges(position, self._bits)
            for exchange in self._exchanges:
                self._expect(exchange.step, exchange.partner, exchange.taken)
            for outsider in self._outsiders:
                self._expect(2 * self._bits, outsider, (position, position + 1))
        else:
            for block in range(self._width):
                self._expect(2 * self._bits + 1, block, (block, block + 1))

    @property
    def _outsiders(self) -> range:
        return range(self._width, self._num_members)

    def _segments(self, blocks: tuple[int, int]) -> list[tuple[int, int]]:
        """Return the segments of a range of blocks: (first value, number of values)."""
        num_values = len(self._reduction.values)
        first, end = (block * num_values // self._width for block in blocks)
        return [
            (start, min(SEGMENT_VALUES, end - start)) for start in range(first, end, SEGMENT_VALUES)
        ]

    def _expect(self, step: int, sender: int, blocks: tuple[int, int]) -> None:
        for first, count in self._segments(blocks):
            self._due[step, sender, first] = count
            self._open[step] = self._open.get(step, 0) + 1

    def start(self) -> bool:
        """Send the first half; beyond the power of two, send all blocks."""
        if self._position < self._width:
            if self._exchanges:
                self._give(self._exchanges[0])
            self._go_on()
        else:
            for block in range(self._width):
                self._give_block(2 * self._bits, block, block)
        return False

    @property
    def is_complete(self) -> bool:
        """Whether all values are final here."""
        return not self._due

    @property
    def awaited(self) -> set[int]:
        """Positions of the members whose values are still due."""
        return {sender for _, sender, _ in self._due}

    def target(self, sender: int, frame: ValuesFrame) -> memoryview:
        """Return scratch for partial sums; final sums go to their place at once."""
        count = self._due.get((frame.step, sender, frame.first))
        if count is None or count != frame.num_values:
            raise PeerProtocolError(f"values out of place in recursive halving: {frame}")
        if self._is_final(frame.step):
            if frame.flags & ValueFlag.WIDE:
                raise PeerProtocolError("final sums are not int32")
            # The sender of a final sum has this member's values, so they need not be kept.
            return bytes_of(self._reduction.values[frame.first : frame.first + count])
        return self._scratch.of(sender).data

    def _is_final(self, step: int) -> bool:
        return self._bits <= step < 2 * self._bits or step == 2 * self._bits + 1

    def on_values(self, sender: int, frame: ValuesFrame) -> None:
        """Add partial sums, in whatever order they come, or take final sums."""
        count = self._due.pop((frame.step, sender, frame.first))
        self._open[frame.step] -= 1
        if self._is_final(frame.step):
            self._flags |= frame.flags & ValueFlag.OVERFLOW
        else:
            received: Sums = self._scratch.of(sender).view(np.int32)[:count]
            if frame.flags & ValueFlag.WIDE:
                received = self._scratch.of(sender).view(np.int64)[:count]
            self._add(frame.first, received)
        self._go_on()

    def _add(self, first: int, received: Sums) -> None:
        span = slice(first, first + len(received))
        if self._wide is None:
            values = self._reduction.values
            sums = combine(self._reduction.operation, values[span], received)
            if sums is None:
                return
            self._wide = values.astype(np.int64)
            self._wide[span] = sums
        else:
            self._wide[span] += received

    def _go_on(self) -> None:
        """End the exchanges whose values are all here, and begin those that waited for them."""
        while self._place < len(self._exchanges):
            exchange = self._exchanges[self._place]
            if self._open.get(exchange.step):
                break
            if exchange.step == self._bits - 1 and self._open.get(2 * self._bits):
                break  # blocks of members beyond the power of two are still to come
            self._place += 1
            if exchange.step == self._bits - 1:
                self._finish_block()
            if self._place < len(self._exchanges):
                self._give(self._exchanges[self._place])
        if self.is_complete and self._flags:
            self._reduction.has_saturated = True

    def _finish_block(self) -> None:
        """Make this member's own block final; send it beyond the power of two at once."""
        if self._wide is not None:
            for first, count in self._segments((self._position, self._position + 1)):
                sums = self._wide[first : first + count]
                if not is_narrow(sums):
                    self._flags |= ValueFlag.OVERFLOW
                saturate(sums, self._reduction.values[first : first + count])
            self._wide = None
        for outsider in self._outsiders:
            self._give_block(2 * self._bits + 1, outsider, self._position)

    def _give(self, exchange: Exchange) -> None:
        for first, count in self._segments(exchange.given):
            self._send_values(exchange.partner, exchange.step, first, count)

    def _give_block(self, step: int, receiver: int, block: int) -> None:
        for first, count in self._segments((block, block + 1)):
            self._send_values(receiver, step, first, count)

    def _send_values(self, receiver: int, step: int, first: int, count: int) -> None:
        """Send values without a copy: they do not change before they have left."""
        span = slice(first, first + count)
        if self._is_final(step):
            self._send(receiver, step, first, self._reduction.values[span], self._flags)
        elif self._wide is not None:
            self._send(receiver, step, first, self._wide[span], ValueFlag.WIDE)
        else:
            self._send(receiver, step, first, self._reduction.values[span], 0)
