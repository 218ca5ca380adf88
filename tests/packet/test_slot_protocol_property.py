# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The compiled program does what the plain Python reference does, over random schedules."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from packet_frames import Job, describe, to_all_workers, to_switch, to_worker
from packet_target import Entry, Target, job_entries
from reference_job import (
    ReferenceJob,
    worker_children,
)
from slot_reference import (
    Destination,
    ReferenceSwitch,
    Reply,
)
from slot_schedule import Schedule
from switchfold.hostlib.slots.wire import Flag, Operation, Outcome

NUM_SCHEDULES = int(os.environ.get("SWITCHFOLD_SCHEDULES", "300"))
"""After a change of the protocol, run more: SWITCHFOLD_SCHEDULES=10000."""
NUM_SCHEDULES_SLOW_TARGET = 100
STEPS = 24
FIRST_ROUNDS = (1, 1, 0xFFFF_FFFE, 0x7FFF_FFFE)
SEED = 20261121
BELOW_A_ROOT = (
    Outcome.SENT_UP,
    Outcome.RESENT,
    Outcome.RESULT_STORED,
    Outcome.RESULT_IGNORED,
    Outcome.RELAYED,
    Outcome.MULTICAST_REFUSED,
)
"""Outcomes that cannot occur here, because the switch is the root of all jobs."""
OF_HOT_ROWS = (Outcome.VALUES_READ, Outcome.VALUES_WRITTEN, Outcome.VALUES_KEPT)
"""Outcomes that cannot occur here, because all rows are cold."""


def _reference_job(job: Job) -> ReferenceJob:
    return ReferenceJob(
        job_id=job.job_id,
        generation=job.generation,
        slot_base=job.slot_base,
        slot_count=job.slot_count,
        num_workers=job.num_workers,
        quorum=job.num_workers,
        allow_partial=job.allow_partial,
        children=worker_children(
            {
                worker_id: (job.port(worker_id), job.address(worker_id))
                for worker_id in range(job.num_workers)
            }
        ),
    )


class _Twins:
    """A target and the reference, given the same jobs and packets."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.reference = ReferenceSwitch(target.values_per_packet)
        self.jobs: dict[tuple[int, bool], Job] = {}
        for job_id, (num_workers, allow_partial) in enumerate(
            ((2, False), (3, False), (4, False), (3, True), (1, False)), start=1
        ):
            job = Job(
                job_id=job_id,
                generation=1,
                values_per_packet=target.values_per_packet,
                num_workers=num_workers,
                slot_count=4,
                allow_partial=allow_partial,
            )
            self.jobs[num_workers, allow_partial] = job
            target.insert(*job_entries(job))
            group = [(job.port(w), w + 1) for w in range(num_workers)]
            target.set_multicast_group(job.multicast_group_id, group)
            self.reference.jobs[job_id] = _reference_job(job)

    def renew(self, job: Job, generation: int) -> Job:
        """Give a job its next generation; all jobs share slots, which hold old state."""
        renewed = replace(job, generation=generation)
        old, new = job_entries(job)[0], job_entries(renewed)[0]
        self.target.delete(Entry(table=old.table, match=old.match, action=old.action))
        self.target.insert(new)
        self.reference.jobs[job.job_id] = _reference_job(renewed)
        self.jobs[job.num_workers, job.allow_partial] = renewed
        return renewed

    def deliver(self, job: Job, worker_id: int, datagram: NDArray[np.void]) -> Reply | None:
        """Send a datagram into both; fail if the frames that leave differ."""
        port, address = worker_id + 1, job.address(worker_id)
        outcome, reply = self.reference.receive(port, address, datagram)
        expected: list[tuple[int, bytes]] = []
        if reply is not None and reply.to is Destination.CHILDREN:
            expected = to_all_workers(job, reply.datagram)
        elif reply is not None and reply.to is Destination.OTHERS:
            expected = to_all_workers(job, reply.datagram)
            del expected[worker_id]
        elif reply is not None:
            expected = [(port, to_worker(job, worker_id, reply.datagram))]
        received = self.target.exchange(port, to_switch(job, worker_id, datagram))
        assert sorted(received) == sorted(expected), "\n".join(
            [f"generation {job.generation}: reference says {outcome!r}"]
            + [f"  sent to port {port}: {datagram['header']}"]
            + [f"  expected {where}: {describe(frame)}" for where, frame in expected]
            + [f"  received {where}: {describe(frame)}" for where, frame in received]
        )
        return reply


def _check_exact(schedule: Schedule, reply: Reply) -> None:
    """Add the contributions of the named workers, independently of the reference."""
    header = reply.datagram["header"]
    bitmap, slot = int(header["worker_bitmap"]), int(header["slot_index"])
    step = (int(header["round"]) - schedule.first_round) & 0xFFFFFFFF
    workers = [w for w in range(schedule.job.num_workers) if bitmap >> w & 1]
    assert len(workers) == header["num_contributors"]
    contributions = [schedule.contribution_of(w, slot, step) for w in workers]
    values = np.array([datagram["values"] for datagram in contributions], np.int64)
    if contributions[0]["header"]["operation"] == Operation.AGGREGATE_MAX:
        exact = values.max(axis=0)
    else:
        exact = values.sum(axis=0)
    if not int(header["flags"]) & Flag.OVERFLOW:
        np.testing.assert_array_equal(reply.datagram["values"], exact)


def test_random_schedules_match_reference(target: Target) -> None:
    twins = _Twins(target)
    generator = np.random.default_rng(SEED)
    choices = list(twins.jobs)
    num_schedules = NUM_SCHEDULES if target.is_fast else NUM_SCHEDULES_SLOW_TARGET
    before = target.counters("outcomes")
    num_results = 0
    for number in range(num_schedules):
        job = twins.jobs[choices[generator.integers(len(choices))]]
        job = twins.renew(job, generation=number + 2)
        schedule = Schedule(
            job=job,
            generator=generator,
            first_round=FIRST_ROUNDS[generator.integers(len(FIRST_ROUNDS))],
            is_lawful=bool(generator.integers(2)),
        )
        for worker_id, datagram in schedule.steps(STEPS):
            reply = twins.deliver(job, worker_id, datagram)
            if reply is None or reply.datagram["header"]["operation"] != Operation.RESULT:
                continue
            num_results += 1
            header = reply.datagram["header"]
            schedule.learn(int(header["slot_index"]), int(header["round"]))
            if schedule.is_lawful:
                _check_exact(schedule, reply)
    after = target.counters("outcomes")
    counted = {outcome: after[outcome] - before[outcome] for outcome in Outcome}
    assert counted == twins.reference.outcomes
    assert num_results > num_schedules
    idle = {outcome for outcome in Outcome if not counted[outcome]}
    damaged = {Outcome.NONE, Outcome.BAD_LENGTH, Outcome.BAD_CHECKSUM}
    assert idle <= {*damaged, *BELOW_A_ROOT, *OF_HOT_ROWS}, idle
