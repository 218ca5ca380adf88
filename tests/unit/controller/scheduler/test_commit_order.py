# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Commits in the order of arrival: at once, except where the bound makes one wait."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchfold.controller.scheduler.errors import CommitSequenceError
from switchfold.controller.scheduler.scheduler import SchedulerOptions, TransferScheduler
from switchfold.controller.scheduler.training.commit_order import ArrivalCommits, CommitOrder
from transfer_cases import SERVER, grants_of, make, push, star


def test_without_a_bound_each_arrival_is_applied_at_once() -> None:
    commits: ArrivalCommits[str] = ArrivalCommits(None, 7)
    for sequence in range(3):
        commits.expect(sequence, 7)
    assert commits.arrive(2, "c") == ["c"]
    assert commits.skip(0) == []
    assert commits.arrive(1, "b") == ["b"]


def test_arrival_waits_for_an_update_that_would_exceed_the_bound() -> None:
    commits: ArrivalCommits[str] = ArrivalCommits(2, 0)
    for sequence in range(3):
        commits.expect(sequence, 0)
    assert commits.arrive(1, "b") == ["b"]
    assert commits.arrive(2, "c") == ["c"]
    commits.expect(3, 1)
    # As commit 2, it would make the first one commit 3, with a delay of 3.
    assert commits.arrive(3, "d") == []
    assert commits.arrive(0, "a") == ["a", "d"]


def test_update_that_will_not_come_lets_others_be_applied() -> None:
    commits: ArrivalCommits[str] = ArrivalCommits(0, 4)
    commits.expect(0, 4)
    commits.expect(1, 5)
    assert commits.arrive(1, "b") == []
    assert commits.skip(0) == ["b"]


def test_what_is_not_expected_is_refused() -> None:
    commits: ArrivalCommits[str] = ArrivalCommits(1, 0)
    commits.expect(0, 0)
    commits.expect(1, 1)
    with pytest.raises(CommitSequenceError, match="number 5 of the grants"):
        commits.arrive(5, "x")
    assert commits.arrive(0, "a") == ["a"]
    with pytest.raises(CommitSequenceError, match="number 0 of the grants"):
        commits.skip(0)


@given(st.integers(0, 6), st.integers(1, 40), st.randoms(use_true_random=False))
def test_every_delay_is_within_the_bound_and_nothing_waits_for_ever(
    tau_max: int, num_grants: int, chance: random.Random
) -> None:
    """Grants come in an order that meets the bound; arrivals in any order, some never."""
    commits: ArrivalCommits[tuple[int, int]] = ArrivalCommits(tau_max, 0)
    under_way: dict[int, int] = {}
    applied = expected = 0
    held: set[int] = set()

    def count(ready: list[tuple[int, int]]) -> None:
        nonlocal applied
        for sequence, version in ready:
            assert applied - version <= tau_max
            applied += 1
            held.discard(sequence)

    while expected < num_grants or under_way:
        if expected < num_grants and (not under_way or chance.random() < 0.5):
            planned = applied + len(under_way) + len(held)
            version = max(planned - chance.randint(0, tau_max), 0)
            commits.expect(expected, version)
            under_way[expected] = version
            expected += 1
            continue
        sequence = chance.choice(list(under_way))
        version = under_way.pop(sequence)
        if chance.random() < 0.2:
            count(commits.skip(sequence))
        else:
            held.add(sequence)
            count(commits.arrive(sequence, (sequence, version)))
    assert not held


def test_slow_update_holds_up_nobody_by_default() -> None:
    scheduler = make(3)
    scheduler.submit(push(1, size_bytes=125_000_000), 0.0)
    (slow,) = grants_of(scheduler.decide(0.0))
    scheduler.submit(push(2), 0.0)
    scheduler.decide(0.05)
    assert slow.commit_s == pytest.approx(10.0)
    assert [grant.request.transfer_id for grant in scheduler.delivered([2], 8.0)] == [2]
    assert scheduler.version(SERVER) == 1


def test_planned_commits_are_arrivals_or_wait_for_those_before() -> None:
    planned: dict[CommitOrder, list[float]] = {}
    for commit_order in CommitOrder:
        options = SchedulerOptions(commit_order=commit_order)
        scheduler = TransferScheduler(star(3, others={"h1": 10}), {SERVER: 0}, options)
        scheduler.submit(push(1), 0.0)
        scheduler.decide(0.0)
        scheduler.submit(push(2), 0.0)
        planned[commit_order] = [g.commit_s for g in grants_of(scheduler.decide(0.1))]
        scheduler.delivered([1], 0.2)
        scheduler.delivered([2], 0.2)
        scheduler.submit(push(3), 0.2)
        # Both were early, so the third one need not wait for their planned times.
        assert [g.commit_s for g in grants_of(scheduler.decide(0.2))] == pytest.approx([1.2])
    assert planned[CommitOrder.ARRIVAL] == pytest.approx([0.1 + 1 / 0.9])
    assert planned[CommitOrder.SEQUENCE] == pytest.approx([10.0])
