# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One reduction, and what its algorithm must offer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ..peers.frames import ValuesFrame
from ..slots.wire import Operation
from .cost import Algorithm
from .source_parts import SourceParts
from .values import Lanes, Sums


@dataclass(eq=False)
class Reduction:
    """Lanes that become the sum, or the maximum, over all members; given to the callback."""

    operation: Operation
    lanes: Lanes
    """Own lanes before, result after; undefined while under way and after a failure."""
    on_done: Callable[[Reduction], None]
    tag: int = 0
    """What is reduced, 32 bits; all members must say the same."""
    has_saturated: bool = False
    """Some true sum is outside int32; known to all members alike."""
    algorithm: Algorithm | None = None
    """How it was done; None: there are no other members."""
    parts: SourceParts | None = None
    """What writes the own lanes and reads the results; None: the caller, before and after."""

    @property
    def grain(self) -> int:
        """Lanes that belong together: no segment of a ring parts them."""
        return 1 if self.parts is None else self.parts.grain

    def prepare(self, first: int, count: int) -> None:
        """Have the own lanes of a range written: they are needed now."""
        if self.parts is not None and count:
            self.parts.prepare(first, count)

    def settle(self, first: int, count: int) -> None:
        """Have the results of a range read: they are final. They stay, to be sent on."""
        if self.parts is not None and count:
            self.parts.settle(first, count)


SendLanes = Callable[[int, int, int, Sums, int], None]
"""(position of the receiver, step, first lane, lanes, flags); the lanes must not change then."""


class Schedule(Protocol):
    """An algorithm at work on one reduction at one member; positions are those among members."""

    def start(self) -> bool:
        """Send what needs nothing from others, a part of it; return whether there is more.

        Called again then, in the next turn of the loop, which must not be held up for long.
        """
        ...

    def target(self, sender: int, frame: ValuesFrame) -> memoryview:
        """Return where the lanes go; raise PeerProtocolError if none are due from there."""
        ...

    def on_lanes(self, sender: int, frame: ValuesFrame) -> None:
        """Take the lanes that are in the target now."""
        ...

    def awaits(self, sender: int) -> bool:
        """Return whether lanes are still due from this member."""
        ...

    @property
    def is_complete(self) -> bool:
        """Whether all lanes are final here (what was sent may still be leaving)."""
        ...
