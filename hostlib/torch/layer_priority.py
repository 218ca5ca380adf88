# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Priorities of gradients: those of layers that the next forward pass needs first are the highest.

A backward pass sends the last layers first. In the queues of switches, later gradients of front
layers then leave before earlier ones of other layers, and before those of other jobs.
"""

from __future__ import annotations

from typing import final

from ..errors import ConfigurationError
from ..session import Session


def num_classes(session: Session, where: str) -> int:
    """Return how many priorities the tensors of a session may have, at least 2.

    Raises ConfigurationError, which begins with `where`, if there are fewer.
    """
    max_priority = session.options.max_priority
    if max_priority < 2:
        raise ConfigurationError(
            f"{where}: front_first needs two priorities below that of control packets, and the"
            f" session asked for max_priority {max_priority}; set SWITCHFOLD_MAX_PRIORITY, or"
            " SessionOptions.max_priority, to 2 or more on all ranks"
        )
    return max_priority


def priority_at(place: int, count: int, classes: int) -> int:
    """Return the priority of the gradient that a backward pass sends at a place, of `count`."""
    return min(place * classes // count, classes - 1) if count else 0


@final
class BucketPriorities:
    """Priorities of DDP's buckets; a backward pass tells how many the next one has."""

    def __init__(self, classes: int) -> None:
        """`classes`: priorities from 0 on that buckets may have."""
        self._classes = classes
        self._count = 0

    def of(self, index: int, *, is_last: bool) -> int:
        """Return the priority of a bucket; in the first backward pass all have 0."""
        priority = priority_at(index, self._count, self._classes)
        if is_last:
            self._count = index + 1
        return priority
