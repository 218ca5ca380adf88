# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Granted updates are applied in the order of their places; nothing is lost, doubled, or awaited
for ever."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from switchfold.hostlib.control.stations.station import CommitExpected
from switchfold.hostlib.parameter_server.transfers.arrivals.place_order import (
    MOST_AHEAD,
    PlaceOrder,
    ReadyUpdate,
    UpdateKey,
)

WAIT_S = 3.0


def key(number: int) -> UpdateKey:
    return UpdateKey(number % 4, number + 1)


def place(sequence: int, number: int, due_s: float = 0.0) -> CommitExpected:
    return CommitExpected(sequence, *key(number), 1.0, due_s, due_s, 0)


def order(first: int | None = 0) -> PlaceOrder[int]:
    made = PlaceOrder[int](WAIT_S)
    if first is not None:
        assert not made.restart(first)
    return made


def test_bytes_are_awaited_when_the_first_update_of_their_worker_may_begin() -> None:
    made = order()
    places = [
        place(sequence, 4 * sequence, 100.0)._replace(begins_s=begins)
        for sequence, begins in ((0, 30.0), (1, 10.0), (2, 20.0))
    ]  # of worker 0
    places.append(place(3, 1, 100.0)._replace(begins_s=5.0))
    assert made.opens_s(key(0)) == 0.0, "nothing is known of it"
    for each in places:
        made.expect(each, 1000.0)
    assert [made.opens_s(key(number)) for number in (0, 4, 8, 1)] == [
        1010.0,
        1010.0,
        1010.0,
        1005.0,
    ]
    made.arrive(key(4), 1, 1, 1000.0)
    assert [made.opens_s(key(number)) for number in (0, 4, 8)] == [1020.0, 0.0, 1020.0]
    made.skip(2)
    assert [made.opens_s(key(number)) for number in (0, 8)] == [1030.0, 0.0]
    made.skip(0)
    assert made.next == 3
    assert made.opens_s(key(0)) == 0.0


def items(ready: Iterable[ReadyUpdate[int]]) -> list[int]:
    return [each.item for each in ready]


@pytest.mark.parametrize("seed", range(30))
def test_updates_leave_in_their_places_whatever_comes_first(seed: int) -> None:
    chance = random.Random(seed)
    commits, applied = order(), list[ReadyUpdate[int]]()
    skipped = set(chance.sample(range(50), 8))
    events = [("expect", n) for n in range(50)]
    events += [("skip" if n in skipped else "arrive", n) for n in range(50)]
    chance.shuffle(events)
    for kind, number in events:
        if kind == "expect":
            applied += commits.expect(place(number, number), 0.0)[1]
        elif kind == "skip":
            applied += commits.skip(number)
        else:
            applied += commits.arrive(key(number), number, number, 0.0)
    assert items(applied) == [n for n in range(50) if n not in skipped]
    assert all(each.is_in_place for each in applied)
    assert (commits.next, commits.highest, commits.num_held) == (50, 50, 0)


def test_updates_without_a_grant_pass_those_that_wait() -> None:
    commits = order()
    assert not commits.arrive(key(1), 1, 1, 0.0)
    assert commits.arrive(key(9), None, 9, 0.0) == [ReadyUpdate(9, is_in_place=False)]
    # The update of place 0 comes without its grant: nobody waits for the place any more.
    assert not commits.expect(place(0, 5), 0.0)[1]
    assert commits.arrive(key(5), None, 5, 0.0) == [
        ReadyUpdate(5, is_in_place=False),
        ReadyUpdate(1, is_in_place=True),
    ]


def test_without_a_scheduler_nothing_waits() -> None:
    commits = order(None)
    assert commits.arrive(key(7), 7, 7, 0.0) == [ReadyUpdate(7, is_in_place=False)]
    assert commits.next is None
    assert commits.expect(place(7, 7), 0.0) == (True, [])


def test_a_place_is_given_up_after_it_was_due_and_its_update_is_applied_later() -> None:
    commits = order()
    commits.expect(place(0, 0, due_s=10.0), 1.0)
    assert commits.give_up_s is None
    assert not commits.arrive(key(1), 1, 1, 2.0)
    assert commits.give_up_s == 11.0 + WAIT_S
    assert not commits.give_up(13.9)
    assert items(commits.give_up(14.0)) == [1]
    assert commits.num_given_up == 1
    assert commits.arrive(key(0), 0, 0, 15.0) == [ReadyUpdate(0, is_in_place=False)]


def test_several_missing_places_are_not_awaited_one_after_the_other() -> None:
    commits = order()
    assert not commits.arrive(key(3), 3, 3, 1.0)
    assert commits.give_up_s == 1.0 + WAIT_S
    given_up = [items(commits.give_up(1.0 + WAIT_S)) for _ in range(3)]
    assert given_up == [[], [], [3]]
    assert commits.num_given_up == 3


def test_a_new_stream_opens_no_place_twice() -> None:
    commits = order()
    for number in (0, 1):
        commits.expect(place(number, number), 0.0)
        assert items(commits.arrive(key(number), number, number, 0.0)) == [number]
    assert not commits.arrive(key(3), 3, 3, 0.0)
    # The scheduler has not heard of updates 0 and 1, and tells their places again.
    assert not commits.restart(0)
    assert commits.expect(place(0, 0), 0.0) == (True, [])
    assert commits.expect(place(1, 1), 0.0) == (True, [])
    assert commits.next == 2
    assert commits.expect(place(2, 2), 0.0) == (False, [])
    assert items(commits.arrive(key(2), 2, 2, 0.0)) == [2, 3]


def test_a_new_stream_releases_what_waits_for_places_that_are_over() -> None:
    commits = order()
    for number in (4, 2):
        assert not commits.arrive(key(number), number, number, 0.0)
    assert list(commits.held()) == [2, 4]
    assert commits.restart(3) == [ReadyUpdate(2, is_in_place=False)]
    assert items(commits.arrive(key(3), 3, 3, 0.0)) == [3, 4]


def test_the_scheduler_is_believed_before_a_worker() -> None:
    commits = order()
    commits.expect(place(0, 8), 0.0)
    # A worker claims the place of another one; then the place that it was told is not its own.
    assert commits.arrive(key(9), 0, 9, 0.0) == [ReadyUpdate(9, is_in_place=False)]
    commits.expect(place(1, 6), 0.0)
    assert not commits.arrive(key(6), 0, 6, 0.0)
    assert items(commits.arrive(key(8), 0, 8, 0.0)) == [8, 6]


def test_a_place_far_ahead_is_not_waited_for() -> None:
    commits = order()
    assert commits.arrive(key(1), MOST_AHEAD + 1, 1, 0.0) == [ReadyUpdate(1, is_in_place=False)]
    commits.expect(place(1 << 60, 2), 0.0)
    commits.skip(1 << 60)
    assert commits.num_held == 0
    assert commits.give_up_s is None


def test_transfers_of_a_new_process_are_not_taken_for_those_of_the_old_one() -> None:
    commits = order()
    assert items(commits.arrive(key(4), 0, 4, 0.0)) == [4]
    commits.forget(key(4).worker_id)
    assert commits.expect(place(1, 4), 0.0) == (False, [])
    assert items(commits.arrive(key(4), 1, 4, 0.0)) == [4]


def test_a_sum_waits_for_the_place_of_its_first_update_and_covers_the_others() -> None:
    waiting = order()
    for sequence in range(4):
        waiting.expect(place(sequence, sequence), 0.0)
    for number in 2, 3:
        waiting.cover(key(number), number)
    assert items(waiting.arrive(key(1), 1, 1, 0.0)) == []
    assert items(waiting.arrive(key(0), 0, 0, 0.0)) == [0, 1]
    assert waiting.next == 4


def test_a_sum_that_comes_before_the_words_of_its_places_covers_them() -> None:
    waiting = order()
    waiting.cover(key(2), 2)
    assert items(waiting.arrive(key(1), 1, 1, 0.0)) == []
    has_come, ready = waiting.expect(place(2, 2), 0.0)
    assert (has_come, ready) == (True, [])
    assert items(waiting.arrive(key(0), 0, 0, 0.0)) == [0, 1]
    assert waiting.next == 3


def test_a_sum_with_a_gap_lets_the_missing_update_come_or_be_skipped() -> None:
    waiting = order()
    waiting.cover(key(2), 2)
    assert items(waiting.arrive(key(0), 0, 0, 0.0)) == [0]
    assert waiting.next == 1
    assert items(waiting.skip(1)) == []
    assert waiting.next == 3


def test_a_sum_does_not_take_the_place_that_is_anothers() -> None:
    waiting = order()
    waiting.expect(place(1, 5), 0.0)
    waiting.cover(key(2), 1)
    assert items(waiting.arrive(key(0), 0, 0, 0.0)) == [0]
    assert waiting.next == 1, "the update that was told of is awaited"
