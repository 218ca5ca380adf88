# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Figures of several looks at a job: rates, hold times, idle time, and the last worker."""

from __future__ import annotations

import pytest

from activity_looks import LookFigures, window_of
from switchfold.controller.api.operator_api import activity_pb2 as pb


def test_hold_time_is_open_slots_by_completed_rounds() -> None:
    looks = [
        LookFigures(time_s=10.0, rounds=100, waiting=[[1], [1]]),
        LookFigures(time_s=11.0, rounds=300, waiting=[]),
        LookFigures(time_s=12.0, rounds=500, waiting=[[0]]),
    ]
    (tree,) = window_of(looks).trees()
    assert (tree.tree_id, tree.root, tree.slot_count) == (3, "s1", 128)
    assert tree.rounds_per_s == 200.0
    assert tree.open_slots == 1.0
    assert tree.hold_s == 1.0 / 200.0


def test_slots_that_were_not_read_count_like_those_that_were() -> None:
    looks = [LookFigures(time_s=t, rounds=10 * t, waiting=[[1]], read_slots=32) for t in (0, 1)]
    (tree,) = window_of(looks).trees()
    assert tree.open_slots == 4.0


def test_hold_time_is_unknown_without_rounds_or_slots() -> None:
    still = [LookFigures(time_s=t, rounds=5, waiting=[[1]]) for t in (0, 1)]
    unseen = [LookFigures(time_s=t, rounds=t) for t in (0, 1)]
    unread = [LookFigures(time_s=t, rounds=t, slot_error="refused") for t in (0, 1)]
    for looks in (still, unseen, unread):
        (tree,) = window_of(looks).trees()
        assert tree.hold_s is None
    assert window_of(unread).trees()[0].error == "refused"
    assert window_of(unread).errors == ["refused"]


def test_link_has_mean_rate_and_median_use_while_values_are_exchanged() -> None:
    sent = [0, 1_000_000, 1_000_000, 1_900_000, 2_800_000]
    rounds = [0, 10, 10, 20, 30]  # nothing happens in the second interval
    looks = [LookFigures(time_s=t, rounds=rounds[t], sent_bytes=(sent[t], 0, 0)) for t in range(5)]
    links = window_of(looks).links()
    assert (links[0].sender, links[0].receiver) == ("h1", "s1")
    assert links[0].bits_per_s == 2_800_000 * 8 / 4
    assert links[0].use == pytest.approx(0.7)
    assert links[0].exchange_use == pytest.approx(0.9)
    assert links[1].bits_per_s == 0


def test_link_without_a_stated_rate_has_no_use() -> None:
    looks = [LookFigures(time_s=t, rounds=t, rate_bits_per_s=0) for t in range(3)]
    for link in window_of(looks).links():
        assert (link.rate_bits_per_s, link.use, link.exchange_use) == (None, None, None)


def test_link_that_could_not_be_read_is_left_out() -> None:
    broken = pb.LinkActivity(sender="s1", receiver="s2", error="switch s1: no answer")
    looks = [LookFigures(time_s=t, rounds=t, more_links=[broken]) for t in range(3)]
    window = window_of(looks)
    assert {link.receiver for link in window.links()} == {"s1"}
    assert window.errors == ["switch s1: no answer"]


def test_idle_is_without_rounds_that_complete_or_wait() -> None:
    looks = [
        LookFigures(time_s=0, rounds=0),
        LookFigures(time_s=1, rounds=0),
        LookFigures(time_s=2, rounds=5, waiting=[[1]]),
        LookFigures(time_s=3, rounds=5, waiting=[[1]]),
        LookFigures(time_s=4, rounds=5),
    ]
    assert window_of(looks).idle_share == 0.5
    assert window_of(looks[:1]).idle_share == 1.0


def test_last_worker_is_the_one_for_whom_most_rounds_wait_alone() -> None:
    looks = [
        LookFigures(time_s=0, waiting=[[2], [2], [0]]),
        LookFigures(time_s=1, waiting=[[2], [0, 2]]),
        LookFigures(time_s=2, waiting=[[2]]),
        LookFigures(time_s=3),
    ]
    shares = [worker.last_share for worker in window_of(looks).workers()]
    assert shares == [0.0, 0.0, pytest.approx(2 / 3)]


def test_worker_stalls_the_others_if_it_sends_nothing_while_rounds_are_stuck() -> None:
    stalled = LookFigures(time_s=0, waiting=[[1]], recent_bytes=(0, 100, 0))
    sending = LookFigures(time_s=1, waiting=[[1]], recent_bytes=(0, 9000, 0))
    moving = LookFigures(time_s=2, waiting=[[1]], is_stuck=False)
    several = LookFigures(time_s=3, waiting=[[1, 2]])
    shares = [
        worker.stalled_share for worker in window_of((stalled, sending, moving, several)).workers()
    ]
    assert shares == [0.0, 0.25, 0.0]


def test_another_view_begins_a_new_window() -> None:
    window = window_of([LookFigures(time_s=t, rounds=100 * t) for t in range(3)])
    window.add(LookFigures(time_s=9, rounds=1, generation=8).message())
    assert (len(window), window.seconds, window.num_rounds) == (1, 0.0, 0)
    window.add(LookFigures(time_s=10, rounds=4, generation=8).message())
    assert window.trees()[0].rounds_per_s == 3.0


def test_old_looks_are_dropped() -> None:
    window = window_of([LookFigures(time_s=t, rounds=t * t) for t in range(10)], most=3)
    assert (len(window), window.seconds, window.num_rounds) == (3, 2, 81 - 49)
