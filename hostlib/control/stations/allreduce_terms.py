# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What workers and the scheduler tell each other of sums of all members' vectors."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from .station import GrantedSpan

MOST_MEMBERS: Final = 16
"""A plan costs the square of their number."""
VALUE_BYTES: Final = 4
"""Of float32; nothing is cut within a value."""


class AllreduceRequested(NamedTuple):
    """A worker has a vector; all members give the same number, size and number of members."""

    transfer_id: int
    """From the same sequence as those of updates."""
    number: int
    """Of the worker's count of allreduces, from 1."""
    size_bytes: int
    num_members: int
    """The workers with ids below it."""
    wait_s: float
    """How long the others may take to ask, if it is the first one."""


class AllreduceEnded(NamedTuple):
    """A worker has the sum of a granted allreduce, or does not wait for it any longer."""

    transfer_id: int


AllreduceReport = AllreduceRequested | AllreduceEnded


class AllreduceNoted(NamedTuple):
    """The scheduler knows of the request, and waits for other members."""

    transfer_id: int


class VectorPiece(NamedTuple):
    """A piece of the vector, whose sum one member makes."""

    root_id: int
    """That member."""
    start_byte: int
    stop_byte: int

    @property
    def num_bytes(self) -> int:
        """Size of the piece."""
        return self.stop_byte - self.start_byte


class PieceLeg(NamedTuple):
    """What a member sends of a piece: its values to the root, or the root the sum to a member."""

    piece: int
    """Place of the piece in the vector, from 0."""
    receiver_id: int
    spans: tuple[GrantedSpan, ...]
    """Those of a sum begin later if it is complete later. None: at once."""


class AllreduceGranted(NamedTuple):
    """All members have asked; all of them get the same pieces."""

    transfer_id: int
    pieces: tuple[VectorPiece, ...]
    """In the order of the vector."""
    legs: tuple[PieceLeg, ...]
    """Of this worker."""
    end_s: float
    """When all members have the sum by plan, in seconds after this message."""


class AllreduceProblem(enum.Enum):
    """Why there is no sum."""

    REFUSED = "refused"
    """It cannot be planned."""
    MISMATCH = "mismatch"
    """Members have asked for different things."""
    MISSING = "missing"
    """Some have not asked in time."""
    LOST = "lost"
    """Some are gone."""


class AllreduceFailed(NamedTuple):
    """There will be no sum."""

    transfer_id: int
    problem: AllreduceProblem
    text: str
    worker_ids: tuple[int, ...]
    """Who is at fault, missing or gone."""


AllreduceEvent = AllreduceNoted | AllreduceGranted | AllreduceFailed
