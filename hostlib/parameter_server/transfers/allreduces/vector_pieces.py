# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How a vector is cut: by the scheduler, or into equal chunks without it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from ....control.stations.allreduce_terms import VALUE_BYTES, AllreduceGranted, VectorPiece
from ....peers.frames import MAX_BATCH_BYTES
from ...rules import Values

PIECES: Final = 4
"""Of each chunk, as the scheduler cuts it: first sums return while later values travel."""
MOST_BYTES: Final = PIECES * MAX_BATCH_BYTES
"""Largest vector: one root may have all of it, and a piece is one transfer."""


def equal_pieces(num_values: int, num_members: int) -> tuple[VectorPiece, ...]:
    """Return the pieces of equal chunks, one chunk for each member; without empty pieces."""
    count = PIECES * num_members
    cuts = [VALUE_BYTES * (num_values * number // count) for number in range(count + 1)]
    return tuple(
        VectorPiece(number // PIECES, start, stop)
        for number, (start, stop) in enumerate(pairwise(cuts))
        if stop > start
    )


def grant_problem(
    granted: AllreduceGranted, worker_id: int, num_members: int, size_bytes: int
) -> str:
    """Return why a member cannot follow a grant, "" if it can."""
    stop = 0
    for piece in granted.pieces:
        is_next = piece.start_byte == stop < piece.stop_byte
        is_small = piece.num_bytes <= MAX_BATCH_BYTES
        if not (is_next and is_small and piece.root_id < num_members):
            return f"it has a piece that cannot be sent: {piece}"
        if piece.stop_byte % VALUE_BYTES:
            return f"it cuts a value: {piece}"
        stop = piece.stop_byte
    if stop != size_bytes:
        return f"its pieces end at byte {stop} of {size_bytes}"
    if sorted((leg.piece, leg.receiver_id) for leg in granted.legs) != sorted(
        legs_of(granted.pieces, worker_id, num_members)
    ):
        return f"its legs are not those of worker {worker_id}"
    return ""


def legs_of(
    pieces: Sequence[VectorPiece], worker_id: int, num_members: int
) -> list[tuple[int, int]]:
    """Return what a member sends, as (place of the piece, receiver)."""
    legs: list[tuple[int, int]] = []
    for place, piece in enumerate(pieces):
        if piece.root_id != worker_id:
            legs.append((place, piece.root_id))
        else:
            others = (number for number in range(num_members) if number != worker_id)
            legs.extend((place, number) for number in others)
    return legs


def values_of(vector: Values, piece: VectorPiece) -> Values:
    """Return a piece of a vector, in the same memory."""
    return vector[piece.start_byte // VALUE_BYTES : piece.stop_byte // VALUE_BYTES]


def names_of(worker_ids: Iterable[int]) -> str:
    """Return ids for people."""
    return ", ".join(map(str, sorted(worker_ids)))
