# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A waiting or running job: its leases, the view in use and the change under way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from ...hostlib.control.session_api import session_pb2 as pb
from ..errors import ControllerError
from ..views.view_change import Change
from .barriers import Barriers
from .job import Generation, Job, JobNumber, View, Worker, WorkerId
from .retreat import Retreat
from .stalls import Stalls
from .worker_lease import WorkerLease


@dataclass(eq=False)
class LiveJob:
    """What the controller keeps of a job while it lives."""

    job: Job
    join_timeout_s: float = 0.0
    leases: dict[WorkerId, WorkerLease] = field(default_factory=dict[WorkerId, WorkerLease])
    """Workers that have arrived and neither left nor were lost."""
    barriers: Barriers = field(default_factory=Barriers)
    join_timer: asyncio.TimerHandle | None = None
    has_started: bool = False
    """All workers have arrived; later ones join a running job."""
    has_ended: bool = False
    view: View | None = None
    """The view in use: what was committed last."""
    leaving: list[View] = field(default_factory=list[View])
    """Older views that some worker may still use."""
    change: Change | None = None
    """The change under way, also after its commit until all workers have left older views."""
    boundary: int = 0
    """First tensor of the view in use, 0 when it is not known."""
    leave_floor: int | None = None
    """Least position of the workers that left since the last commit."""
    is_draining: bool = False
    """Too few workers are left to go on; those who are there may finish what they began."""
    stalls: Stalls = field(default_factory=Stalls)
    retreat: Retreat = field(default_factory=Retreat)
    """Switches that the job has left because they did not work."""
    returned: asyncio.Event = field(default_factory=asyncio.Event)
    """A worker has taken up its broken stream."""

    @property
    def name(self) -> str:
        """The job's name."""
        return self.job.name

    @property
    def job_number(self) -> JobNumber:
        """The job's number."""
        return self.job.job_number

    @property
    def missing(self) -> list[WorkerId]:
        """Workers that a waiting job has not seen."""
        return [w for w in range(self.job.num_workers) if w not in self.leases]

    @property
    def workers(self) -> tuple[Worker, ...]:
        """Workers that are there, by id: members of the next view."""
        return tuple(self.leases[worker_id].worker for worker_id in sorted(self.leases))

    @property
    def welcomed(self) -> set[WorkerId]:
        """Workers that know a view."""
        return {worker_id for worker_id, lease in self.leases.items() if lease.has_view}

    @property
    def joining(self) -> list[WorkerLease]:
        """Workers that wait for a tensor boundary."""
        return [lease for lease in self.leases.values() if not lease.has_view]

    @property
    def has_new_members(self) -> bool:
        """Whether others are there than the view in use names."""
        members = self.view.members if self.view else ()
        return bool(self.joining) or [*map(_place, members)] != [*map(_place, self.workers)]

    @property
    def is_attached(self) -> bool:
        """Whether the stream of any worker is open."""
        return any(lease.is_attached for lease in self.leases.values())

    def switch_of(self, worker_id: WorkerId) -> str:
        """Return the switch that a worker is attached to."""
        return self.leases[worker_id].worker.switch

    def welcomed_at(self, switch: str) -> set[WorkerId]:
        """Return the workers at a switch that know a view."""
        return {worker_id for worker_id in self.welcomed if self.switch_of(worker_id) == switch}

    def is_current(self, lease: WorkerLease) -> bool:
        """Whether the job lives and this is the worker's lease in it, not an older one."""
        return not self.has_ended and self.leases.get(lease.worker_id) is lease

    def is_member(self, worker_id: WorkerId) -> bool:
        """Whether the view in use has this worker."""
        return self.view is not None and any(
            worker.worker_id == worker_id for worker in self.view.members
        )

    @property
    def is_whole(self) -> bool:
        """Whether nobody is awaited from before the controller's restart."""
        return not any(lease.is_expected for lease in self.leases.values())

    def send(self, message: pb.ControllerMessage | ControllerError) -> None:
        """Queue a message for every attached worker."""
        for lease in self.leases.values():
            lease.send(message)

    def tell_missing(self, generation: Generation, now_s: float) -> None:
        """Tell those who wait for whom they do, once their reports say it."""
        present = self.welcomed
        missing = self.stalls.missing(present, generation, now_s)
        if not missing:
            return
        answer = pb.Missing(generation=generation, missing_workers=sorted(missing))
        for worker_id in present - missing:
            self.leases[worker_id].send(pb.ControllerMessage(missing=answer))

    def release_barriers(self) -> list[tuple[str, int]]:
        """Release the barriers that all workers have reached; return them."""
        present = self.welcomed
        keys = self.barriers.release(present)
        for name, use in keys:
            released = pb.BarrierReleased(name=name, use=use)
            for worker_id in present:
                self.leases[worker_id].send(pb.ControllerMessage(barrier_released=released))
        return keys

    def wait_for_workers(self, on_timeout: Callable[[LiveJob], None]) -> None:
        """Call `on_timeout` unless the job starts or ends within `join_timeout_s`."""
        loop = asyncio.get_running_loop()
        self.join_timer = loop.call_later(self.join_timeout_s, on_timeout, self)

    def stop_waiting(self) -> None:
        """Stop counting the join timeout."""
        if self.join_timer is not None:
            self.join_timer.cancel()

    def add(self, lease: WorkerLease) -> None:
        """Take in a worker that has arrived."""
        self.leases[lease.worker_id] = lease

    def take_out(self, lease: WorkerLease) -> None:
        """Forget a worker: its lease and stream, its barriers, its part in a change under way."""
        worker_id = lease.worker_id
        del self.leases[worker_id]
        lease.release()
        lease.close()
        self.barriers.leave(worker_id)
        if self.change is not None:
            self.change.forget(worker_id)

    def note_leave(self, position: int) -> None:
        """Note how far a member was that has left: the next view must not begin later."""
        floor = self.leave_floor
        self.leave_floor = position if floor is None else min(floor, position)

    def propose(self, change: Change) -> None:
        """Ask the workers of a change to get ready."""
        change.is_proposed = True
        for worker_id in change.asked:
            self.leases[worker_id].send(change.proposal())

    def commit(self, change: Change) -> None:
        """Use the view of a settled change from its boundary on."""
        if self.view is not None:
            self.leaving.append(self.view)
        self.view, self.boundary, self.leave_floor = change.view, change.boundary, None

    def finish_change(self) -> list[View]:
        """End the change under way; return the older views, which no worker uses any more."""
        self.change = None
        leaving, self.leaving = self.leaving, []
        return leaving

    def end(self) -> None:
        """Let nothing happen to the job any more."""
        self.has_ended = True
        self.release_timers()

    def release_timers(self) -> None:
        """Stop counting the join timeout and all leases."""
        self.stop_waiting()
        for lease in self.leases.values():
            lease.release()


def _place(worker: Worker) -> tuple[WorkerId, str, int]:
    return worker.worker_id, worker.address, worker.udp_port
