# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Packets for the other workers: sent on unchanged, only from the named sender, without slots."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from packet_frames import (
    CONGESTION_EXPERIENCED,
    Datagram,
    Job,
    change,
    contribution,
    to_all_workers,
    to_switch,
)
from packet_target import Target, check_exchange, worker_address_entry
from packet_tree import Child, Node, Parent, switch, worker
from switchfold.hostlib.slots.wire import Flag, Operation, Outcome

OpenJob = Callable[..., Job]
OpenNode = Callable[..., Node]
KEPT_FLAGS = Flag.LAST | Flag.REPORT
SLOTS = 4


def for_others(job: Job, worker_id: int, **fields: int) -> Datagram:
    """Return a packet with a value in every field and lane."""
    values = np.random.default_rng(worker_id).integers(-(2**31), 2**31, job.values_per_packet)
    defaults = {
        "operation": Operation.MULTICAST,
        "flags": KEPT_FLAGS,
        "priority": 3,
        "slot_index": 0xFEDC_BA98,
        "round": 0x7654_3210,
        "tensor_id": 17,
        "exponent": 200,
        "expected": 9,
    }
    return contribution(job, worker_id, values, **(defaults | fields))


def copies(job: Job, worker_id: int, datagram: Datagram, tos: int = 0) -> list[tuple[int, bytes]]:
    """Return the frames that leave: the same packet for all workers except the sender."""
    frames = to_all_workers(job, datagram, tos=tos)
    del frames[worker_id]
    return frames


def test_multicast_is_copied_to_all_others(target: Target, open_job: OpenJob) -> None:
    job = open_job(num_workers=4)
    undelivered = target.counters("undelivered_results")
    before = target.counters("port_out")
    for worker_id in range(4):
        datagram = for_others(job, worker_id)
        frame = to_switch(job, worker_id, datagram)
        expected = copies(job, worker_id, datagram)
        check_exchange(target, worker_id + 1, frame, Outcome.MULTICAST, expected)
    after = target.counters("port_out")
    assert [after[port] - before[port] for port in (1, 2, 3, 4)] == [3, 3, 3, 3]
    assert target.counters("undelivered_results") == undelivered
    assert [target.direct_counter(worker_address_entry(job, w)) for w in range(4)] == [3] * 4


def test_multicast_of_the_only_worker_goes_nowhere(target: Target, open_job: OpenJob) -> None:
    job = open_job(num_workers=1)
    check_exchange(target, 1, to_switch(job, 0, for_others(job, 0)), Outcome.MULTICAST)


def test_multicast_keeps_its_own_flags_alone(target: Target, job: Job) -> None:
    datagram = for_others(job, 0, flags=0xFFFF)
    expected = copies(job, 0, change(datagram, flags=KEPT_FLAGS))
    check_exchange(target, 1, to_switch(job, 0, datagram), Outcome.MULTICAST, expected)


def test_multicast_tells_congestion(target: Target, job: Job) -> None:
    datagram = for_others(job, 1)
    frame = to_switch(job, 1, datagram, ip={"tos": CONGESTION_EXPERIENCED})
    expected = copies(job, 1, change(datagram, flags=KEPT_FLAGS | Flag.ECN_ECHO), tos=2)
    check_exchange(target, 2, frame, Outcome.MULTICAST, expected)


def test_multicast_touches_no_slot(target: Target, job: Job) -> None:
    check_exchange(target, 1, to_switch(job, 0, contribution(job, 0, 5)), Outcome.ABSORBED)
    for slot in range(SLOTS):
        for round_ in (1, 2, 3, 9):
            datagram = for_others(job, 1, slot_index=slot, round=round_)
            expected = copies(job, 1, datagram)
            check_exchange(target, 2, to_switch(job, 1, datagram), Outcome.MULTICAST, expected)
    last = contribution(job, 1, 6)
    result = change(last, 11, operation=Operation.RESULT, worker_bitmap=3, num_contributors=2)
    expected = to_all_workers(job, result)
    check_exchange(target, 2, to_switch(job, 1, last), Outcome.COMPLETED, expected)


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ({"job_id": 0xFFFE}, Outcome.FOREIGN_JOB),
        ({"worker_id": 1}, Outcome.FOREIGN_WORKER),
        ({"generation": 0}, Outcome.BAD_GENERATION),
        ({"worker_bitmap": 2}, Outcome.BAD_CONTRIBUTION),
        ({"worker_bitmap": 0}, Outcome.BAD_CONTRIBUTION),
        ({"num_contributors": 0}, Outcome.BAD_CONTRIBUTION),
        ({"num_contributors": 2}, Outcome.BAD_CONTRIBUTION),
        ({"range_end": 0}, Outcome.BAD_RANGE),
        ({"chunk_index": 1}, Outcome.OFF_GRID),
        ({"version": 1}, Outcome.BAD_VERSION),
    ],
)
def test_multicast_of_others_is_refused(
    target: Target, job: Job, fields: dict[str, int], outcome: Outcome
) -> None:
    frame = to_switch(job, 0, change(for_others(job, 0), **fields))
    check_exchange(target, 1, frame, outcome)


def test_multicast_from_elsewhere_is_refused(target: Target, open_job: OpenJob) -> None:
    job, other = open_job(), open_job()
    mine = for_others(job, 0)
    check_exchange(target, 2, to_switch(job, 0, mine), Outcome.FOREIGN_WORKER)
    check_exchange(target, 1, to_switch(job, 1, mine), Outcome.FOREIGN_WORKER)
    crossed = change(mine, job_id=other.job_id)
    check_exchange(target, 1, to_switch(job, 0, crossed), Outcome.BAD_GENERATION)


def test_multicast_in_a_tree_of_switches_is_refused(target: Target, open_node: OpenNode) -> None:
    workers = tuple(
        Child(child_id=w, port=w + 1, station=worker(w), contributor_mask=1 << w) for w in range(2)
    )
    parent = Parent(port=4, station=switch(9), child_id=3)
    leaf = open_node(station=switch(1), children=workers, parent=parent)
    below = Child(child_id=2, port=3, station=switch(2), contributor_mask=0xC, max_contributors=2)
    root = open_node(station=switch(1), children=(*workers, below), level=1)
    for node, senders in ((leaf, (0, 1)), (root, (0, 1, 2))):
        for child_id in senders:
            packet = node.packet(child_id, 7, operation=Operation.MULTICAST)
            check_exchange(target, *node.from_child(child_id, packet), Outcome.MULTICAST_REFUSED)
    from_above = leaf.packet(0, 7, operation=Operation.MULTICAST)
    frame = leaf.from_parent(from_above)
    check_exchange(target, parent.port, frame, Outcome.FOREIGN_WORKER)
