# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What the workers of a job must agree on."""

from __future__ import annotations

from dataclasses import dataclass

from controller.errors import InvalidJobError
from hostlib import wire


@dataclass(frozen=True, kw_only=True)
class JobRequest:
    """The terms of a job, as each of its workers states them."""

    name: str
    switch: str
    num_workers: int
    slots_wanted: int
    """0: the controller decides."""
    allow_partial: bool

    def __post_init__(self) -> None:
        if not self.name or len(self.name) > 255:
            raise InvalidJobError("the job's name must have 1 to 255 characters")
        if not 1 <= self.num_workers <= wire.MAX_WORKERS:
            raise InvalidJobError(
                f"job {self.name!r} has {self.num_workers} workers, a switch carries 1 to "
                f"{wire.MAX_WORKERS}; start fewer workers"
            )
