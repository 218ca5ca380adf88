# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from switchfold.hostlib.control.view import Endpoint, JobView
from switchfold.hostlib.engine.view_change import Commit, ViewChange


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


def propose(
    change: ViewChange, generation: int, *, is_abort: bool, started: int = 5, completed: int = 3
) -> list[int]:
    positions: list[int] = []
    change.propose(
        generation, is_abort, positions.append, num_started=started, num_completed=completed
    )
    return positions


def test_graceful_change_waits_for_the_boundary() -> None:
    change = ViewChange(1)
    assert propose(change, 2, is_abort=False) == [5]
    assert change.limit == 5
    change.agree(commit(2, 7), num_started=5)
    assert change.limit == 7
    assert change.ready(6) is None
    entered = change.ready(7)
    assert entered is not None
    assert entered.view.generation == 2
    assert change.limit is None


def test_abort_stops_and_enters_at_once() -> None:
    change = ViewChange(1)
    propose(change, 2, is_abort=False)
    assert propose(change, 3, is_abort=True) == [3]
    assert change.is_stopped
    assert propose(change, 4, is_abort=False) == []
    change.agree(commit(2, 5), num_started=3)
    assert change.ready(3) is None
    change.agree(commit(3, 4), num_started=3)
    assert change.ready(3) is not None
    assert not change.is_stopped


def test_proposal_after_a_commit_waits_until_that_view_is_entered() -> None:
    change = ViewChange(1)
    propose(change, 2, is_abort=False)
    change.agree(commit(2, 7), num_started=5)
    # Others may run tensor 7 in view 2 already; the position here would hide that.
    assert propose(change, 3, is_abort=False) == []
    assert change.ready(7) is not None
    assert change.deferred is not None
    assert change.deferred[0] == 3


def test_proposal_that_is_heard_with_the_commit_of_an_abort_waits_too() -> None:
    change = ViewChange(1)
    propose(change, 2, is_abort=True)
    change.agree(commit(2, 4), num_started=3)
    assert propose(change, 3, is_abort=False) == []
    assert change.ready(3) is not None
    assert change.deferred is not None
    assert change.deferred[0] == 3


def test_abort_takes_the_place_of_what_waits() -> None:
    change = ViewChange(1)
    propose(change, 2, is_abort=False)
    change.agree(commit(2, 7), num_started=5)
    propose(change, 3, is_abort=False)
    assert propose(change, 4, is_abort=True) == [3]
    assert change.deferred is None
    assert change.commit is None


def test_commit_without_a_proposal_redoes_what_was_started_beyond() -> None:
    change = ViewChange(1)
    change.agree(commit(2, 4), num_started=5)
    assert change.is_stopped
    assert change.ready(4) is not None


def test_what_is_old_changes_nothing() -> None:
    change = ViewChange(1)
    propose(change, 2, is_abort=True)
    change.agree(commit(2, 4), num_started=3)
    assert propose(change, 2, is_abort=True) == []
    assert change.ready(4) is not None
    assert propose(change, 2, is_abort=True) == []
    change.agree(commit(1, 9), num_started=3)
    assert change.commit is None
