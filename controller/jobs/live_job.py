# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A waiting or running job: its leases, the view in use and the change under way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from ...hostlib.control.session_api import session_pb2 as pb
from ..errors import ControllerError
from ..views.view_change import Change
from .barriers import Barriers
from .job import Generation, Job, JobNumber, View, Worker, WorkerId
from .job_request import NO_TOKEN, JobToken
from .retreat import Retreat
from .stalls import Stalls
from .worker_lease import WorkerLease


class LiveJob:
    """What the controller keeps of a job while it lives."""

    def __init__(
        self,
        job: Job,
        join_timeout_s: float = 0.0,
        released: Mapping[str, int] | None = None,
        token: JobToken = NO_TOKEN,
        source: str = "",
    ) -> None:
        """`released`: the last released use of each barrier.

        `token`: its first worker's; `source`: where that called from, "" for a Unix socket.
        """
        self.job: Final = job
        """As it was created or restored: what its first worker asked for. Its views may be old."""
        self.token: Final = token
        """Who is in the job has proved it."""
        self.source: Final = source
        self.join_timeout_s: Final = join_timeout_s
        self.leases: Final[dict[WorkerId, WorkerLease]] = {}
        """Workers that have arrived and neither left nor were lost."""
        self.other_terms: Final[dict[WorkerId, str]] = {}
        """What refused workers wanted that came with other terms while the job waited."""
        self.barriers: Final = Barriers(released)
        self.stalls: Final = Stalls()
        self.retreat: Final = Retreat()
        """Switches that the job has left because they did not work."""
        self.returned: Final = asyncio.Event()
        """A worker has taken up its broken stream."""
        self._join_timer: asyncio.TimerHandle | None = None
        self._has_started = False
        self._has_ended = False
        self._is_draining = False
        self._view: View | None = None
        self._leaving: list[View] = []  # older views that some worker may still use
        self._change: Change | None = None
        self._boundary = 0
        self._leave_floor: int | None = None  # least position of those who left

    @classmethod
    def restored(cls, job: Job, released: Mapping[str, int], token: JobToken) -> LiveJob:
        """Return a job that ran when an earlier controller stopped; its leases are missing."""
        live = cls(job, released=released, token=token)
        live._has_started = True
        live._view = job.view
        live._leaving = [view for view in job.live_views if view is not job.view]
        return live

    @property
    def has_started(self) -> bool:
        """Whether all workers have arrived; later ones join a running job."""
        return self._has_started

    @property
    def has_ended(self) -> bool:
        """Whether nothing can happen to the job any more."""
        return self._has_ended

    @property
    def is_draining(self) -> bool:
        """Whether too few workers are left to go on; those may finish what they began."""
        return self._is_draining

    @property
    def view(self) -> View | None:
        """The view in use: what was committed last."""
        return self._view

    @property
    def change(self) -> Change | None:
        """The change under way, also after its commit until all workers have left older views."""
        return self._change

    @property
    def boundary(self) -> int:
        """First tensor of the view in use, 0 when it is not known."""
        return self._boundary

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
        self._join_timer = loop.call_later(self.join_timeout_s, on_timeout, self)

    def start(self) -> None:
        """Note that all workers have arrived, and stop counting the join timeout."""
        self._has_started = True
        self._stop_waiting()

    def use_first(self, view: View) -> None:
        """Use the first view."""
        self._view = view

    def drain(self) -> None:
        """Note that too few workers are left to go on."""
        self._is_draining = True

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
        if self._change is not None:
            self._change.forget(worker_id)

    def note_leave(self, position: int) -> None:
        """Note how far a member was that has left: the next view must not begin later."""
        floor = self._leave_floor
        self._leave_floor = position if floor is None else min(floor, position)

    def begin_change(self, change: Change) -> None:
        """Have a change under way."""
        self._change = change

    def drop_change(self) -> None:
        """Have no change under way any more: this one cannot be committed."""
        self._change = None

    def propose(self, change: Change) -> None:
        """Ask the workers of a change to get ready."""
        change.note_proposed()
        for worker_id in change.asked:
            self.leases[worker_id].send(change.proposal())

    def settle(self, change: Change) -> bool:
        """Fix a change's boundary; False if workers began tensors after one had left."""
        floor = self._leave_floor
        if change.is_abort or floor is None:
            change.settle()
        elif change.furthest <= floor:
            change.settle(floor)
        else:
            return False
        return True

    def commit(self, change: Change) -> None:
        """Use the view of a settled change from its boundary on."""
        if self._view is not None:
            self._leaving.append(self._view)
        self._view, self._boundary, self._leave_floor = change.view, change.boundary, None

    def finish_change(self) -> list[View]:
        """End the change under way; return the older views, which no worker uses any more."""
        self._change = None
        leaving, self._leaving = self._leaving, []
        return leaving

    def end(self) -> None:
        """Let nothing happen to the job any more."""
        self._has_ended = True
        self.release_timers()

    def release_timers(self) -> None:
        """Stop counting the join timeout and all leases."""
        self._stop_waiting()
        for lease in self.leases.values():
            lease.release()

    def _stop_waiting(self) -> None:
        if self._join_timer is not None:
            self._join_timer.cancel()


def _place(worker: Worker) -> tuple[WorkerId, str, int]:
    return worker.worker_id, worker.address, worker.udp_port
