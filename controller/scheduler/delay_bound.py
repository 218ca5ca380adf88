# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The bound on the delay of updates, and which updates of a batch can meet it.

That delays are bounded and that updates are dropped before they use the network is MLfabric's. The
count of delays is that of its first author's prototypes; the test by deadlines is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .checks import check_finite, check_whole
from .transfers import TransferRequest


@dataclass(frozen=True, kw_only=True)
class DelayBound:
    """The greatest delay that updates may have at their commit, and how it is kept."""

    tau_max: int
    """MLfabric's word: most updates that the server applies between an update's version and it."""
    promotion_ratio: float = 2.0
    """An update that must be next is sent first if it takes at most so many times as long as the
    one that would end first; else it is dropped. Ours."""

    def __post_init__(self) -> None:
        check_whole("tau_max", self.tau_max, 0)
        check_finite("promotion_ratio", self.promotion_ratio, 1)


class DeadlinePositions:
    """Last positions of a batch's updates, sorted: earliest deadline first.

    Position p (from 1) of a batch is commit number next_commit + p - 1 of the server, so the delay
    there is that number less the update's version.
    """

    def __init__(self, requests: Sequence[TransferRequest], tau_max: int, next_commit: int) -> None:
        """`requests` are sorted by version, and so by deadline; `next_commit` counts from 0."""
        versions = np.array([request.version for request in requests], np.int64)
        self.last: NDArray[np.int64] = versions + (tau_max - next_commit + 1)
        """int64; an update at a later position would exceed the bound."""

    def first_misfit(self, remaining: NDArray[np.int64], position: int) -> int | None:
        """Return the rank at which earliest deadline first fails, None if all can be met.

        `remaining` holds the numbers (int64) of the updates for positions from `position` on.
        """
        ranks = np.arange(len(remaining))
        misfits = np.flatnonzero(self.last[remaining] < position + ranks)
        return int(misfits[0]) if misfits.size else None

    def can_go_first(self, remaining: NDArray[np.int64], position: int, number: int) -> bool:
        """Return whether all deadlines can be met with one update at a position.

        They must be feasible without that choice. Those before it move by one position.
        """
        rank = int(np.searchsorted(remaining, number))
        before = self.last[remaining[:rank]]
        return bool((before > position + np.arange(rank)).all())
