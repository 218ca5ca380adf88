# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Granted switch groups at a server until they begin: who is awaited, and for how long."""

from __future__ import annotations

from switchfold.hostlib.control.stations.station import ExpectedMember, SwitchGroupExpected
from switchfold.hostlib.parameter_server.switch_groups.planned_groups import (
    EARLY_WAIT_S,
    PlannedGroups,
)

ONE, TWO, THREE = (ExpectedMember(worker, 10 + worker) for worker in (1, 2, 3))


def told(*members: ExpectedMember, number: int = 1, start_s: float = 0.0) -> SwitchGroupExpected:
    return SwitchGroupExpected(number, members, start_s, start_s + 1.0)


def test_a_group_begins_when_all_have_joined_in_the_order_of_places() -> None:
    groups = PlannedGroups[str]()
    groups.expect(told(TWO, ONE), 100.0)
    assert groups.join(ONE, "one", 100.0)
    assert groups.take_ready(100.5) == []
    assert groups.due_s(is_busy=False) == 101.0
    assert groups.join(TWO, "two", 100.5)
    assert groups.take_ready(100.5) == ["two", "one"]
    assert groups.take_ready(200.0) == []
    assert groups.due_s(is_busy=False) is None


def test_a_group_does_not_begin_before_its_time() -> None:
    groups = PlannedGroups[str]()
    groups.expect(told(ONE, TWO, start_s=0.25), 100.0)
    groups.join(ONE, "one", 100.0)
    groups.join(TWO, "two", 100.0)
    assert groups.due_s(is_busy=False) == 100.25
    assert groups.due_s(is_busy=True) is None
    assert groups.take_ready(100.2) == []
    assert groups.take_ready(100.25) == ["one", "two"]


def test_a_group_goes_on_without_those_who_do_not_come_and_they_are_late() -> None:
    groups = PlannedGroups[str]()
    groups.expect(told(ONE, TWO, THREE), 100.0)
    groups.join(ONE, "one", 100.0)
    groups.join(THREE, "three", 100.1)
    assert groups.take_ready(100.9) == []
    assert groups.take_ready(101.0) == ["one", "three"]
    assert not groups.join(TWO, "two", 101.1)
    assert not groups.join(ONE, "again", 101.1)


def test_an_update_that_cannot_join_is_not_awaited() -> None:
    groups = PlannedGroups[str]()
    groups.expect(told(ONE, TWO), 100.0)
    groups.join(ONE, "one", 100.0)
    groups.miss(TWO)
    assert groups.take_ready(100.0) == ["one"]


def test_a_worker_that_is_gone_is_forgotten() -> None:
    groups = PlannedGroups[str]()
    groups.expect(told(ONE, TWO, THREE), 100.0)
    groups.expect(told(ExpectedMember(2, 99), number=2), 100.0)
    for key in (ONE, TWO, THREE):
        groups.join(key, str(key.worker_id), 100.0)
    groups.forget(2)
    assert groups.take_ready(100.0) == ["1", "3"]
    assert groups.take_ready(200.0) == []
    assert not groups.join(TWO, "two", 200.0)


def test_an_update_waits_for_the_word_of_its_group() -> None:
    groups = PlannedGroups[str]()
    assert groups.join(ONE, "one", 100.0)
    assert groups.join(TWO, "two", 100.0)
    assert groups.num_joined == 2
    groups.expect(told(ONE, THREE), 100.1)
    assert groups.due_s(is_busy=True) == 100.0 + EARLY_WAIT_S
    assert groups.expire(100.0 + EARLY_WAIT_S) == ["two"]
    assert not groups.join(TWO, "two", 106.0)
    groups.join(THREE, "three", 106.0)
    assert groups.take_ready(106.0) == ["one", "three"]


def test_a_second_word_changes_nothing() -> None:
    groups = PlannedGroups[str]()
    groups.expect(told(ONE, TWO), 100.0)
    groups.join(ONE, "one", 100.0)
    groups.expect(told(ONE, TWO), 100.5)
    groups.join(TWO, "two", 100.5)
    assert groups.take_ready(100.5) == ["one", "two"]
    groups.expect(told(ONE, TWO, number=3), 101.0)  # they are over
    assert groups.due_s(is_busy=False) is None


def test_all_are_given_back_and_over() -> None:
    groups = PlannedGroups[str]()
    groups.expect(told(ONE, TWO), 100.0)
    groups.join(ONE, "one", 100.0)
    groups.join(THREE, "three", 100.0)
    assert groups.take_all() == ["one", "three"]
    assert groups.take_all() == []
    assert not any(groups.join(key, "late", 100.0) for key in (ONE, TWO, THREE))
