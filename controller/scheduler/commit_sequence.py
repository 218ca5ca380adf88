# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The order in which a server applies updates: strictly by number, whatever arrives first.

The strictness is ours: without it, delays and the order at a replica would not be as planned.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from .errors import CommitSequenceError

ItemT = TypeVar("ItemT")


class CommitSequence(Generic[ItemT]):
    """Holds early arrivals until all before them are there. Cost: O(1) for each."""

    def __init__(self) -> None:
        self.next = 0
        """Number that the server waits for."""
        self._early: dict[int, ItemT | None] = {}
        """None is a number that will not come."""

    def arrive(self, sequence: int, item: ItemT) -> list[ItemT]:
        """Return what can be applied now, in order; CommitSequenceError for a number that is past.

        A number arrives once: whoever sends a message again must look up whether it has arrived.
        """
        return self._fill(sequence, item)

    def skip(self, sequence: int) -> list[ItemT]:
        """Go on without a number whose update will not come; return what can be applied now."""
        return self._fill(sequence, None)

    def _fill(self, sequence: int, item: ItemT | None) -> list[ItemT]:
        if sequence < self.next or sequence in self._early:
            state = "past" if sequence < self.next else "filled already"
            raise CommitSequenceError(
                f"number {sequence} of the commit sequence is {state}; {self.next} is the next one"
            )
        self._early[sequence] = item
        ready: list[ItemT] = []
        while self.next in self._early:
            found = self._early.pop(self.next)
            self.next += 1
            if found is not None:
                ready.append(found)
        return ready
