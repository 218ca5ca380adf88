# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sums that lack what a test says, without a network: results, and deliveries that tell."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchfold.hostlib.future import AllreduceFuture
from switchfold.hostlib.loss_tolerance import Delivery, LossTolerance
from switchfold.hostlib.straggler import StragglerPolicy

NUM_WORKERS = 4
TENTH = LossTolerance(loss=0.1)


def delivery_of(
    bitmaps: Sequence[int],
    num_elements: int,
    *,
    values_per_chunk: int = 4,
    num_workers: int = NUM_WORKERS,
    is_named: bool = True,
    tolerance: LossTolerance = TENTH,
) -> Delivery:
    """Return what a result with these bitmaps by chunk says; not `is_named`: not who is missing."""
    found = np.array(bitmaps, np.uint32)
    counts = np.array([each.bit_count() for each in bitmaps], np.uint16)
    return Delivery(
        range(num_workers),
        num_elements,
        values_per_chunk,
        counts,
        found if is_named else None,
        tolerance=tolerance,
    )


def is_in(
    bitmaps: Sequence[int],
    num_elements: int,
    *,
    values_per_chunk: int = 4,
    num_workers: int = NUM_WORKERS,
) -> NDArray[np.bool_]:
    """Return whose elements are in a result: a row for each worker."""
    by_chunk = np.array([[b >> w & 1 for b in bitmaps] for w in range(num_workers)], bool)
    return by_chunk.repeat(values_per_chunk, axis=1)[:, :num_elements]


def sum_of(given: Sequence[NDArray[Any]], present: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the sum of what is in a result."""
    total: NDArray[np.float64] = np.where(present, np.array(given, np.float64), 0).sum(axis=0)
    return total


class LossySession:
    """Of four workers that all give the same; tests say what is in each chunk of four values."""

    def __init__(self, straggler: StragglerPolicy) -> None:
        self.view = SimpleNamespace(num_workers=NUM_WORKERS, worker_id=0, straggler=straggler)
        self.bitmaps: list[int] = []
        """Of the next sums; empty: all are in them."""
        self.members = range(NUM_WORKERS)
        self.tolerances: list[LossTolerance | None] = []
        self.given: list[list[float]] = []

    def allreduce(self, array: Any, op: str = "sum", **named: Any) -> AllreduceFuture:
        future = AllreduceFuture(len(self.given) + 1)
        self.tolerances.append(named["tolerance"])
        self.given.append(array.tolist())
        num_chunks = -(-len(array) // 4)
        bitmaps = (self.bitmaps or [(1 << NUM_WORKERS) - 1] * num_chunks)[:num_chunks]
        tolerance = named["tolerance"] or self.view.straggler.tolerance or TENTH
        delivery = delivery_of(
            bitmaps, len(array), num_workers=len(self.members), tolerance=tolerance
        )
        counts = np.array([b.bit_count() for b in bitmaps]).repeat(4)[: len(array)]
        result = array.copy() if op == "mean" else (array * counts).astype(array.dtype)
        is_exact = named.get("precision", "exact") == "exact" and array.dtype.kind == "f"
        told = None if is_exact else delivery
        future.set_result(result, int(counts.min()), tuple(self.members), told)
        return future
