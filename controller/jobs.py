# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Admission: which job gets which slots, ids and generation, and why one is refused."""

from __future__ import annotations

import time
from dataclasses import dataclass

from controller.database import Database
from controller.errors import InvalidJobError, NoRoomError
from controller.job import Job, JobState
from hostlib import wire

_FEWEST_SLOTS = 2
"""Fewer are not given unasked: a host needs one slot for exponents and one for values."""


@dataclass(frozen=True, kw_only=True)
class JobRequest:
    """What the workers of a job must agree on."""

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


@dataclass(frozen=True)
class SlotRange:
    """Slots [base, base + count) of a switch."""

    base: int
    count: int


def free_ranges(jobs: list[Job], num_slots: int) -> list[SlotRange]:
    """Return the gaps between the slot ranges of live jobs of one switch, by base."""
    gaps: list[SlotRange] = []
    position = 0
    for job in sorted(jobs, key=lambda job: job.slot_base):
        if job.slot_base > position:
            gaps.append(SlotRange(position, job.slot_base - position))
        position = job.slot_base + job.slot_count
    if position < num_slots:
        gaps.append(SlotRange(position, num_slots - position))
    return gaps


class Admission:
    """Gives slots, ids and generations to jobs."""

    def __init__(
        self, database: Database, *, default_slots: int, num_slots: int = wire.NUM_SLOTS
    ) -> None:
        self._database = database
        self._default_slots = default_slots
        self._num_slots = num_slots

    def admit(self, request: JobRequest) -> Job:
        """Lease slots first-fit and store a waiting job; NoRoomError says what would fit."""
        live = self._database.jobs(is_live_only=True)
        slots = self._find_slots(request, [job for job in live if job.switch == request.switch])
        used_ids = {job.job_id for job in live}
        job = Job(
            generation=self._database.allocate_generation(),
            job_id=self._database.allocate_job_id(used_ids),
            name=request.name,
            switch=request.switch,
            state=JobState.WAITING,
            slot_base=slots.base,
            slot_count=slots.count,
            num_workers=request.num_workers,
            allow_partial=request.allow_partial,
            created_s=time.time(),
        )
        self._database.insert_job(job)
        return job

    def _find_slots(self, request: JobRequest, jobs: list[Job]) -> SlotRange:
        wanted = request.slots_wanted or self._default_slots
        if wanted > self._num_slots:
            raise NoRoomError(
                f"job {request.name!r} wants {wanted} slots, switch {request.switch} has "
                f"{self._num_slots} in all; ask for at most {self._num_slots}"
            )
        gaps = free_ranges(jobs, self._num_slots)
        for gap in gaps:
            if gap.count >= wanted:
                return SlotRange(gap.base, wanted)
        largest = max((gap.count for gap in gaps), default=0)
        if not request.slots_wanted and largest >= _FEWEST_SLOTS:
            return SlotRange(next(gap.base for gap in gaps if gap.count == largest), largest)
        holders = ", ".join(f"{job.name} ({job.slot_count})" for job in jobs)
        advice = f"{largest} slots would fit" if largest else "no slot is free"
        raise NoRoomError(
            f"job {request.name!r} wants {wanted} slots, switch {request.switch} has no such range "
            f"free: {advice}; held by {holders}; ask for fewer slots or wait for a job to end"
        )
