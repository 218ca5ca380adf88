# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Where nearly all chunks are sent again: what is learned of RTTs then, and how probes follow."""

from __future__ import annotations

import pytest

from native_recovery import Answer, Recovery
from switchfold.hostlib.native.library import library
from switchfold.hostlib.native.structures import RttStruct

RTT_S = 0.002
ROWS = 16
FEW = 4
"""Most chunks without result whose probes need no longer and longer pauses."""
LENIENT_PROBES = 6


def recovery(rtt_s: float = RTT_S) -> Recovery:
    """Return the recovery of sixteen slots, with an RTT."""
    rtt: RttStruct = library.rtt_new(0.1, 0.02, 1.0)
    for _ in range(50):
        library.rtt_add_sample(rtt, rtt_s)
    return Recovery([0] * ROWS, rtt)


def take(
    sending: Recovery, now_s: float, taken_s: float, *, is_again: bool, answer: Answer = Answer.ALL
) -> None:
    """Have a chunk leave, and its result come `taken_s` later."""
    sending.start([0], now_s)
    if is_again:
        sending.start_again([0], now_s + taken_s / 4)
    sending.finish([0], now_s + taken_s, answer)


def repeat(sending: Recovery, count: int, taken_s: float, begin_s: float = 1.0) -> None:
    for i in range(count):
        take(sending, begin_s + i, taken_s, is_again=True)


def test_fastest_result_bounds_round_trips_where_nearly_all_are_sent_again() -> None:
    sending = recovery(50 * RTT_S)
    repeat(sending, 200, 4 * RTT_S)
    assert sending.probe_after_s == pytest.approx(1.5 * 4 * RTT_S)


def test_answer_to_a_repetition_bounds_them_by_the_time_since() -> None:
    sending = recovery(50 * RTT_S)
    repeat(sending, 100, 100 * RTT_S)
    for second in range(200, 232):
        sending.start([0], second)
        sending.start_again([0], second + 40 * RTT_S)
        sending.start_again([0], second + 41 * RTT_S)
        sending.finish([0], second + 44 * RTT_S, Answer.AGAIN)
    assert sending.probe_after_s == pytest.approx(1.5 * 4 * RTT_S)


def test_results_of_repetitions_bound_nothing_where_half_are_sent_again() -> None:
    sending = recovery(50 * RTT_S)
    before_s = sending.probe_after_s
    for second in range(1, 201):
        is_again = second % 2 == 0
        take(sending, second, 4 * RTT_S if is_again else 50 * RTT_S, is_again=is_again)
    assert sending.probe_after_s == pytest.approx(before_s)


def test_what_seems_longer_is_the_repair_of_others() -> None:
    sending = recovery(4 * RTT_S)
    repeat(sending, 100, 4 * RTT_S)
    before_s = sending.probe_after_s
    take(sending, 200, 50 * RTT_S, is_again=False)
    assert sending.probe_after_s == before_s
    take(sending, 201, 2 * RTT_S, is_again=False)
    assert sending.probe_after_s < before_s


def pauses(sending: Recovery, count: int) -> list[int]:
    """Return the pauses behind so many probes that nothing answers, as multiples of the first."""
    sending.resume(0.0)
    now_s = sending.probe_after_s
    rows = sending.silent(now_s)
    found: list[int] = []
    for _ in range(count):
        sending.start_again(rows, now_s, is_probe=True)
        for multiple in (1, 2, 4, 8, 16):
            after_s = now_s + 1.001 * multiple * sending.probe_after_s
            if rows := sending.silent(after_s):
                found.append(multiple)
                now_s = after_s
                break
    return found


def test_first_probes_for_a_few_chunks_follow_after_the_same_time() -> None:
    sending = recovery()
    sending.start(range(FEW), 0.0)
    assert pauses(sending, LENIENT_PROBES + 2) == [1] * LENIENT_PROBES + [2, 4]


def test_first_probes_follow_after_the_same_time_where_most_chunks_were_sent_again() -> None:
    sending = recovery()
    sending.start(range(ROWS), 0.0)
    sending.start_again(range(ROWS // 2 + 1), 0.0, is_probe=True)
    assert pauses(sending, 2) == [1, 1]


def test_probes_for_many_chunks_follow_after_twice_the_time() -> None:
    """A worker may be late, and all would repeat in vain."""
    sending = recovery()
    sending.start(range(ROWS), 0.0)
    assert pauses(sending, 3) == [2, 4, 8]
