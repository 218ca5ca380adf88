# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One reduction, and the interface of its algorithm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ..peers.frames import ValuesFrame
from ..slots.wire import Operation
from .cost import Algorithm
from .source_parts import SourceParts
from .values import Sums, Values


@dataclass(eq=False)
class Reduction:
    """Values that become the sum, or the maximum, over all members; given to the callback."""

    operation: Operation
    values: Values
    """Own values before, results after; undefined meanwhile and after a failure."""
    on_done: Callable[[Reduction], None]
    tag: int = 0
    """Names the tensor, 32 bits; all members must give the same tag."""
    has_saturated: bool = False
    """Some true sum is outside int32; the same at all members."""
    algorithm: Algorithm | None = None
    """The algorithm taken; None: there are no other members."""
    parts: SourceParts | None = None
    """Writes the own values and reads the results; None: the caller does, before and after."""

    @property
    def grain(self) -> int:
        """Values that belong together: no segment of a ring separates them."""
        return 1 if self.parts is None else self.parts.grain

    def prepare(self, first: int, count: int) -> None:
        """Have the own values of a range written, as they are needed now."""
        if self.parts is not None and count:
            self.parts.prepare(first, count)

    def settle(self, first: int, count: int) -> None:
        """Have the final results of a range read; they stay, to be sent on."""
        if self.parts is not None and count:
            self.parts.settle(first, count)


SendValues = Callable[[int, int, int, Sums, int], None]
"""(position of the receiver, step, first value, values, flags); the values must not change then."""


class ReductionSchedule(Protocol):
    """An algorithm for one reduction at one member; senders and receivers are positions."""

    def start(self) -> bool:
        """Send a part of the values that need no others; return whether there are more.

        If so, it is called again in the next turn of the loop, which must not be held up for long.
        """
        ...

    def target(self, sender: int, frame: ValuesFrame) -> memoryview:
        """Return memory for the values; raise PeerProtocolError if none are due from there."""
        ...

    def on_values(self, sender: int, frame: ValuesFrame) -> None:
        """Take the values that are in their memory now."""
        ...

    @property
    def awaited(self) -> set[int]:
        """Positions of the members whose values are still due."""
        ...

    @property
    def is_complete(self) -> bool:
        """Whether all values are final here; sent ones may still be leaving."""
        ...
