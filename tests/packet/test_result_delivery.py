# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Results as they leave: addresses, IPv4 fields, checksums, congestion echo."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from packet_frames import (
    CONGESTION_EXPERIENCED,
    Datagram,
    Job,
    change,
    contribution,
    internet_checksum,
    to_all_workers,
    to_switch,
    to_worker,
)
from packet_target import Target, check_exchange, worker_address_entry
from switchfold.hostlib.slots.wire import Flag, Operation, Outcome

OpenJob = Callable[..., Job]


def sum_of_two(job: Job, flags: int = 0) -> tuple[Datagram, Datagram, Datagram]:
    first, second = contribution(job, 0, 1), contribution(job, 1, 2)
    result = change(
        second,
        3,
        operation=Operation.RESULT,
        flags=flags,
        worker_bitmap=3,
        num_contributors=2,
    )
    return first, second, result


def test_result_delivery_request_fields_do_not_leak(target: Target, job: Job) -> None:
    # The expected frames have TTL 64, identification 0 and DF whatever the requests had.
    first, second, result = sum_of_two(job)
    ip = {"ttl": 3, "identification": 0xBEEF, "tos": 0xB8}
    check_exchange(target, 1, to_switch(job, 0, first, ip=ip), Outcome.ABSORBED)
    expected = to_all_workers(job, result, tos=0xB8)
    check_exchange(target, 2, to_switch(job, 1, second, ip=ip), Outcome.COMPLETED, expected)


def test_result_delivery_checksum_is_computed_for_requests_without(
    target: Target, job: Job
) -> None:
    first, second, result = sum_of_two(job)
    plain = {"checksum": 0}
    check_exchange(target, 1, to_switch(job, 0, first, udp_fields=plain), Outcome.ABSORBED)
    expected = to_all_workers(job, result)
    assert all(frame[40:42] != b"\0\0" for _, frame in expected)
    assert all(internet_checksum(frame[14:34]) == 0 for _, frame in expected)
    frame = to_switch(job, 1, second, udp_fields=plain)
    check_exchange(target, 2, frame, Outcome.COMPLETED, expected)


@pytest.mark.parametrize("marked", [0, 1])
def test_result_delivery_echoes_congestion(target: Target, job: Job, marked: int) -> None:
    first, second, result = sum_of_two(job, Flag.ECN_ECHO)
    tos = [0, 0]
    tos[marked] = CONGESTION_EXPERIENCED
    frame = to_switch(job, 0, first, ip={"tos": tos[0]})
    check_exchange(target, 1, frame, Outcome.ABSORBED)
    # The result is a packet of its own: capable of ECN if the request was, never marked.
    leaving = 2 if tos[1] == CONGESTION_EXPERIENCED else 0
    frame = to_switch(job, 1, second, ip={"tos": tos[1]})
    expected = to_all_workers(job, result, tos=leaving)
    check_exchange(target, 2, frame, Outcome.COMPLETED, expected)
    replay = change(result, worker_id=0, flags=Flag.ECN_ECHO | Flag.REPLAY)
    frame = to_switch(job, 0, first)
    check_exchange(target, 1, frame, Outcome.REPLAYED, [(1, to_worker(job, 0, replay))])


def test_result_delivery_congestion_echo_ends_with_its_round(target: Target, job: Job) -> None:
    first, _, _ = sum_of_two(job)
    marked = to_switch(job, 0, first, ip={"tos": CONGESTION_EXPERIENCED})
    check_exchange(target, 1, marked, Outcome.ABSORBED)
    first, second, result = (change(datagram, round=3) for datagram in sum_of_two(job))
    check_exchange(target, 1, to_switch(job, 0, first), Outcome.ABSORBED)
    expected = to_all_workers(job, result)
    check_exchange(target, 2, to_switch(job, 1, second), Outcome.COMPLETED, expected)


def test_result_delivery_of_replicas_is_counted_per_worker(target: Target, job: Job) -> None:
    first, second, result = sum_of_two(job)
    check_exchange(target, 1, to_switch(job, 0, first), Outcome.ABSORBED)
    expected = to_all_workers(job, result)
    check_exchange(target, 2, to_switch(job, 1, second), Outcome.COMPLETED, expected)
    for worker_id in range(2):
        assert target.direct_counter(worker_address_entry(job, worker_id)) == 1


def test_result_delivery_replica_without_address_is_dropped_and_counted(
    target: Target, open_job: OpenJob
) -> None:
    job = open_job()
    first, second, result = sum_of_two(job)
    target.delete(worker_address_entry(job, 1))
    before = target.counters("undelivered_results")[0]
    check_exchange(target, 1, to_switch(job, 0, first), Outcome.ABSORBED)
    expected = to_all_workers(job, result)[:1]
    check_exchange(target, 2, to_switch(job, 1, second), Outcome.COMPLETED, expected)
    assert target.counters("undelivered_results")[0] == before + 1
    target.insert(worker_address_entry(job, 1))


def test_result_delivery_replica_id_is_the_workers_not_the_ports(
    target: Target, open_job: OpenJob
) -> None:
    job = open_job()
    target.set_multicast_group(job.multicast_group_id, [])
    target.set_multicast_group(job.multicast_group_id, [(4, 1), (4, 2)])
    first, second, result = sum_of_two(job)
    check_exchange(target, 1, to_switch(job, 0, first), Outcome.ABSORBED)
    expected = [(4, frame) for _, frame in to_all_workers(job, result)]
    check_exchange(target, 2, to_switch(job, 1, second), Outcome.COMPLETED, expected)
