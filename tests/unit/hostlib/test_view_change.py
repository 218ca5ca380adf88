# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from switchfold.hostlib.control.view import Endpoint, JobView
from switchfold.hostlib.engine.view_change import Commit, State, ViewChange
from view_driver import DriverLink


def commit(generation: int, boundary: int) -> Commit:
    view = JobView.on_one_switch(
        job=1,
        generation=generation,
        worker_id=0,
        num_workers=2,
        slot_count=8,
        values_per_packet=32,
        switch=Endpoint(address="10.0.0.254"),
    )
    return Commit(view=view, boundary=boundary, source_worker=1)


def start() -> tuple[ViewChange, DriverLink]:
    link = DriverLink()
    return ViewChange(1, link), link


def propose(
    change: ViewChange, generation: int, *, is_abort: bool, started: int = 5, completed: int = 3
) -> None:
    change.propose(generation, is_abort=is_abort, num_started=started, num_completed=completed)


def test_graceful_change_waits_for_the_boundary() -> None:
    change, link = start()
    propose(change, 2, is_abort=False)
    assert (change.state, change.limit, link.ready) == (State.HOLDING, 5, [(2, 5)])
    change.agree(commit(2, 7), num_started=5)
    assert (change.state, change.limit) == (State.DRAINING, 7)
    assert change.ready(6) is None
    entered = change.ready(7)
    assert entered is not None
    assert entered.view.generation == 2
    assert change.enter() == 0
    assert (change.state, change.limit, link.entered) == (State.RUNNING, None, [2])


def test_abort_stops_and_enters_at_once() -> None:
    change, link = start()
    propose(change, 2, is_abort=False)
    propose(change, 3, is_abort=True)
    assert (change.state, change.limit, link.ready) == (State.STOPPED, 3, [(2, 5), (3, 3)])
    assert change.is_stopped
    propose(change, 4, is_abort=False)
    assert len(link.ready) == 2, "no graceful proposal replaces an abort"
    change.agree(commit(2, 5), num_started=3)
    assert change.ready(3) is None
    change.agree(commit(3, 4), num_started=3)
    assert change.state is State.LEAVING
    assert change.ready(3) is not None
    change.enter()
    assert not change.is_stopped


@pytest.mark.parametrize("is_abort", [False, True])
def test_proposal_after_a_commit_waits_until_that_view_is_entered(is_abort: bool) -> None:
    change, link = start()
    propose(change, 2, is_abort=is_abort)
    change.agree(commit(2, 7), num_started=5)
    # Others may run tensor 7 in view 2 already; the position here would hide that.
    propose(change, 3, is_abort=False)
    propose(change, 3, is_abort=False)
    assert [generation for generation, _ in link.ready] == [2]
    assert change.ready(7) is not None
    assert change.enter() == 3
    propose(change, 3, is_abort=False, started=8)
    assert link.ready[1:] == [(3, 8)]


def test_later_of_two_waiting_proposals_counts() -> None:
    change, _ = start()
    change.agree(commit(2, 7), num_started=5)
    propose(change, 4, is_abort=False)
    propose(change, 3, is_abort=False)
    assert change.enter() == 4


def test_abort_replaces_what_waits() -> None:
    change, link = start()
    propose(change, 2, is_abort=False)
    change.agree(commit(2, 7), num_started=5)
    propose(change, 3, is_abort=False)
    propose(change, 4, is_abort=True)
    assert (change.state, link.ready[-1]) == (State.STOPPED, (4, 3))
    assert change.ready(7) is None
    change.agree(commit(4, 3), num_started=3)
    assert change.enter() == 0


def test_later_commit_replaces_an_earlier_one() -> None:
    change, _ = start()
    change.agree(commit(2, 7), num_started=5)
    propose(change, 3, is_abort=False)
    change.agree(commit(3, 6), num_started=6)
    assert (change.state, change.limit) == (State.DRAINING, 6)
    assert change.enter() == 0, "what waited is committed"


def test_commit_without_a_proposal_redoes_what_was_started_beyond() -> None:
    change, _ = start()
    change.agree(commit(2, 4), num_started=5)
    assert change.state is State.LEAVING
    assert change.ready(4) is not None


def test_what_is_repeated_is_answered_again() -> None:
    change, link = start()
    for started in (5, 6):
        propose(change, 2, is_abort=False, started=started)
    assert link.ready == [(2, 5)] * 2
    for _ in range(2):
        propose(change, 3, is_abort=True)
    assert link.ready[2:] == [(3, 3)] * 2
    change.agree(commit(3, 4), num_started=3)
    change.agree(commit(3, 4), num_started=3)
    assert link.entered == [], "not before the view is entered"
    change.enter()
    change.agree(commit(3, 4), num_started=3)
    assert link.entered == [3, 3]


def test_what_is_old_changes_nothing() -> None:
    change, link = start()
    propose(change, 2, is_abort=True)
    propose(change, 1, is_abort=True)
    change.agree(commit(2, 4), num_started=3)
    propose(change, 2, is_abort=True)
    change.enter()
    propose(change, 2, is_abort=True)
    change.agree(commit(1, 9), num_started=3)
    assert (change.state, change.committed) == (State.RUNNING, 2)
    assert link.ready == [(2, 3)]
    assert change.ready(9) is None


def test_what_is_not_allowed_fails() -> None:
    change, _ = start()
    with pytest.raises(AssertionError, match=r"RUNNING to State\.RUNNING"):
        change.enter()
