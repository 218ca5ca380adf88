# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Values that describe jobs: what the database stores and what tables are made of."""

from __future__ import annotations

import enum
from dataclasses import dataclass

JobId = int
"""1..65535, on the wire; also the job's multicast group id."""
Generation = int
"""32 bit, strictly increasing over all jobs of a controller; names one life of a job."""
WorkerId = int
"""0..num_workers - 1."""


class JobState(enum.StrEnum):
    """Life of a job."""

    WAITING = "waiting"
    """Slots are leased; workers are still missing."""
    RUNNING = "running"
    """All workers arrived; tables are on the switch."""
    ENDED = "ended"


class WorkerState(enum.StrEnum):
    """Life of a worker in its job."""

    JOINED = "joined"
    LEFT = "left"
    LOST = "lost"


@dataclass(frozen=True, kw_only=True)
class Worker:
    """One worker and where it is attached."""

    worker_id: WorkerId
    address: str
    mac: str
    udp_port: int
    port: int
    """P4 port number of the switch."""
    state: WorkerState = WorkerState.JOINED


@dataclass(frozen=True, kw_only=True)
class Job:
    """One life of a job: identified by its generation, named by the user."""

    generation: Generation
    job_id: JobId
    name: str
    switch: str
    state: JobState
    slot_base: int
    slot_count: int
    num_workers: int
    allow_partial: bool
    created_s: float
    """Unix time."""
    ended_s: float | None = None
    reason: str = ""
    """Why the job ended."""
    workers: tuple[Worker, ...] = ()
    """Sorted by worker id."""
