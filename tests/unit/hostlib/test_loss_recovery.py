# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The rule: what later results, silence and timers show to be lost."""

from __future__ import annotations

import math

import pytest

from native_recovery import Answer, Recovery
from switchfold.hostlib.native.library import library
from switchfold.hostlib.native.structures import RttStruct

LATER_RESULTS = 3
STORM_LIMIT = 8
TIMEOUT_S = 0.02
"""Least margin of the timeout over the round trip."""
RTT_S = 0.002
ROWS = 16
AMBIGUOUS_RESULTS = 16
"""Results of repeated chunks in a row from which on these tell a round trip, too."""


class Sending:
    """Sixteen rows, all sent at time 0 after an RTT was measured."""

    def __init__(self, num_trees: int = 1, withheld: list[int] | None = None) -> None:
        rtt: RttStruct = library.rtt_new(0.1, TIMEOUT_S, 1.0)
        for _ in range(50):
            library.rtt_add_sample(rtt, RTT_S)
        self.recovery = Recovery([row % num_trees for row in range(ROWS)], rtt)
        self.recovery.resume(0.0)
        self.recovery.start(range(ROWS), 0.0, withheld or [])

    def finish(self, rows: list[int], now_s: float = RTT_S, answer: Answer = Answer.ALL) -> None:
        self.recovery.finish(rows, now_s, answer)

    def lost(self, now_s: float = RTT_S) -> list[int]:
        return self.recovery.lost(now_s)

    def send_again(self, rows: list[int], now_s: float, *, is_probe: bool = False) -> None:
        self.recovery.start_again(rows, now_s, is_probe=is_probe)


def test_three_later_results_show_a_loss_and_two_do_not() -> None:
    sending = Sending()
    sending.finish([0, 3, 4])
    assert sending.lost() == []
    sending.finish([6])
    assert sending.lost() == [1, 2]  # 5 has one later result
    sending.finish([8, 9])
    assert sending.lost() == [1, 2, 5]


def test_results_in_order_show_no_loss() -> None:
    sending = Sending()
    for first in range(0, 12, 4):
        sending.finish(list(range(first, first + 4)))
        assert sending.lost() == []


def test_results_of_another_tree_do_not_count() -> None:
    sending = Sending(num_trees=2)
    sending.finish([1, 3, 5, 7, 9])
    assert sending.lost() == []
    sending.finish([4, 6])
    assert sending.lost() == []
    sending.finish([8])
    assert sending.lost() == [0, 2]


def test_lost_again_needs_later_results_and_half_an_rtt() -> None:
    sending = Sending()
    sending.finish([1, 2, 3], 0.002)
    assert sending.lost(0.002) == [0]
    sending.send_again([0], 0.002)
    sending.finish(list(range(4, ROWS)), 0.0021)
    assert sending.lost(0.01) == []  # these were sent before the retransmission
    sending.recovery.start(range(1, 4), 0.0022)
    sending.finish([1, 2, 3], 0.0022 + RTT_S / 4)
    assert sending.lost(0.0022 + RTT_S / 4) == []  # others may retransmit later
    assert sending.lost(0.0022 + RTT_S) == [0]


def test_result_that_cannot_answer_the_retransmission_is_no_evidence() -> None:
    sending = Sending()
    sending.send_again([1, 2, 3], 0.005)
    sending.send_again([0], 0.0045)
    sending.finish([1, 2, 3], 0.0051)  # faster than any RTT: they answer the first transmissions
    assert sending.lost(0.0051) == []


def test_retransmissions_by_a_timer_do_not_show_that_others_are_lost() -> None:
    # Another worker was late: its first contributions complete what this one has sent twice.
    sending = Sending()
    sending.send_again(list(range(4)), 0.03)
    sending.finish([0, 1, 2, 3], 0.04)
    assert sending.lost(0.04) == []


def test_withheld_rows_are_never_sent() -> None:
    sending = Sending(withheld=[0, 5])
    sending.finish([6, 7, 8])
    assert sending.lost() == [1, 2, 3, 4]
    assert 0 not in sending.recovery.silent(1.0)
    assert 0 not in sending.recovery.expired(1.0)[0]


def test_silence_lets_the_oldest_few_and_the_newest_be_sent() -> None:
    sending = Sending()
    sending.finish([0, 1], 0.002)
    due_s = sending.recovery.next_s
    assert 0.002 + RTT_S < due_s < 0.002 + RTT_S + TIMEOUT_S
    assert sending.recovery.silent(0.002) == []
    rows = sending.recovery.silent(due_s)
    assert rows == [2, 3, 4, ROWS - 1]
    sending.send_again(rows, due_s, is_probe=True)
    sending.finish([ROWS - 1], due_s + RTT_S)
    assert sending.lost(due_s + RTT_S) == list(range(5, ROWS - 1))  # it was sent after all of them


def test_probes_follow_each_other_after_twice_the_time() -> None:
    sending = Sending()
    sending.finish([0, 1], 0.002)
    pause_s, at_s = sending.recovery.next_s - 0.002, 0.002
    for power in range(4):
        at_s += 2**power * pause_s + 1e-9
        assert sending.recovery.silent(at_s - pause_s / 10) == []
        assert sending.recovery.silent(at_s) == [2, 3, 4, ROWS - 1]
    sending.finish([2], at_s)
    assert sending.recovery.silent(at_s + sending.recovery.probe_after_s) == [3, 4, 5, ROWS - 1]


def test_one_later_result_shows_a_loss_after_more_than_a_round_trip() -> None:
    sending = Sending()
    sending.finish([1])
    assert sending.lost(1.2 * RTT_S) == []
    assert sending.recovery.next_s == pytest.approx(1.25 * RTT_S)
    assert sending.lost(1.3 * RTT_S) == [0]
    sending.send_again([0], 1.3 * RTT_S)
    assert sending.lost(100 * RTT_S) == []  # it is later than the result now


def test_result_of_a_repetition_shows_a_loss_after_two_round_trips() -> None:
    sending = Sending()
    sending.finish([0])
    sending.send_again([1], RTT_S)
    sending.finish([1], 2 * RTT_S)
    assert sending.lost(2.9 * RTT_S) == []
    assert sending.lost(3.1 * RTT_S) == list(range(2, ROWS))  # two after results began to come


def test_late_worker_has_two_round_trips_to_catch_up() -> None:
    sending = Sending()
    begin_s = sending.recovery.next_s
    sending.send_again(sending.recovery.silent(begin_s), begin_s, is_probe=True)
    resumed_s = begin_s + 50 * RTT_S
    sending.finish([0, 1, 2], resumed_s)
    assert sending.lost(resumed_s + 1.9 * RTT_S) == []
    assert sending.lost(resumed_s + 2.1 * RTT_S) == list(range(3, ROWS - 1))


def test_nothing_is_awaited_while_nothing_is_under_way() -> None:
    sending = Sending()
    sending.recovery.abandon(range(ROWS))
    assert sending.recovery.expired(0.5)[0] == []
    assert sending.recovery.next_s == math.inf


def test_timer_sends_few_while_nothing_arrives() -> None:
    sending = Sending()
    rows, outrun = sending.recovery.expired(0.5)
    assert rows == list(range(STORM_LIMIT))
    assert outrun == 0


def test_timer_sends_all_while_results_arrive_and_tells_what_they_outran() -> None:
    sending = Sending()
    sending.finish([15])
    rows, outrun = sending.recovery.expired(0.5)
    assert rows == list(range(ROWS - 1))
    assert outrun == ROWS - 1


def test_timer_begins_again_with_each_result_of_an_earlier_chunk_of_the_tree() -> None:
    """A queue that grows delays results, and loses nothing."""
    sending = Sending(num_trees=2)
    timeout_s = sending.recovery.timeout_s
    sending.finish([0], 0.9 * timeout_s)
    assert sending.recovery.expired(1.1 * timeout_s)[0] == list(range(1, ROWS, 2)), "not tree 0"
    timeout_s = sending.recovery.timeout_s  # the result that came late was a sample, too
    sending.finish([2], 2 * timeout_s)
    sending.finish([4], 2.5 * timeout_s)
    at_s = 2.5 * timeout_s + sending.recovery.timeout_s
    assert set(range(6, ROWS, 2)).isdisjoint(sending.recovery.expired(0.999 * at_s)[0])
    assert set(sending.recovery.expired(1.001 * at_s)[0]) >= set(range(6, ROWS, 2))


def test_timer_does_not_begin_again_where_results_outrun_a_chunk_or_it_was_sent_again() -> None:
    sending = Sending()
    timeout_s = sending.recovery.timeout_s
    sending.send_again([3], 0.0)
    sending.finish([0, 1], 0.9 * timeout_s)
    assert sending.recovery.expired(1.1 * timeout_s)[0] == [3]
    sending = Sending()
    sending.finish([1], 0.9 * timeout_s)
    assert sending.recovery.expired(1.1 * timeout_s)[0] == [0]


def test_round_trips_of_another_tree_show_no_loss() -> None:
    """Tree 1 has its root on the worker's own host."""
    sending = Sending(num_trees=2)
    for first in range(1, 13, 2):
        sending.finish([first], RTT_S / 100)
    sending.finish([2])
    assert sending.lost(1.2 * RTT_S) == []
    assert sending.lost(1.3 * RTT_S) == [0]
    sending.finish([15], 1.3 * RTT_S)
    assert sending.lost(1.3 * RTT_S) == [0, 13], "which came faster before"


def test_probes_and_timers_go_by_the_slowest_tree() -> None:
    sending = Sending(num_trees=2)
    probe_s, timeout_s = sending.recovery.probe_after_s, sending.recovery.timeout_s
    for first in range(1, ROWS, 2):
        sending.finish([first], RTT_S / 100)
    assert sending.recovery.probe_after_s == probe_s
    assert sending.recovery.timeout_s == timeout_s
    sending.finish([0], 10 * RTT_S)
    assert sending.recovery.probe_after_s > probe_s


def timeouts(sending: Sending, num_expiries: int) -> list[float]:
    """Return the timeout after each expiry of a row without results, as a multiple of the first."""
    at_s, begin_s, found = 0.5, sending.recovery.timeout_s, list[float]()
    for _ in range(num_expiries):
        sending.send_again(sending.recovery.expired(at_s)[0], at_s)
        found.append(sending.recovery.timeout_s / begin_s)
        at_s += 2.0
    return found


def test_expiries_of_many_chunks_double_the_timeout() -> None:
    sending = Sending()
    sending.recovery.expired(0.1)  # since the last sample
    assert timeouts(sending, 3) == [2, 4, 8]


def test_first_expiries_of_a_few_chunks_leave_the_timeout() -> None:
    sending = Sending()
    sending.recovery.expired(0.1)
    sending.recovery.abandon(range(4, ROWS))
    assert timeouts(sending, 8) == [1, 1, 1, 1, 1, 1, 2, 4]


def test_first_expiries_leave_the_timeout_while_results_arrive() -> None:
    """They are results of chunks that were sent again, which give no sample."""
    sending = Sending()
    at_s, begin_s, found = 0.1, sending.recovery.timeout_s, list[float]()
    sending.send_again(sending.recovery.expired(at_s)[0], at_s)
    for row in range(8):
        at_s += 2.0
        sending.finish([row], at_s)
        sending.send_again(sending.recovery.expired(at_s)[0], at_s)
        found.append(sending.recovery.timeout_s / begin_s)
    assert found == [1, 1, 1, 1, 1, 1, 2, 4]


def send_all_again_before_their_results(
    sending: Sending, now_s: float, taken_s: float, rows: int = ROWS
) -> None:
    """Send all rows twice; results come `taken_s` after the first transmissions, of some rows."""
    sending.recovery.start(range(ROWS), now_s)
    sending.send_again(list(range(ROWS)), now_s + 2 * RTT_S)
    for row in range(rows):
        sending.finish([row], now_s + taken_s)


def lost_after_later_results(sending: Sending, now_s: float, after_s: float) -> list[int]:
    """Send all rows twice; return what counts as lost once the last three have their results."""
    sending.recovery.start(range(ROWS), now_s)
    sending.send_again(list(range(ROWS)), now_s)
    sending.finish([ROWS - 3, ROWS - 2, ROWS - 1], now_s + after_s)
    return sending.lost(now_s + after_s)


def test_round_trip_grows_where_all_are_sent_again_before_their_results() -> None:
    sending = Sending()
    sending.finish(list(range(ROWS)))
    send_all_again_before_their_results(sending, 1.0, 50 * RTT_S)
    assert lost_after_later_results(sending, 2.0, 10 * RTT_S) == []
    assert sending.lost(2.0 + 14 * RTT_S) == list(range(ROWS - 3))


def test_samples_shorten_a_round_trip_that_has_grown() -> None:
    sending = Sending()
    sending.finish(list(range(ROWS)))
    send_all_again_before_their_results(sending, 1.0, 50 * RTT_S)
    for second in range(2, 22):
        sending.recovery.start([0], second)
        sending.finish([0], second + RTT_S)
    assert lost_after_later_results(sending, 30.0, 2 * RTT_S) == list(range(ROWS - 3))


def test_results_of_some_round_trips_leave_the_round_trip() -> None:
    """Repetitions were lost, too."""
    sending = Sending()
    sending.finish(list(range(ROWS)))
    before_s = sending.recovery.probe_after_s
    send_all_again_before_their_results(sending, 1.0, 3.9 * RTT_S)
    assert sending.recovery.probe_after_s == before_s


def test_a_few_results_without_a_sample_leave_the_round_trip() -> None:
    sending = Sending()
    sending.finish(list(range(ROWS)))
    send_all_again_before_their_results(sending, 1.0, 50 * RTT_S, rows=AMBIGUOUS_RESULTS - 1)
    assert lost_after_later_results(sending, 2.0, 2 * RTT_S) == list(range(ROWS - 3))


def slow_down(sending: Sending) -> None:
    """Have the worker learn long round trips, as from results that waited for others."""
    for second in range(1, 41):
        sending.recovery.start([0], second)
        sending.finish([0], second + 50 * RTT_S)


def test_answer_to_a_repetition_tells_the_round_trip_since_then() -> None:
    sending = Sending()
    slow_down(sending)
    for second in range(50, 70):
        sending.recovery.start([0], second)
        sending.send_again([0], second + 0.5)
        sending.finish([0], second + 0.5 + RTT_S, Answer.AGAIN)
    assert lost_after_later_results(sending, 100.0, 2 * RTT_S) == list(range(ROWS - 3))


@pytest.mark.parametrize("answer", [Answer.NOTHING, Answer.ALL])
def test_results_of_others_tell_no_round_trip_of_a_repetition(answer: Answer) -> None:
    sending = Sending()
    slow_down(sending)
    for second in range(50, 70):
        sending.recovery.start([0], second)
        sending.send_again([0], second + 0.5)
        sending.finish([0], second + 0.5 + RTT_S, answer)
    assert lost_after_later_results(sending, 100.0, 2 * RTT_S) == []


def test_answer_to_one_of_several_repetitions_tells_none() -> None:
    sending = Sending()
    slow_down(sending)
    for second in range(50, 70):
        sending.recovery.start([0], second)
        sending.send_again([0], second + 0.4)
        sending.send_again([0], second + 0.5)
        sending.finish([0], second + 0.5 + RTT_S, Answer.AGAIN)
    assert lost_after_later_results(sending, 100.0, 2 * RTT_S) == []


def test_round_trip_is_no_longer_than_since_the_first_of_several_repetitions() -> None:
    """They show no queue that has grown, though the chunks wait for long."""
    sending = Sending()
    sending.finish(list(range(ROWS)))
    before_s = sending.recovery.probe_after_s
    sending.recovery.start(range(ROWS), 1.0)
    sending.send_again(list(range(ROWS)), 1.0 + 48 * RTT_S)
    sending.send_again(list(range(ROWS)), 1.0 + 49 * RTT_S)
    sending.recovery.finish(list(range(ROWS)), 1.0 + 50 * RTT_S, Answer.AGAIN)
    assert sending.recovery.probe_after_s == before_s


def test_result_of_any_tree_shows_that_a_repetition_is_lost_where_most_were_sent_again() -> None:
    """Of the tree of row 2, nothing that was sent later has a result."""
    sending = Sending(num_trees=2)
    sending.finish([0])
    sending.send_again([2, *range(4, 12), 3], 2 * RTT_S)
    sending.finish([3], 3 * RTT_S)
    assert 2 not in sending.lost(3.2 * RTT_S)
    assert 2 in sending.lost(3.3 * RTT_S)


def test_results_of_another_tree_show_first_losses_only_where_much_was_sent_again() -> None:
    for num_again, is_lost in ((6, False), (8, True)):
        sending = Sending(num_trees=2)
        sending.finish([0, 1])  # round trips of both trees
        sending.recovery.start([0, 1], RTT_S)
        sending.finish([1], 2 * RTT_S)  # the last of all, of tree 1
        sending.send_again(list(range(2, 2 + num_again)), 2 * RTT_S)
        assert (14 in sending.lost(4 * RTT_S)) == is_lost
