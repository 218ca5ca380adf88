# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Shares of trees: the split of the traffic that minimizes the time of the slowest link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

_EPSILON: Final = 1e-9


@dataclass(frozen=True)
class Packing:
    """The best split over given trees."""

    seconds: float
    """Time of the slowest link."""
    shares: tuple[float, ...]
    """One per tree, adding up to 1."""
    lengths: tuple[float, ...]
    """Price of a second on each link. A further tree makes the split faster if its price, the sum
    of seconds times length over its links, is below 1."""


def pack_trees(seconds: NDArray[np.float64]) -> Packing:
    """Return the shares x >= 0, sum 1, that minimise the largest element of `seconds @ x`.

    `seconds`: float64, (links, trees): time of a link if one tree carries everything, 0 where the
    tree does not use the link; every tree uses some link. With z = x / time this is the linear
    program max sum(z), seconds @ z <= 1, z >= 0. Its origin is feasible, so the simplex method
    needs no first phase; Bland's rule keeps it from going in circles.
    """
    all_links = len(seconds)
    used_links = np.flatnonzero(seconds.any(axis=1))
    # Links with the same times in all trees are one constraint: only one of them gets the price.
    seconds, first_links = np.unique(seconds[used_links], axis=0, return_index=True)
    num_links, num_trees = seconds.shape
    scale = float(seconds.max())
    table = np.zeros((num_links + 1, num_trees + num_links + 1))
    table[:-1, :num_trees] = seconds / scale
    table[:-1, num_trees:-1] = np.eye(num_links)
    table[:-1, -1] = 1.0
    table[-1, :num_trees] = -1.0
    basis: NDArray[np.int64] = np.arange(num_trees, num_trees + num_links, dtype=np.int64)
    while True:
        entering = np.flatnonzero(table[-1, :-1] < -_EPSILON)
        if not entering.size:
            break
        column = int(entering[0])
        rows = np.flatnonzero(table[:-1, column] > _EPSILON)
        ratios = table[rows, -1] / table[rows, column]
        ties = rows[ratios <= ratios.min() + _EPSILON]
        row = int(ties[np.argmin(basis[ties])])
        table[row] /= table[row, column]
        factors = table[:, column].copy()
        factors[row] = 0.0
        table -= np.outer(factors, table[row])
        basis[row] = column
    amounts = np.zeros(num_trees + num_links)
    amounts[basis] = table[:-1, -1]
    shares = np.maximum(amounts[:num_trees], 0.0)
    total = float(shares.sum())
    lengths = np.zeros(all_links)
    lengths[used_links[first_links]] = np.maximum(table[-1, num_trees:-1], 0.0) / scale
    return Packing(scale / total, tuple((shares / total).tolist()), tuple(lengths.tolist()))
