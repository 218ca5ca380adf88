# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Order in time, in 32-bit serial arithmetic: newer packets take over, older ones are stale."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from packet_frames import (
    Datagram,
    Job,
    change,
    contribution,
    to_all_workers,
    to_switch,
    to_worker,
)
from packet_target import Target, check_exchange, job_entries
from switchfold.hostlib.slots.wire import Operation, Outcome

OpenJob = Callable[..., Job]


def result(datagram: Datagram, values: int, **fields: int) -> Datagram:
    defaults = {"operation": Operation.RESULT, "worker_bitmap": 3, "num_contributors": 2}
    return change(datagram, values, **(defaults | fields))


def test_slot_epoch_newer_round_takes_the_copy_over(target: Target, job: Job) -> None:
    check_exchange(target, 1, to_switch(job, 0, contribution(job, 0, 100)), Outcome.ABSORBED)
    for worker_id, outcome in ((0, Outcome.ABSORBED), (1, Outcome.COMPLETED)):
        datagram = contribution(job, worker_id, 7, round=3)
        expected = [] if worker_id == 0 else to_all_workers(job, result(datagram, 14))
        frame = to_switch(job, worker_id, datagram)
        check_exchange(target, job.port(worker_id), frame, outcome, expected)


def test_slot_epoch_copies_by_parity_are_apart(target: Target, job: Job) -> None:
    for round_ in (1, 2):
        datagram = contribution(job, 0, 10 * round_, round=round_)
        check_exchange(target, 1, to_switch(job, 0, datagram), Outcome.ABSORBED)
    for round_ in (1, 2):
        datagram = contribution(job, 1, 1, round=round_)
        expected = to_all_workers(job, result(datagram, 10 * round_ + 1))
        check_exchange(target, 2, to_switch(job, 1, datagram), Outcome.COMPLETED, expected)


@pytest.mark.parametrize("behind", [2, 4, 1 << 20, (1 << 31) - 2, 1 << 31])
def test_slot_epoch_older_round_is_stale(target: Target, job: Job, behind: int) -> None:
    now = 5
    frame = to_switch(job, 0, contribution(job, 0, round=now))
    check_exchange(target, 1, frame, Outcome.ABSORBED)
    late = to_switch(job, 1, contribution(job, 1, round=(now - behind) % (1 << 32)))
    check_exchange(target, 2, late, Outcome.STALE)


def test_slot_epoch_round_wraps_around(target: Target, job: Job) -> None:
    for round_ in (0xFFFF_FFFD, 0xFFFF_FFFF, 1):
        frame = to_switch(job, 0, contribution(job, 0, round=round_))
        expected = Outcome.ABSORBED
        check_exchange(target, 1, frame, expected)
    late = to_switch(job, 1, contribution(job, 1, round=0xFFFF_FFFF))
    check_exchange(target, 2, late, Outcome.STALE)


def test_slot_epoch_newer_generation_takes_over_whatever_the_round(
    target: Target, open_job: OpenJob
) -> None:
    old = open_job()
    check_exchange(target, 1, to_switch(old, 0, contribution(old, 0, round=77)), Outcome.ABSORBED)
    new = open_job()
    datagram = contribution(new, 0, round=1)
    check_exchange(target, 1, to_switch(new, 0, datagram), Outcome.ABSORBED)
    check_exchange(target, 1, to_switch(new, 0, datagram), Outcome.DUPLICATE)


@pytest.mark.parametrize("allow_partial", [False, True])
def test_slot_epoch_older_generation_is_stale(
    target: Target, open_job: OpenJob, allow_partial: bool
) -> None:
    old = open_job(allow_partial=allow_partial)
    new = open_job()
    check_exchange(target, 1, to_switch(new, 0, contribution(new, 0)), Outcome.ABSORBED)
    late = to_switch(old, 1, contribution(old, 1, round=99))
    check_exchange(target, 2, late, Outcome.STALE)


@pytest.mark.parametrize(
    "fields",
    [
        {"tensor_id": 1},
        {"range_end": 1},
        {"operation": Operation.AGGREGATE_MAX},
        {"chunk_index": 1, "range_start": -1, "range_end": -1},
    ],
)
def test_slot_epoch_other_chunk_in_the_same_round(
    target: Target, job: Job, fields: dict[str, int]
) -> None:
    check_exchange(target, 1, to_switch(job, 0, contribution(job, 0)), Outcome.ABSORBED)
    if fields.get("range_start") == -1:
        start = job.values_per_packet
        fields = {"chunk_index": 1, "range_start": start, "range_end": 2 * start}
    other = to_switch(job, 1, contribution(job, 1, **fields))
    check_exchange(target, 2, other, Outcome.MISMATCH)


def test_slot_epoch_stale_contribution_learns_the_round_where_rounds_may_be_partial(
    target: Target, open_job: OpenJob
) -> None:
    job = open_job(allow_partial=True)
    frame = to_switch(job, 0, contribution(job, 0, round=5))
    check_exchange(target, 1, frame, Outcome.ABSORBED)
    late = contribution(job, 1, 9, round=3)
    notice = change(late, operation=Operation.NOTICE, round=5, worker_bitmap=1, num_contributors=1)
    check_exchange(
        target, 2, to_switch(job, 1, late), Outcome.NOTIFIED, [(2, to_worker(job, 1, notice))]
    )


def test_slot_epoch_probe_tells_the_copys_state(target: Target, job: Job) -> None:
    check_exchange(target, 1, to_switch(job, 0, contribution(job, 0, round=5)), Outcome.ABSORBED)
    probe = contribution(job, 1, operation=Operation.PROBE, round=1, tensor_id=9)
    notice = change(probe, operation=Operation.NOTICE, round=5, worker_bitmap=1, num_contributors=1)
    for _ in range(2):
        check_exchange(
            target, 2, to_switch(job, 1, probe), Outcome.NOTIFIED, [(2, to_worker(job, 1, notice))]
        )
    check_exchange(target, 1, to_switch(job, 0, contribution(job, 0, round=5)), Outcome.DUPLICATE)


def test_slot_epoch_probe_of_another_generations_copy_sees_nothing(
    target: Target, open_job: OpenJob
) -> None:
    old = open_job()
    check_exchange(target, 1, to_switch(old, 0, contribution(old, 0, round=5)), Outcome.ABSORBED)
    new = open_job()
    probe = contribution(new, 1, operation=Operation.PROBE)
    notice = change(probe, operation=Operation.NOTICE, round=0, worker_bitmap=0, num_contributors=0)
    check_exchange(
        target, 2, to_switch(new, 1, probe), Outcome.NOTIFIED, [(2, to_worker(new, 1, notice))]
    )


def test_slot_epoch_generation_of_a_readmitted_job(target: Target, open_job: OpenJob) -> None:
    job = open_job()
    check_exchange(target, 1, to_switch(job, 0, contribution(job, 0)), Outcome.ABSORBED)
    entry = job_entries(job)[0]
    target.delete(entry)
    check_exchange(target, 1, to_switch(job, 0, contribution(job, 0)), Outcome.FOREIGN_JOB)
    target.insert(entry)
    check_exchange(target, 1, to_switch(job, 0, contribution(job, 0)), Outcome.DUPLICATE)
