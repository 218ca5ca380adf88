# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sums that lack what a test says, without a network: results, and deliveries that tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchfold.hostlib.loss_tolerance import Delivery


def delivery_of(
    bitmaps: Sequence[int],
    num_elements: int,
    *,
    values_per_chunk: int = 4,
    num_workers: int = 4,
    is_named: bool = True,
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
        is_tolerant=True,
    )


def is_in(
    bitmaps: Sequence[int], num_elements: int, *, values_per_chunk: int = 4, num_workers: int = 4
) -> NDArray[np.bool_]:
    """Return whose elements are in a result: a row for each worker."""
    by_chunk = np.array([[b >> w & 1 for b in bitmaps] for w in range(num_workers)], bool)
    return by_chunk.repeat(values_per_chunk, axis=1)[:, :num_elements]


def sum_of(given: Sequence[NDArray[Any]], present: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the sum of what is in a result."""
    total: NDArray[np.float64] = np.where(present, np.array(given, np.float64), 0).sum(axis=0)
    return total
