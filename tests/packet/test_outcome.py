# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Every frame is counted once by port and once by outcome."""

from __future__ import annotations

from packet_frames import Job, contribution, ethernet, to_switch
from packet_target import Target, outcome_entry
from switchfold.hostlib.slots.wire import Operation, Outcome


def test_outcome_is_counted_per_job(target: Target, job: Job) -> None:
    frames = [
        (1, to_switch(job, 0, contribution(job, 0)), Outcome.ABSORBED),
        (1, to_switch(job, 0, contribution(job, 0)), Outcome.DUPLICATE),
        (2, to_switch(job, 1, contribution(job, 1, version=7)), Outcome.BAD_VERSION),
        (2, to_switch(job, 1, contribution(job, 1)), Outcome.COMPLETED),
        (1, to_switch(job, 0, contribution(job, 0, operation=6)), Outcome.FOREIGN_RESULT),
        (1, to_switch(job, 0, contribution(job, 0)), Outcome.REPLAYED),
        (3, to_switch(job, 0, contribution(job, 0)), Outcome.FOREIGN_WORKER),
    ]
    for port, frame, _ in frames:
        target.exchange(port, frame)
    counted = {
        outcome: target.direct_counter(outcome_entry(job, outcome))
        for outcome in Outcome
        if outcome is not Outcome.NONE
    }
    expected = dict.fromkeys(counted, 0) | {outcome: 1 for _, _, outcome in frames}
    assert counted == expected


def test_outcome_of_a_foreign_job_is_counted_for_the_switch(target: Target, job: Job) -> None:
    before = target.counters("outcomes")[Outcome.FOREIGN_JOB]
    target.exchange(1, to_switch(job, 0, contribution(job, 0, job_id=0xFFFE)))
    assert target.counters("outcomes")[Outcome.FOREIGN_JOB] == before + 1


def test_outcome_counters_account_for_every_frame(target: Target, job: Job) -> None:
    counters = ("port_in", "outcomes", "ordinary_outcomes", "port_out")
    before = {name: target.counters(name) for name in counters}
    target.exchange(1, to_switch(job, 0, contribution(job, 0)))
    target.exchange(2, to_switch(job, 1, contribution(job, 1)))
    target.exchange(1, to_switch(job, 0, contribution(job, 0)))
    target.exchange(1, to_switch(job, 0, b"short"))
    target.exchange(2, to_switch(job, 1, contribution(job, 1, operation=Operation.PROBE)))
    target.exchange(4, ethernet(1, 2, 0x0806) + bytes(46))
    after = {name: target.counters(name) for name in counters}
    change = {
        name: {
            index: new - old
            for index, (old, new) in enumerate(zip(before[name], after[name], strict=True))
            if new != old
        }
        for name in counters
    }
    assert change["port_in"] == {1: 3, 2: 2, 4: 1}
    assert change["port_out"] == {1: 2, 2: 2, 255: 1}
    assert change["outcomes"] == {
        Outcome.ABSORBED: 1,
        Outcome.COMPLETED: 1,
        Outcome.REPLAYED: 1,
        Outcome.BAD_LENGTH: 1,
        Outcome.NOTIFIED: 1,
    }
    assert sum(change["port_in"].values()) == sum(change["outcomes"].values()) + sum(
        change["ordinary_outcomes"].values()
    )
    assert change["ordinary_outcomes"] == {4: 1}


def test_softswitch_says_by_grpc_what_the_tests_read_in_its_process(
    target: Target, job: Job
) -> None:
    target.exchange(1, to_switch(job, 0, contribution(job, 0)))
    by_grpc = getattr(target, "counters_by_grpc", target.counters)
    assert any(target.counters("outcomes"))
    for name in ("port_in", "outcomes", "port_out"):
        assert by_grpc(name) == target.counters(name)
