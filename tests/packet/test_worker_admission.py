# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Isolation: job, worker, port, address, generation and slot must belong together."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from packet_frames import Job, change, contribution, to_switch
from packet_target import Target, check_exchange
from switchfold.hostlib.slots.wire import NUM_SLOTS, Operation, Outcome


def test_worker_admission_foreign_job(target: Target, job: Job) -> None:
    datagram = contribution(job, 0, job_id=0xFFFE)
    check_exchange(target, 1, to_switch(job, 0, datagram), Outcome.FOREIGN_JOB)


@pytest.mark.parametrize("worker_id", [1, 2, 32, 255])
def test_worker_admission_other_worker_id(target: Target, job: Job, worker_id: int) -> None:
    datagram = change(contribution(job, 0), worker_id=worker_id)
    check_exchange(target, 1, to_switch(job, 0, datagram), Outcome.FOREIGN_WORKER)


def test_worker_admission_other_port(target: Target, job: Job) -> None:
    frame = to_switch(job, 0, contribution(job, 0))
    check_exchange(target, 2, frame, Outcome.FOREIGN_WORKER)


def test_worker_admission_other_source_address(target: Target, job: Job) -> None:
    frame = to_switch(job, 1, contribution(job, 0))
    check_exchange(target, 1, frame, Outcome.FOREIGN_WORKER)


def test_worker_admission_any_udp_port_of_the_host(target: Target, job: Job) -> None:
    """A switch knows hosts, not processes: every process of a worker's host can send for it."""
    frame = bytearray(to_switch(job, 0, contribution(job, 0), udp_fields={"checksum": 0}))
    frame[34:36] = (job.udp_port(0) ^ 1).to_bytes(2, "big")
    check_exchange(target, 1, bytes(frame), Outcome.ABSORBED)


@pytest.mark.parametrize("ahead", [-1, 1, 1 << 31])
def test_worker_admission_other_generation(target: Target, job: Job, ahead: int) -> None:
    datagram = contribution(job, 0, generation=(job.generation + ahead) % (1 << 32))
    check_exchange(target, 1, to_switch(job, 0, datagram), Outcome.BAD_GENERATION)


@pytest.mark.parametrize("slot_index", [4, 5, 0x7FFF_FFFF, 0xFFFF_FFFC])
def test_worker_admission_slot_outside_the_job(target: Target, job: Job, slot_index: int) -> None:
    datagram = contribution(job, 0, slot_index=slot_index)
    check_exchange(target, 1, to_switch(job, 0, datagram), Outcome.BAD_SLOT)


def test_worker_admission_slot_outside_the_switch(
    target: Target, open_job: Callable[..., Job]
) -> None:
    job = open_job(slot_base=NUM_SLOTS - 1, slot_count=2)
    last, beyond = contribution(job, 0), contribution(job, 0, slot_index=1)
    check_exchange(target, 1, to_switch(job, 0, last), Outcome.ABSORBED)
    check_exchange(target, 1, to_switch(job, 0, beyond), Outcome.BAD_SLOT)


@pytest.mark.parametrize(
    "fields",
    [
        {"worker_bitmap": 0},
        {"worker_bitmap": 2},
        {"worker_bitmap": 3},
        {"num_contributors": 0},
        {"num_contributors": 2},
    ],
)
@pytest.mark.parametrize("operation", [Operation.AGGREGATE_ADD, Operation.AGGREGATE_MAX])
def test_worker_admission_contribution_of_others(
    target: Target, job: Job, operation: int, fields: dict[str, int]
) -> None:
    datagram = change(contribution(job, 0, operation=operation), **fields)
    check_exchange(target, 1, to_switch(job, 0, datagram), Outcome.BAD_CONTRIBUTION)


def test_worker_admission_flush_where_rounds_need_everybody(target: Target, job: Job) -> None:
    check_exchange(target, 1, to_switch(job, 0, contribution(job, 0)), Outcome.ABSORBED)
    flush = contribution(job, 0, operation=Operation.FLUSH)
    check_exchange(target, 1, to_switch(job, 0, flush), Outcome.BAD_OPERATION)


def test_worker_admission_jobs_do_not_touch_each_other(
    target: Target, open_job: Callable[..., Job]
) -> None:
    left, right = open_job(slot_base=16), open_job(slot_base=20)
    for job in (left, right):
        check_exchange(target, 1, to_switch(job, 0, contribution(job, 0)), Outcome.ABSORBED)
    for job in (left, right):
        again = to_switch(job, 0, contribution(job, 0))
        check_exchange(target, 1, again, Outcome.DUPLICATE)


def test_worker_admission_causes_in_order(target: Target, job: Job) -> None:
    fields = {
        "num_contributors": 0,
        "slot_index": 99,
        "generation": 1,
        "worker_id": 9,
        "job_id": 0xFFFE,
        "chunk_index": 1,
        "range_end": 0,
        "operation": 99,
        "version": 99,
    }
    causes = [
        Outcome.BAD_CONTRIBUTION,
        Outcome.BAD_SLOT,
        Outcome.BAD_GENERATION,
        Outcome.FOREIGN_WORKER,
        Outcome.FOREIGN_JOB,
        Outcome.OFF_GRID,
        Outcome.BAD_RANGE,
        Outcome.BAD_OPERATION,
        Outcome.BAD_VERSION,
    ]
    so_far: dict[str, int] = {}
    for (name, value), cause in zip(fields.items(), causes, strict=True):
        so_far[name] = value
        frame = to_switch(job, 0, change(contribution(job, 0), **so_far))
        check_exchange(target, 1, frame, cause)
