# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The bitmap of contributors: every worker counts once, and closed rounds are replayed."""

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
from packet_target import Target, check_exchange
from switchfold.hostlib.slots.wire import Flag, Operation, Outcome

OpenJob = Callable[..., Job]


def result(datagram: Datagram, values: int, bitmap: int, flags: int = 0) -> Datagram:
    return change(
        datagram,
        values,
        operation=Operation.RESULT,
        flags=flags,
        worker_bitmap=bitmap,
        num_contributors=bitmap.bit_count(),
    )


def send(
    target: Target,
    job: Job,
    datagram: Datagram,
    outcome: Outcome,
    expected: list[tuple[int, bytes]],
) -> None:
    worker_id = int(datagram["header"]["worker_id"])
    frame = to_switch(job, worker_id, datagram)
    check_exchange(target, job.port(worker_id), frame, outcome, expected)


def reply(job: Job, datagram: Datagram) -> list[tuple[int, bytes]]:
    worker_id = int(datagram["header"]["worker_id"])
    return [(job.port(worker_id), to_worker(job, worker_id, datagram))]


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 1, 0, 2)])
def test_worker_bitmap_last_contribution_completes(
    target: Target, open_job: OpenJob, order: tuple[int, ...]
) -> None:
    job = open_job(num_workers=4)
    for worker_id in order[:-1]:
        send(target, job, contribution(job, worker_id, 1 << worker_id), Outcome.ABSORBED, [])
    last = contribution(job, order[-1], 1 << order[-1])
    send(target, job, last, Outcome.COMPLETED, to_all_workers(job, result(last, 15, 15)))


def test_worker_bitmap_single_worker_completes_at_once(target: Target, open_job: OpenJob) -> None:
    job = open_job(num_workers=1)
    datagram = contribution(job, 0, -3)
    answer = result(datagram, -3, 1)
    send(target, job, datagram, Outcome.COMPLETED, to_all_workers(job, answer))
    send(target, job, datagram, Outcome.REPLAYED, reply(job, result(datagram, -3, 1, Flag.REPLAY)))


def test_worker_bitmap_duplicate_in_an_open_round(target: Target, job: Job) -> None:
    first, second = contribution(job, 0, 5), contribution(job, 1, 6)
    send(target, job, first, Outcome.ABSORBED, [])
    for _ in range(3):
        send(target, job, first, Outcome.DUPLICATE, [])
    send(target, job, second, Outcome.COMPLETED, to_all_workers(job, result(second, 11, 3)))


def test_worker_bitmap_retransmission_gets_the_result_alone(target: Target, job: Job) -> None:
    first, second = contribution(job, 0, 5), contribution(job, 1, 6)
    send(target, job, first, Outcome.ABSORBED, [])
    send(target, job, second, Outcome.COMPLETED, to_all_workers(job, result(second, 11, 3)))
    for datagram in (first, second, first):
        answer = result(datagram, 11, 3, Flag.REPLAY)
        send(target, job, datagram, Outcome.REPLAYED, reply(job, answer))


def test_worker_bitmap_replay_while_the_other_copy_works(target: Target, job: Job) -> None:
    first, second = contribution(job, 0, 5), contribution(job, 1, 6)
    send(target, job, first, Outcome.ABSORBED, [])
    send(target, job, second, Outcome.COMPLETED, to_all_workers(job, result(second, 11, 3)))
    send(target, job, contribution(job, 1, 100, round=2), Outcome.ABSORBED, [])
    send(target, job, first, Outcome.REPLAYED, reply(job, result(first, 11, 3, Flag.REPLAY)))


def test_worker_bitmap_last_flag_is_echoed(target: Target, job: Job) -> None:
    first, second = contribution(job, 0, 5), contribution(job, 1, 6, flags=0xFFFF & ~Flag.TO_SERVER)
    send(target, job, first, Outcome.ABSORBED, [])
    answer = result(second, 11, 3, Flag.LAST | Flag.OVERFLOW | Flag.ECN_ECHO)
    send(target, job, second, Outcome.COMPLETED, to_all_workers(job, answer))


def test_worker_bitmap_flush_closes_with_who_is_there(target: Target, open_job: OpenJob) -> None:
    job = open_job(num_workers=3, allow_partial=True)
    partial = Flag.PARTIAL | Flag.FLUSHED
    send(target, job, contribution(job, 0, 5), Outcome.ABSORBED, [])
    send(target, job, contribution(job, 2, 7), Outcome.ABSORBED, [])
    flush = contribution(job, 1, 1000, operation=Operation.FLUSH)
    answer = result(flush, 12, 5, partial)
    send(target, job, flush, Outcome.FLUSHED, to_all_workers(job, answer))
    for datagram in (flush, contribution(job, 1, 9), contribution(job, 0, 5)):
        answer = result(datagram, 12, 5, partial | Flag.REPLAY)
        send(target, job, datagram, Outcome.REPLAYED, reply(job, answer))


def test_worker_bitmap_flush_of_a_complete_round_is_a_replay(
    target: Target, open_job: OpenJob
) -> None:
    job = open_job(allow_partial=True)
    first, second = contribution(job, 0, 5), contribution(job, 1, 6)
    send(target, job, first, Outcome.ABSORBED, [])
    send(target, job, second, Outcome.COMPLETED, to_all_workers(job, result(second, 11, 3)))
    flush = contribution(job, 0, operation=Operation.FLUSH)
    send(target, job, flush, Outcome.REPLAYED, reply(job, result(flush, 11, 3, Flag.REPLAY)))


def test_worker_bitmap_flush_of_an_unknown_round_changes_nothing(
    target: Target, open_job: OpenJob
) -> None:
    job = open_job(allow_partial=True)
    flush = contribution(job, 0, operation=Operation.FLUSH, round=3)
    send(target, job, flush, Outcome.FLUSH_IGNORED, [])
    send(target, job, contribution(job, 0, 5), Outcome.ABSORBED, [])
    send(target, job, flush, Outcome.FLUSH_IGNORED, [])
    second = contribution(job, 1, 6)
    send(target, job, second, Outcome.COMPLETED, to_all_workers(job, result(second, 11, 3)))


def test_worker_bitmap_flush_of_an_old_round_is_notified(target: Target, open_job: OpenJob) -> None:
    job = open_job(allow_partial=True)
    send(target, job, contribution(job, 0, 5, round=3), Outcome.ABSORBED, [])
    flush = contribution(job, 1, operation=Operation.FLUSH)
    notice = change(flush, operation=Operation.NOTICE, round=3, worker_bitmap=1, num_contributors=1)
    send(target, job, flush, Outcome.NOTIFIED, reply(job, notice))


def test_worker_bitmap_new_round_forgets_the_flush(target: Target, open_job: OpenJob) -> None:
    job = open_job(allow_partial=True)
    send(target, job, contribution(job, 0, 5), Outcome.ABSORBED, [])
    flush = contribution(job, 0, operation=Operation.FLUSH)
    answer = result(flush, 5, 1, Flag.PARTIAL | Flag.FLUSHED)
    send(target, job, flush, Outcome.FLUSHED, to_all_workers(job, answer))
    send(target, job, contribution(job, 0, 1, round=3), Outcome.ABSORBED, [])
    second = contribution(job, 1, 2, round=3)
    send(target, job, second, Outcome.COMPLETED, to_all_workers(job, result(second, 3, 3)))


def test_worker_bitmap_result_echoes_the_exponent(target: Target, open_job: OpenJob) -> None:
    job = open_job(num_workers=3)
    for round_, exponents in ((1, (130, 200, 7)), (3, (255, 0, 1)), (5, (0, 0, 9))):
        for worker_id, exponent in enumerate(exponents):
            datagram = contribution(job, worker_id, 1, round=round_, exponent=exponent)
            expected: list[tuple[int, bytes]] = []
            outcome = Outcome.ABSORBED
            if worker_id == 2:
                answer = result(datagram, 3, 7)
                assert answer["header"]["exponent"] == exponent
                outcome, expected = Outcome.COMPLETED, to_all_workers(job, answer)
            send(target, job, datagram, outcome, expected)
