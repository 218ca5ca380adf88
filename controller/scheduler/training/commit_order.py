# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Commits in the order of arrival, as far as the bound on delays lets them overtake each other.

Both orders are ours. docs/scheduler.md compares them.
"""

from __future__ import annotations

import enum
from typing import Generic, TypeVar

import numpy as np

from ..errors import CommitSequenceError

ItemT = TypeVar("ItemT")


class CommitOrder(enum.Enum):
    """In which order a server applies updates."""

    SEQUENCE = "sequence"
    """That of the grants. An update that is late holds up all that were granted after it."""
    ARRIVAL = "arrival"
    """That of arrival, unless an update that is under way would exceed `tau_max`."""


class ArrivalCommits(Generic[ItemT]):
    """Lets updates be applied as they arrive, and holds one back only for the sake of the bound.

    The updates under way can meet the bound when they are granted, in the order of grants. An
    update is applied only if all others still can: by earliest deadline first, the one at rank r
    (from 0) becomes commit number `applied` + 1 + r. So the one with the earliest deadline can
    always be applied, and every one meets the bound.

    Cost: O(1) for an arrival without a bound; with one, O(n log n) with n updates under way.
    """

    def __init__(self, tau_max: int | None, applied: int) -> None:
        self._tau_max = tau_max
        self._applied = applied
        self._last: dict[int, int] = {}
        """By place in the sequence of grants: greatest commit number that meets the bound."""
        self._held: dict[int, ItemT] = {}
        """Arrived and not applied, oldest first."""

    def expect(self, sequence: int, version: int) -> None:
        """Note a grant, with the version of the model on which its update was computed."""
        self._last[sequence] = version + (self._tau_max or 0)

    def arrive(self, sequence: int, item: ItemT) -> list[ItemT]:
        """Return what can be applied now, in order; CommitSequenceError unless it is expected."""
        if sequence not in self._last or sequence in self._held:
            raise CommitSequenceError(
                f"number {sequence} of the grants is past, filled already or not granted"
            )
        self._held[sequence] = item
        return self._apply()

    def skip(self, sequence: int) -> list[ItemT]:
        """Go on without an update that will not come; return what can be applied now."""
        if sequence not in self._last or sequence in self._held:
            raise CommitSequenceError(
                f"number {sequence} of the grants is past, filled already or not granted"
            )
        del self._last[sequence]
        return self._apply()

    def _apply(self) -> list[ItemT]:
        ready: list[ItemT] = []
        while True:
            sequence = next((each for each in self._held if self._can_go_next(each)), None)
            if sequence is None:
                return ready
            ready.append(self._held.pop(sequence))
            del self._last[sequence]
            self._applied += 1

    def _can_go_next(self, sequence: int) -> bool:
        if self._tau_max is None:
            return True
        others = np.sort([last for number, last in self._last.items() if number != sequence])
        return bool((others >= self._applied + 1 + np.arange(len(others))).all())
