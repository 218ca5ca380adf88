# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pytest

from switchfold.hostlib.control.submitted_tensor import SubmittedTensor
from switchfold.hostlib.control.view import Endpoint, JobView
from switchfold.hostlib.engine.allreduce_task import AllreduceTask
from switchfold.hostlib.engine.deadlines import (
    ASK_S,
    REPORT_AFTER_S,
    REPORT_S,
    VERDICT_AFTER_S,
    Deadlines,
)
from switchfold.hostlib.engine.reducer import Reducer, Task
from switchfold.hostlib.errors import (
    AllreduceTimeoutError,
    HostlibError,
    MemberLostError,
    PeerMismatchError,
)
from switchfold.hostlib.options import Summation
from view_driver import DriverLink

VIEW = JobView.on_one_switch(
    job=1,
    generation=1000,
    worker_id=0,
    num_workers=2,
    slot_count=8,
    values_per_packet=32,
    switch=Endpoint(address="10.0.0.254"),
)
STALL_S = 5.0


@dataclass
class FakeReducer:
    """The part of a reducer that deadlines use; it notes when it was asked."""

    view: JobView = VIEW
    failure: HostlibError | None = None
    is_waiting: bool = True
    stall_s: float = STALL_S
    silent_tree: int = 0
    missing: list[int] = field(default_factory=lambda: [1])
    asked_s: list[float] = field(default_factory=list[float])

    def ask(self, now_s: float) -> None:
        self.asked_s.append(now_s)

    def end_probe(self) -> None:
        self.asked_s.clear()

    def silent_s(self, now_s: float) -> float:
        return 0.0

    def verdict(self, task: Task) -> HostlibError:
        return AllreduceTimeoutError(f"verdict on tensor {task.tensor_id}")


def task(timeout_s: float, *, number: int = 0, has_begun: bool = True) -> AllreduceTask:
    """Return a tensor that was submitted at second 0."""
    made = AllreduceTask(
        number, np.ones(3, np.int32), Summation(), deadline_s=timeout_s, timeout_s=timeout_s
    )
    made.has_begun = has_begun
    return made


class Clock:
    """Deadlines of one view, and the time."""

    def __init__(self, *tasks: AllreduceTask, link: DriverLink | None = None) -> None:
        self.reducer = FakeReducer()
        self.tasks = tasks
        self.deadlines = Deadlines(link)
        self.deadlines.begin_view(0.0)
        for each in tasks:
            self.deadlines.add(each)

    def keep(self, now_s: float, *unreached: int) -> None:
        self.deadlines.keep(cast(Reducer, self.reducer), self.tasks, now_s, 1001, unreached)


def test_nothing_is_asked_before_a_deadline_is_due() -> None:
    clock = Clock(task(60.0), link=DriverLink())
    clock.keep(0.0)
    assert clock.deadlines.next_s == STALL_S
    clock.deadlines.note_progress(4.0)
    clock.keep(STALL_S)
    assert clock.reducer.asked_s == []
    assert clock.deadlines.next_s == 4.0 + STALL_S


def test_stall_is_asked_about_first_and_then_reported() -> None:
    link = DriverLink()
    clock = Clock(link=link)
    clock.keep(STALL_S)
    assert clock.reducer.asked_s == [STALL_S]
    assert clock.deadlines.next_s == STALL_S + ASK_S
    assert link.reports == []
    for now_s in (STALL_S + REPORT_AFTER_S, STALL_S + 2 * REPORT_AFTER_S):
        clock.keep(now_s)
        assert link.reports == [(1000, [1])]
    clock.keep(STALL_S + REPORT_AFTER_S + REPORT_S)
    assert link.reports == [(1000, [1])] * 2
    clock.deadlines.note_progress(STALL_S + 2 * REPORT_S)
    clock.keep(STALL_S + 2 * REPORT_S)
    assert clock.reducer.asked_s == []


def test_a_worker_that_alone_has_a_missed_result_and_answers_nobody_is_reported() -> None:
    link = DriverLink()
    clock = Clock(link=link)
    clock.reducer.is_waiting, clock.reducer.missing = False, []
    clock.keep(STALL_S)
    clock.keep(STALL_S + REPORT_AFTER_S)
    assert link.reports == []
    for now_s in (2 * STALL_S, 2 * STALL_S + REPORT_AFTER_S):
        clock.keep(now_s, 3)
    assert link.reports == [(1000, [3])]


def test_report_names_the_tensors_that_wait_and_the_last_complete_ones() -> None:
    link = DriverLink()
    clock = Clock(*(task(60.0, number=number) for number in range(20, 30)), link=link)
    complete = deque(task(60.0, number=number).submitted for number in range(20))
    clock.deadlines = Deadlines(link, complete)
    clock.keep(STALL_S)
    clock.keep(STALL_S + REPORT_AFTER_S)
    told = link.submitted
    assert told is not None
    assert [tensor.number for tensor in told.complete] == [*range(12, 20)]
    assert [tensor.number for tensor in told.awaited] == [*range(20, 28)]
    assert told.awaited[0] == SubmittedTensor(20, 3, "int32", "int32 sum")


def test_worker_that_waits_for_nothing_does_not_stall() -> None:
    link = DriverLink()
    clock = Clock(link=link)
    clock.reducer.is_waiting = False
    clock.keep(10 * STALL_S)
    assert clock.reducer.asked_s == []
    clock.deadlines.note_progress(10 * STALL_S)
    clock.reducer.is_waiting = True
    assert clock.deadlines.next_s <= 11 * STALL_S
    clock.keep(11 * STALL_S)
    assert clock.reducer.asked_s == [11 * STALL_S]


@pytest.mark.parametrize(("timeout_s", "ask_at_s"), [(60.0, 59.0), (2.0, 1.5)])
def test_tensor_is_asked_about_before_its_timeout(timeout_s: float, ask_at_s: float) -> None:
    clock = Clock(task(timeout_s))
    clock.keep(0.0)
    clock.keep(ask_at_s)
    assert clock.reducer.asked_s == [ask_at_s]
    with pytest.raises(AllreduceTimeoutError, match="verdict on tensor 1"):
        clock.keep(timeout_s)


def test_verdict_of_a_thread_that_was_held_up_waits_for_answers() -> None:
    clock = Clock(task(60.0))
    clock.keep(61.0)
    assert clock.deadlines.next_s == 61.0 + ASK_S
    with pytest.raises(AllreduceTimeoutError, match="verdict"):
        clock.keep(61.0 + VERDICT_AFTER_S)


def test_tensor_that_no_view_runs_expires_with_the_change() -> None:
    waiting = task(60.0, has_begun=False)
    clock = Clock(waiting)
    with pytest.raises(AllreduceTimeoutError, match="changing to view 1001"):
        clock.keep(60.0)
    clock.deadlines.keep_without_view([waiting], 59.0, 1001)
    with pytest.raises(AllreduceTimeoutError, match="changing to view 1001"):
        clock.deadlines.keep_without_view([waiting], 60.0, 1001)


def test_failure_is_reported_at_once_where_another_view_may_help() -> None:
    link = DriverLink()
    clock = Clock(link=link)
    clock.reducer.failure = MemberLostError("gone", 1)
    clock.keep(0.0)
    assert link.reports == [(1000, [1])]


def test_failure_that_no_view_mends_ends_the_session() -> None:
    cases: list[tuple[Any, HostlibError]] = [
        (DriverLink(), PeerMismatchError("other tensors")),
        (None, MemberLostError("gone", 1)),
    ]
    for link, failure in cases:
        clock = Clock(link=link)
        clock.reducer.failure = failure
        with pytest.raises(type(failure)):
            clock.keep(0.0)
