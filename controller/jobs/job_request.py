# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What the workers of a job must agree on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ...hostlib.straggler import WAIT_FOR_ALL, StragglerPolicy
from ..errors import InvalidJobError
from .job import PathChoice

MAX_JOB_WORKERS: Final = 0xFFFF
"""Contributors are counted in 16 bits."""
_LEAST_WEIGHT: Final = 1e-6


@dataclass(frozen=True, kw_only=True)
class JobRequest:
    """The terms of a job, as each of its workers states them."""

    name: str
    num_workers: int
    slots_wanted: int = 0
    """0: the controller decides."""
    straggler: StragglerPolicy = WAIT_FOR_ALL
    weight: float = 1.0
    path: PathChoice = PathChoice.AUTO
    min_workers: int = 1

    def __post_init__(self) -> None:
        if not self.name or len(self.name) > 255:
            raise InvalidJobError("the job's name must have 1 to 255 characters")
        if not 1 <= self.num_workers <= MAX_JOB_WORKERS:
            raise InvalidJobError(
                f"job {self.name!r} has {self.num_workers} workers; a job holds 1 to "
                f"{MAX_JOB_WORKERS}"
            )
        if not self.min_workers <= self.num_workers:
            raise InvalidJobError(
                f"job {self.name!r}: min_workers is {self.min_workers}, above the "
                f"{self.num_workers} workers that it starts with"
            )
        if not _LEAST_WEIGHT <= self.weight <= 1 / _LEAST_WEIGHT:
            raise InvalidJobError(
                f"job {self.name!r}: weight {self.weight} is not in {_LEAST_WEIGHT:g} to "
                f"{1 / _LEAST_WEIGHT:g}"
            )

    def __str__(self) -> str:
        slots = self.slots_wanted or "any number of"
        results = "whole results"
        if self.straggler.allow_partial:
            quorum = self.straggler.quorum or self.num_workers
            results = f"partial results (quorum {quorum}, deadline {self.straggler.deadline_s} s)"
        return (
            f"{self.num_workers} workers (at least {self.min_workers}), {slots} slots, {results}, "
            f"weight {self.weight:g}, path {self.path}"
        )
