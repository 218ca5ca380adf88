# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How many slots each job should hold by its weight, and which jobs should change their views.

Hot rows take what the jobs leave, and give it back when jobs need it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from ..jobs.job import Job, JobNumber, JobState, PathChoice, Tree
from .max_min_fairness import Demand, fair_shares
from .slot_allocator import FEWEST_SLOTS, SlotAllocator

_HEADROOM: Final = 8
"""One in this many slots of a switch is not shared out, so that a new view finds room beside the
one that it replaces."""
_LEAST_CHANGE: Final = 8
"""A job does not change its view for less than one in this many of its slots."""
_LEAST_SHARE: Final = 8
"""Jobs that asked for no number keep one in this many of the default slots against those that
did."""

Shape = tuple[Tree, ...]


class SlotShares:
    """The slots that live jobs hold and should hold, at one moment."""

    def __init__(
        self,
        jobs: Sequence[Job],
        off_switch: Mapping[JobNumber, Shape],
        memory: SlotAllocator,
        default_slots: int,
    ) -> None:
        """`off_switch` has the trees that jobs without switch slots would use."""
        self._jobs = jobs
        self._memory = memory
        self._default_slots = default_slots
        self._shapes = {
            job.job_number: job.view.trees for job in jobs if job.view and job.view.trees
        }
        self._off_switch = self._that_could_fit(off_switch)
        self._shares = self._targets({})

    def slots_now(self, job: Job, shape: Shape) -> int:
        """Return how many slots a job gets in a view planned now; 0: there is no room."""
        if job.slots_wanted:
            fits = self._memory.place(shape, job.slots_wanted) is not None
            return job.slots_wanted if fits else 0
        targets = self._targets({job.job_number: shape})
        target = targets[job.job_number]
        fewest = FEWEST_SLOTS * len(shape)
        leave = 0 if self._held(job) > target else self._largest_shrinking(job, shape, targets)
        most = self._memory.most_slots(shape, target + leave)
        slots = min(target, max(most - leave, min(most, fewest)))
        return slots if slots >= fewest else 0

    def room_for_rows(self, job: Job, trees: Shape) -> dict[str, int]:
        """Return how many slots of each switch hot rows may take beside these slots of a job.

        What other jobs hold or should hold stays theirs, and some stays free for new views.
        """
        needed = _slots_on(trees)
        rows: dict[str, int] = {}
        everyone = self._shapes | self._off_switch
        for other in self._jobs:
            if other.job_number == job.job_number:
                continue
            shape = everyone.get(other.job_number, ())
            target = other.slots_wanted or self._shares.get(other.job_number, 0)
            held, wanted = _slots_on(shape), _usage(shape)
            for switch, slots in _rows_on(shape).items():
                rows[switch] = rows.get(switch, 0) + slots
            for switch, part in wanted.items():
                more = max(held[switch], math.ceil(part * target))
                needed[switch] = needed.get(switch, 0) + more
        most = self._memory.num_slots
        return {
            switch: most - rows.get(switch, 0) - slots - min(slots, most // _HEADROOM)
            for switch, slots in needed.items()
        }

    def _largest_shrinking(self, job: Job, shape: Shape, targets: Mapping[JobNumber, int]) -> int:
        """Return the most slots that another job on the same switches will hold once it has shrunk.

        That job needs this room for its smaller view beside its larger one.
        """
        return max(
            (
                targets[other.job_number]
                for other in self._jobs
                if other.job_number in targets
                and other.job_number != job.job_number
                and self._held(other) > targets[other.job_number]
                and _switches(self._shapes[other.job_number]) & _switches(shape)
            ),
            default=0,
        )

    def changes(self) -> list[Job]:
        """Return the jobs that should get another view now; there is room for all of them at once.

        Other jobs wait until these have changed.
        """
        settled = [job for job in self._jobs if is_settled(job)]
        changes = [(self._change(job), job) for job in settled]
        shrinking = [job for change, job in changes if change < 0]
        growing = [job for change, job in changes if change > 0]
        return self._at_once(shrinking) or self._at_once(growing) or self._moves(settled)

    def _at_once(self, jobs: Sequence[Job]) -> list[Job]:
        """Return the jobs for which there is room at the same time, or else the first one."""
        memory = self._memory.copy()
        fitting: list[Job] = []
        for job in jobs:
            shape = self._shapes.get(job.job_number) or self._off_switch[job.job_number]
            trees = memory.place(shape, self.slots_now(job, shape))
            if trees is not None:
                memory.take(job.job_number, trees)
                fitting.append(job)
        return fitting or list(jobs[:1])

    def _that_could_fit(self, off_switch: Mapping[JobNumber, Shape]) -> dict[JobNumber, Shape]:
        """Return the trees of jobs for which others should make room, by job number."""
        fitting: dict[JobNumber, Shape] = {}
        least = max(self._default_slots // _LEAST_SHARE, FEWEST_SLOTS)
        needed: dict[str, float] = {}
        for job in self._jobs:
            for switch, part in _usage(self._shapes.get(job.job_number, ())).items():
                needed[switch] = needed.get(switch, 0.0) + part * (job.slots_wanted or least)
        for job in self._jobs:
            usage = _usage(off_switch.get(job.job_number, ()))
            wanted = {s: part * (job.slots_wanted or least) for s, part in usage.items()}
            if not usage or any(
                needed.get(switch, 0.0) + slots > self._memory.num_slots
                for switch, slots in wanted.items()
            ):
                continue
            fitting[job.job_number] = off_switch[job.job_number]
            for switch, slots in wanted.items():
                needed[switch] = needed.get(switch, 0.0) + slots
        return fitting

    def _targets(self, shapes: Mapping[JobNumber, Shape]) -> dict[JobNumber, int]:
        """Return the fair share of every job that asked for no number."""
        everyone = self._shapes | self._off_switch | dict(shapes)
        num_slots = self._memory.num_slots
        capacity: dict[str, int] = {}
        demands: list[Demand] = []
        for job in self._jobs:
            usage = _usage(everyone.get(job.job_number, ()))
            for switch, part in usage.items():
                capacity.setdefault(switch, num_slots - num_slots // _HEADROOM)
                if job.slots_wanted:
                    capacity[switch] -= int(part * job.slots_wanted)
            if usage and not job.slots_wanted:
                demands.append(Demand(job.job_number, job.weight, self._default_slots, usage))
        shares = fair_shares(demands, {name: max(n, 0) for name, n in capacity.items()})
        fewest = {number: FEWEST_SLOTS * len(everyone[number]) for number in shares}
        return {number: max(share, fewest[number]) for number, share in shares.items()}

    def _held(self, job: Job) -> int:
        return sum(tree.slot_count for tree in self._shapes.get(job.job_number, ()))

    def _change(self, job: Job) -> int:
        """Return by how many slots a running job should change; 0 to leave it alone."""
        if job.path is PathChoice.HOST:
            return 0
        held = self._held(job)
        if not held:
            shape = self._off_switch.get(job.job_number)
            return self.slots_now(job, shape) if shape else 0
        if self._has_too_many_rows(job):
            return -1
        if job.slots_wanted:
            return 0
        now = self.slots_now(job, self._shapes[job.job_number])
        target = self._shares[job.job_number]
        if held > target:
            is_worth_it = held - target >= target // _LEAST_CHANGE or self._is_needed(job)
            return target - held if now and is_worth_it else 0
        return now - held if now - held > held // _LEAST_CHANGE else 0

    def _has_too_many_rows(self, job: Job) -> bool:
        """Tell whether a job should give slots of its hot rows to the jobs on the same switches."""
        shape = self._shapes[job.job_number]
        room = self.room_for_rows(job, shape)
        excess = {switch: slots - room[switch] for switch, slots in _rows_on(shape).items()}
        if all(slots <= 0 for slots in excess.values()):
            return False
        rows = _rows_on(shape)
        is_much = any(slots > rows[switch] // _LEAST_CHANGE for switch, slots in excess.items())
        return is_much or self._is_needed(job)

    def _is_needed(self, job: Job) -> bool:
        """Tell whether another job may need what this one has too much."""
        return bool(self._off_switch) or any(self._is_short(other, job) for other in self._jobs)

    def _is_short(self, job: Job, other: Job) -> bool:
        """Tell whether a job has too few slots while another on the same switch may have too many.

        Many jobs that hold a little more than their shares may leave one with almost nothing.
        """
        shape = self._shapes.get(job.job_number, ())
        if job.slots_wanted or not _switches(shape) & _switches(self._shapes[other.job_number]):
            return False
        target = self._shares[job.job_number]
        enough = target - target // _LEAST_CHANGE
        return self._held(job) < enough and self.slots_now(job, shape) < enough

    def _moves(self, settled: Sequence[Job]) -> list[Job]:
        """Return a job whose slots should move down, so that waiting jobs find one free range."""
        if not self._off_switch:
            return []
        waiting = set[str]().union(*(_switches(shape) for shape in self._off_switch.values()))
        for job in sorted(settled, key=self._height, reverse=True):
            shape = self._shapes.get(job.job_number, ())
            moved = self._memory.place(shape, self._held(job)) if shape else None
            if moved and waiting & _switches(shape) and _height(moved) < _height(shape):
                return [job]
        return []

    def _height(self, job: Job) -> int:
        return _height(self._shapes.get(job.job_number, ()))


def is_settled(job: Job) -> bool:
    """Return whether a job runs and does not change its view at the moment."""
    return job.state is JobState.RUNNING and len(job.live_views) == 1


def _usage(shape: Shape) -> dict[str, float]:
    """Return the slots of each switch that one slot of the trees takes."""
    usage: dict[str, float] = {}
    for tree in shape:
        for node in tree.nodes:
            usage[node.switch] = usage.get(node.switch, 0.0) + tree.share
    return usage


def _slots_on(shape: Shape) -> dict[str, int]:
    """Return the slots that trees hold on each switch, without those of hot rows."""
    slots: dict[str, int] = {}
    for tree in shape:
        for node in tree.nodes:
            slots[node.switch] = slots.get(node.switch, 0) + tree.slot_count
    return slots


def _rows_on(shape: Shape) -> dict[str, int]:
    """Return the slots of each switch that the hot rows of trees hold."""
    slots: dict[str, int] = {}
    for tree in shape:
        for node in tree.nodes if tree.num_rows else ():
            slots[node.switch] = slots.get(node.switch, 0) + tree.row_slots
    return slots


def _switches(shape: Shape) -> set[str]:
    return {node.switch for tree in shape for node in tree.nodes}


def _height(shape: Shape) -> int:
    """Return the sum of the trees' slot bases; lower slots give less."""
    return sum(node.slot_base for tree in shape for node in tree.nodes)
