# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One reduction, and what its algorithm must offer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from hostlib.host_path.cost import Algorithm
from hostlib.host_path.lanes import Lanes, Sums
from hostlib.peers.frames import Frame
from hostlib.wire import Operation


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


SendLanes = Callable[[int, int, int, Sums, int], None]
"""(position of the receiver, step, first lane, lanes, flags); the lanes must not change then."""


class Schedule(Protocol):
    """An algorithm at work on one reduction at one member; positions are those among members."""

    def start(self) -> None:
        """Send what needs nothing from others."""
        ...

    def target(self, sender: int, frame: Frame) -> memoryview:
        """Return where the lanes go; raise PeerProtocolError if none are due from there."""
        ...

    def on_lanes(self, sender: int, frame: Frame) -> None:
        """Take the lanes that are in the target now."""
        ...

    def awaits(self, sender: int) -> bool:
        """Return whether lanes are still due from this member."""
        ...

    @property
    def is_complete(self) -> bool:
        """Whether all lanes are final here (what was sent may still be leaving)."""
        ...
