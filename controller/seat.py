# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Seats of workers in live jobs: leases, barriers, and the stream that carries messages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from controller.errors import ControllerError
from controller.job import Job, Worker, WorkerId
from controller.job_request import JobRequest
from hostlib.session_api import session_pb2 as pb

Outbox = asyncio.Queue[pb.ControllerMessage | ControllerError | None]
"""Messages of one stream; an error or None ends it."""


class Seat:
    """A worker's place in a job; outlives a broken stream until the lease runs out."""

    def __init__(self, worker: Worker, on_expired: Callable[[Seat], None]) -> None:
        self.worker = worker
        self.outbox: Outbox | None = None
        """Messages to the attached stream, None while detached."""
        self._on_expired = on_expired
        self._lease: asyncio.TimerHandle | None = None

    @property
    def is_attached(self) -> bool:
        """Whether a stream carries this seat."""
        return self.outbox is not None

    def attach(self) -> Outbox:
        """Take a new stream; an older one is ended."""
        self.close()
        self.outbox = Outbox()
        return self.outbox

    def detach(self, outbox: Outbox) -> bool:
        """Note that a stream is over; return whether it was the current one."""
        if self.outbox is not outbox:
            return False
        self.outbox = None
        return True

    def send(self, message: pb.ControllerMessage | ControllerError) -> None:
        """Queue a message if a stream is attached."""
        if self.outbox is not None:
            self.outbox.put_nowait(message)

    def close(self) -> None:
        """End the attached stream after what is queued."""
        if self.outbox is not None:
            self.outbox.put_nowait(None)

    def renew(self, lease_s: float) -> None:
        """Count the lease from now."""
        self.release()
        self._lease = asyncio.get_running_loop().call_later(lease_s, self._on_expired, self)

    def release(self) -> None:
        """Stop counting the lease."""
        if self._lease is not None:
            self._lease.cancel()
            self._lease = None


@dataclass(eq=False)
class LiveJob:
    """A waiting or running job and the seats of its workers."""

    job: Job
    request: JobRequest
    join_timeout_s: float = 0.0
    seats: dict[WorkerId, Seat] = field(default_factory=dict[WorkerId, Seat])
    """Workers that have arrived and neither left nor were lost."""
    barriers: dict[str, set[WorkerId]] = field(default_factory=dict[str, set[WorkerId]])
    """Who has reached each barrier that is not released yet."""
    released: set[str] = field(default_factory=set[str])
    join_timer: asyncio.TimerHandle | None = None
    has_started: bool = False
    """All workers have arrived; new ones are refused."""
    has_ended: bool = False

    @property
    def missing(self) -> list[WorkerId]:
        """Workers that have not arrived."""
        return [w for w in range(self.request.num_workers) if w not in self.seats]

    def send(self, message: pb.ControllerMessage | ControllerError) -> None:
        """Queue a message for every attached worker."""
        for seat in self.seats.values():
            seat.send(message)

    def release_timers(self) -> None:
        """Stop counting the join timeout and all leases."""
        if self.join_timer is not None:
            self.join_timer.cancel()
        for seat in self.seats.values():
            seat.release()
