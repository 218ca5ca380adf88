# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The deadlines of a session: when to ask why no result comes, to report it, and to give up.

| deadline | due | what happens then |
|---|---|---|
| `STALL` | a reducer's `stall_s` after the last progress, if results are due | ask, then report |
| `ASK` | up to LEAD_S before a tensor's timeout | ask |
| `EXPIRY` | at a tensor's timeout | end the session with the reducer's verdict |

To ask is to send probes: their answers show what the oldest chunk waits for. A report to the
controller and a verdict both rest on such answers, so both wait until the answers had time to come.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import final

from ..control.controller_seam import ControllerLink
from ..control.submitted_tensor import SubmittedTensor, SubmittedTensors
from ..errors import AllreduceTimeoutError, PeerMismatchError
from .reducer import Reducer, Task

LEAD_S = 1.0
"""Probing starts this long before a tensor's timeout, or at three quarters of a short timeout."""
REPORT_S = 1.0
"""Pause between two reports of a stall."""
ASK_S = 0.05
"""Pause between two probes."""
REPORT_AFTER_S = 2 * ASK_S
"""Time for probes and answers before a report."""
VERDICT_AFTER_S = 4 * ASK_S
"""Time for probes and answers before a verdict."""


class DeadlineKind(enum.Enum):
    """What a deadline is for."""

    STALL = enum.auto()
    ASK = enum.auto()
    EXPIRY = enum.auto()


@dataclass(frozen=True, slots=True)
class Deadline:
    """One deadline. While its cause stands, it is due again every ASK_S."""

    kind: DeadlineKind
    due_s: float
    """On the monotonic clock."""
    task: Task | None = None
    """The tensor that it is about; None for a stall, which is about the whole view."""

    def next_s(self, now_s: float) -> float:
        """Return when it is due next."""
        return self.due_s if now_s < self.due_s else now_s + ASK_S


@final
class Deadlines:
    """Keeps the deadlines of one session; used by its I/O thread alone."""

    def __init__(
        self, link: ControllerLink | None, complete: Sequence[SubmittedTensor] = ()
    ) -> None:
        """Report stalls to `link`; without a link there are none to report.

        `complete`: the last tensors that have a result, which a report names too.
        """
        self._link = link
        self._complete = complete
        self.next_s = 0.0
        """No deadline is due before."""
        self._progress_s = 0.0
        self._asked_s = math.inf  # since when probes go out without a pause
        self._reported_s = -math.inf

    def begin_view(self, now_s: float) -> None:
        """Start with another view: nothing is known of its path yet."""
        self._progress_s = now_s
        self._asked_s = math.inf
        self.next_s = 0.0

    def add(self, task: Task) -> None:
        """Keep the deadlines of a submitted tensor too."""
        self.next_s = min(self.next_s, _ask_at_s(task))

    def note_progress(self, now_s: float) -> None:
        """Learn that an awaited result came at `now_s`, or that none is due."""
        self._progress_s = max(self._progress_s, now_s)

    def keep(
        self,
        reducer: Reducer,
        tasks: Iterable[Task],
        now_s: float,
        generation: int,
        unreached: Collection[int] = (),
    ) -> None:
        """Do what the deadlines of a view and of unfinished tensors ask for.

        `generation` is the newest view that is known. `unreached`: workers that alone may have a
        result from before the view, and answer nobody; that is a stall, too.

        Raises the error that ends the session: a reducer's failure that no other view can mend, or
        the verdict on a tensor.
        """
        failure = reducer.failure
        if failure is None and now_s < self.next_s:
            return
        if failure is not None and (self._link is None or isinstance(failure, PeerMismatchError)):
            raise failure
        tasks = list(tasks)
        is_waiting = reducer.is_waiting or bool(unreached)
        table = list(self._table(reducer, tasks, is_waiting=is_waiting))
        # A stall can begin at any moment, and is due no sooner.
        self.next_s = now_s + reducer.stall_s
        self.next_s = min([self.next_s, *(deadline.next_s(now_s) for deadline in table)])
        due = [deadline for deadline in table if now_s >= deadline.due_s]
        # In this order: a verdict and a report need what was asked, and a verdict ends all.
        self._ask(reducer, due, now_s)
        self._expire(reducer, due, now_s, generation)
        self._report(reducer, due, tasks, now_s, unreached)

    def keep_without_view(self, tasks: Iterable[Task], now_s: float, generation: int) -> None:
        """Raise AllreduceTimeoutError if a tensor expires while no view is at work."""
        for task in tasks:
            if now_s >= task.deadline_s:
                raise _view_change_timeout(task, generation)

    def _table(
        self, reducer: Reducer, tasks: Iterable[Task], *, is_waiting: bool
    ) -> Iterator[Deadline]:
        if self._link is not None and is_waiting:
            has_failed = reducer.failure is not None
            stalled_s = -math.inf if has_failed else self._progress_s + reducer.stall_s
            yield Deadline(DeadlineKind.STALL, stalled_s)
        for task in tasks:
            yield Deadline(DeadlineKind.ASK, _ask_at_s(task), task)
            yield Deadline(DeadlineKind.EXPIRY, task.deadline_s, task)

    def _ask(self, reducer: Reducer, due: list[Deadline], now_s: float) -> None:
        """Probe while any deadline is due; forget the answers once none is."""
        if due:
            reducer.ask(now_s)
            self._asked_s = min(self._asked_s, now_s)
        else:
            reducer.end_probe()
            self._asked_s = math.inf

    def _expire(self, reducer: Reducer, due: list[Deadline], now_s: float, generation: int) -> None:
        for deadline in due:
            task = deadline.task
            if deadline.kind is not DeadlineKind.EXPIRY or task is None:
                continue
            if not task.has_begun:
                raise _view_change_timeout(task, generation)
            # A thread that was held up has not asked in time: it waits for answers first.
            if now_s >= self._asked_s + min(VERDICT_AFTER_S, _lead_s(task)):
                raise reducer.verdict(task)

    def _report(
        self,
        reducer: Reducer,
        due: list[Deadline],
        tasks: Sequence[Task],
        now_s: float,
        unreached: Collection[int],
    ) -> None:
        """Report a stall to the controller.

        With the workers that the oldest chunk waits for, or that do not answer, and the tensors
        that this one waits for.
        """
        is_stalled = any(deadline.kind is DeadlineKind.STALL for deadline in due)
        if self._link is None or not is_stalled or now_s < self._reported_s + REPORT_S:
            return
        if reducer.failure is None and now_s < self._asked_s + REPORT_AFTER_S:
            return
        self._reported_s = now_s
        submitted = SubmittedTensors.of(self._complete, (task.submitted for task in tasks))
        self._link.stalled(
            reducer.view.generation,
            reducer.missing or sorted(unreached),
            submitted,
            reducer.silent_s(now_s),
            reducer.silent_tree,
        )


def _lead_s(task: Task) -> float:
    """Return how long before its timeout the worker asks about a tensor."""
    return min(LEAD_S, task.timeout_s / 4)


def _ask_at_s(task: Task) -> float:
    return task.deadline_s - _lead_s(task)


def _view_change_timeout(task: Task, generation: int) -> AllreduceTimeoutError:
    return AllreduceTimeoutError(
        f"tensor {task.tensor_id}: no result after {task.timeout_s} s; the job was changing to"
        f" view {generation}, and the change did not end: see whether the controller runs"
    )
