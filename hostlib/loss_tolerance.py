# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How much of a sum may be missing, and what a result says of what is."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from .errors import ConfigurationError


@dataclass(frozen=True, kw_only=True)
class LossTolerance:
    """Which contributions a sum may lack, and still be a result.

    A contribution is what one worker gives to one chunk of a tensor. What only a timer would
    reveal to be lost is let go while these bounds hold; everything else is sent again, so a result
    never lacks more. A share is of all packets, whatever they hold: measure what a model tolerates.
    """

    loss: float
    """Share of all workers' contributions that may be missing: 0 (none) to below 1."""
    worker_floor: float | None = None
    """Least share of each worker's own contributions; None: 1 - 2 * loss, at least 0."""
    stale: float = 0.0
    """Share of a tensor's results that a worker may do without where it loses them: 0 to below 1.

    What it has instead are old values, so that workers have different bytes. Only for jobs whose
    switch is a process on a host, and without `loss`.
    """

    def __post_init__(self) -> None:
        """Check ranges."""
        if not 0 <= self.loss < 1:
            raise ConfigurationError(
                f"loss is {self.loss}; it is a share of all contributions, 0 or above and below 1"
            )
        if self.worker_floor is not None and not 0 <= self.worker_floor <= 1:
            raise ConfigurationError(
                f"worker_floor is {self.worker_floor}; it is a share of a worker's contributions, 0"
                " to 1"
            )
        if not 0 <= self.stale < 1:
            raise ConfigurationError(
                f"stale is {self.stale}; it is a share of results, 0 or above and below 1"
            )
        if self.loss and self.stale:
            raise ConfigurationError(
                f"loss is {self.loss} and stale is {self.stale}: a worker whose result is gone has"
                " it from another worker, which must then have all results; give one of them"
            )

    @property
    def least_of_worker(self) -> float:
        """Least share of each worker's own contributions."""
        return max(0.0, 1 - 2 * self.loss) if self.worker_floor is None else self.worker_floor

    def lost(self, num_workers: int, num_chunks: int) -> int:
        """Return how many contributions a tensor may lack."""
        return math.floor(self.loss * num_workers * num_chunks)

    def num_stale(self, num_chunks: int) -> int:
        """Return how many results of a tensor a worker may do without."""
        return math.floor(self.stale * num_chunks)

    def budget(self, num_workers: int, num_chunks: int, place: int) -> tuple[int, int]:
        """Return what the worker at a place of the members, from 0, may let go of one tensor.

        First the number of contributions of all workers, then that of any one of them. The budgets
        of all members add up to what the tensor may lack.
        """
        total = self.lost(num_workers, num_chunks)
        of_worker = math.floor((1 - self.least_of_worker) * num_chunks)
        return _part(total, num_workers, place), _part(of_worker, num_workers, place)


def strictest(tolerances: Iterable[LossTolerance | None]) -> LossTolerance:
    """Return what several tensors tolerate as one sum; None among them tolerates nothing.

    It is the least loss and the highest floor. Without any tolerances it is nothing.
    """
    given = list(tolerances)
    stated = [each for each in given if each is not None]
    if not stated or len(stated) < len(given):
        return NO_LOSS
    return LossTolerance(
        loss=min(each.loss for each in stated),
        worker_floor=max(each.least_of_worker for each in stated),
        stale=min(each.stale for each in stated),
    )


NO_LOSS = LossTolerance(loss=0)
"""Of a sum that lacks nothing, in a job that tolerates loss."""


def _part(total: int, num_parts: int, place: int) -> int:
    """Return the part of a number at a place; all parts add up to it."""
    return total // num_parts + (place < total % num_parts)


class CompletionReason(enum.StrEnum):
    """Why a sum was complete."""

    ALL = "all"
    """It has the contributions of all members."""
    TOLERATED = "tolerated"
    """It lacks some, within the tolerance of its tensor."""
    LATE = "late"
    """It lacks those of workers that the job's StragglerPolicy did not wait for."""
    STALE = "stale"
    """It has those of all members, but for old values where this worker lost results."""


@dataclass(frozen=True)
class ContributorRange:
    """Elements whose sums have equally many contributors."""

    start: int
    end: int
    """One past the last element."""
    contributors: int


@final
class Delivery:
    """Which contributions are in a sum."""

    def __init__(  # noqa: PLR0913 - a sum's parts
        self,
        members: Sequence[int],
        num_elements: int,
        values_per_chunk: int,
        contributors: NDArray[np.uint16],
        bitmaps: NDArray[np.uint32] | None,
        *,
        tolerance: LossTolerance | None,
        kept: NDArray[np.bool_] | None = None,
    ) -> None:
        """`contributors` and `bitmaps` by chunk; no bitmaps: it is not known who is missing.

        `kept`: chunks whose results this worker has done without; None: none.
        """
        self._members = tuple(members)
        self._num_elements, self._values = num_elements, values_per_chunk
        self._counts, self._bitmaps = contributors, bitmaps
        self._tolerance = tolerance
        self._kept = np.zeros(len(contributors), bool) if kept is None else kept

    @property
    def members(self) -> tuple[int, ...]:
        """Worker ids of the view that the sums are from."""
        return self._members

    @property
    def num_elements(self) -> int:
        """Number of elements of the tensor."""
        return self._num_elements

    @property
    def tolerance(self) -> LossTolerance | None:
        """What the sums could lack; None in a job that tolerates no loss."""
        return self._tolerance

    @property
    def num_contributions(self) -> int:
        """How many contributions there are, one of each member to each chunk."""
        return len(self._members) * len(self._counts)

    @cached_property
    def num_missing(self) -> int:
        """How many contributions the sums lack."""
        return self.num_contributions - int(self._counts.sum())

    @property
    def num_tolerated(self) -> int:
        """How many contributions the sums could lack; 0 in a job that tolerates no loss."""
        if self._tolerance is None:
            return 0
        return self._tolerance.lost(len(self._members), len(self._counts))

    @cached_property
    def contributors(self) -> tuple[ContributorRange, ...]:
        """How many workers are in the sums, by element: ranges that cover all, in order."""
        return tuple(
            ContributorRange(start, end, int(self._counts[start // self._values]))
            for start, end in self._runs(self._counts)
        )

    @cached_property
    def missing(self) -> Mapping[int, tuple[tuple[int, int], ...]]:
        """By worker of which something is missing: ranges of elements, [start, end), in order.

        Empty if nothing is missing, or if the sums came over more switches than can say who.
        """
        if self._bitmaps is None:
            return {}
        ranges: dict[int, tuple[tuple[int, int], ...]] = {}
        for worker in self._members:
            is_in = self._bitmaps >> np.uint32(worker) & 1
            if not is_in.all():
                ranges[worker] = tuple(
                    (start, end)
                    for start, end in self._runs(is_in)
                    if not is_in[start // self._values]
                )
        return ranges

    @cached_property
    def delivered(self) -> Mapping[int, float]:
        """By worker: share of its elements that are in the sums; empty if that is not known."""
        if self._bitmaps is None and not self._has_all:
            return {}
        lost = {w: sum(end - start for start, end in r) for w, r in self.missing.items()}
        return {w: 1 - lost.get(w, 0) / self._num_elements for w in self._members}

    @cached_property
    def coverage(self) -> float:
        """Share of all members' elements that are in the sums."""
        total = sum(each.contributors * (each.end - each.start) for each in self.contributors)
        return total / (len(self._members) * self._num_elements)

    @cached_property
    def stale(self) -> tuple[tuple[int, int], ...]:
        """Elements with old values, as this worker lost the results: ranges [start, end), in order.

        Other workers may have other ranges. The sums of all members are there, but not here.
        """
        return tuple(
            (start, end)
            for start, end in self._runs(self._kept)
            if self._kept[start // self._values]
        )

    @property
    def num_stale(self) -> int:
        """Number of elements with old values."""
        return sum(end - start for start, end in self.stale)

    def keep_previous(self, result: NDArray[Any], previous: NDArray[Any] | None) -> None:
        """Put old values into the stale ranges of a result in a row; None: zeros."""
        elements = self._elements(np.flatnonzero(self._kept))
        result[elements] = 0 if previous is None else previous[elements]

    @cached_property
    def _has_all(self) -> bool:
        """Whether the contributions of all members are in the sums."""
        return bool((self._counts == len(self._members)).all())

    @cached_property
    def reason(self) -> CompletionReason:
        """Why the sum was complete."""
        if self._has_all:
            return CompletionReason.STALE if self._kept.any() else CompletionReason.ALL
        return CompletionReason.LATE if self._tolerance is None else CompletionReason.TOLERATED

    def lacking(self) -> tuple[NDArray[np.intp], NDArray[np.uint16]]:
        """Return the elements whose sums lack somebody, in order, and their contributors."""
        chunks = np.flatnonzero(self._counts != len(self._members))
        elements = self._elements(chunks)
        return elements, self._counts[elements // self._values]

    def lost(self, worker: int) -> NDArray[np.intp] | None:
        """Return the elements whose sums lack a worker, in order: `missing` as an array.

        All of them if the worker is not a member; None if something is missing and it is not known
        whose it is.
        """
        if worker not in self._members:
            return np.arange(self._num_elements)
        if self._has_all:
            return np.empty(0, np.intp)
        if self._bitmaps is None:
            return None
        return self._elements(np.flatnonzero(~(self._bitmaps >> np.uint32(worker)) & 1))

    def _elements(self, chunks: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the elements of chunks."""
        elements = (chunks[:, None] * self._values + np.arange(self._values)).reshape(-1)
        # Only the last chunk is shorter.
        return elements[: np.searchsorted(elements, self._num_elements)]

    def _runs(self, by_chunk: NDArray[np.generic]) -> list[tuple[int, int]]:
        """Return ranges of elements, one for each run of equal numbers."""
        breaks = np.flatnonzero(by_chunk[1:] != by_chunk[:-1]) + 1
        starts = [0, *(breaks * self._values).tolist()]
        return list(zip(starts, [*starts[1:], self._num_elements], strict=True))
