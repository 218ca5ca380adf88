# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A change of the job's view, as one worker sees it.

```text
            propose(graceful)            commit             all tensors < boundary done
  running ------------------> holding ----------> draining -----------------------------> running
     |   propose(abort)          |                   |                                in the new
     +------------+--------------+-------------------+                                    view
                  v                        commit                                            ^
               stopped ----------------------------------------------------------------------+
```

Holding: no further tensor starts. Stopped: nothing is sent, taken or completed, so that the
position that was told stays true. An abort beats a graceful change; a later generation beats an
earlier one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from ..control.view import JobView


@dataclass(frozen=True, kw_only=True)
class Commit:
    """The view that was agreed on."""

    view: JobView
    boundary: int
    """Number of the first tensor that runs there."""
    source_worker: int
    """Has the results of all tensors before."""


@final
class ViewChange:
    """What is proposed and what is committed; used by the I/O thread alone."""

    def __init__(self, generation: int) -> None:
        self.generation = generation
        """Of the newest view that was entered, proposed or committed."""
        self._entered = generation
        self.is_stopped = False
        """Whether an abort is proposed and not committed yet."""
        self.is_graceful = False
        """Whether a graceful change is proposed and not entered yet."""
        self.limit: int | None = None
        """The first tensor that must not start in the present view, where there is one."""
        self.commit: Commit | None = None
        self.deferred: tuple[int, Callable[[int], None]] | None = None
        """A graceful proposal (generation, reply) that came while a view was being entered.

        To be proposed again then: others may have started tensors in that view already, and what
        they started has to run there.
        """

    def propose(
        self,
        generation: int,
        is_abort: bool,
        reply: Callable[[int], None],
        *,
        num_started: int,
        num_completed: int,
    ) -> None:
        """Take a proposal and answer it with this worker's position; ignore an outdated one."""
        is_old = generation <= self._entered or generation < self.generation
        is_agreed = self.commit is not None and generation == self.generation
        if is_old or is_agreed:
            return
        if self.commit is not None and not is_abort:
            self.deferred = generation, reply
            return
        if self.is_stopped and not is_abort:
            return
        self.generation = generation
        self.commit = self.deferred = None
        if is_abort:
            self.is_stopped, self.is_graceful, self.limit = True, False, num_completed
        else:
            self.is_graceful, self.limit = True, num_started
        assert self.limit is not None
        reply(self.limit)

    def agree(self, commit: Commit, *, num_started: int) -> None:
        """Take a commit; one without a proposal that this worker heard counts as well."""
        generation = commit.view.generation
        if generation <= self._entered or generation < self.generation:
            return
        self.generation = commit.view.generation
        self.commit = commit
        if num_started > commit.boundary:
            self.is_stopped = True  # what was started beyond has to be redone
        self.limit = commit.boundary

    def ready(self, num_completed: int) -> Commit | None:
        """Return the commit that is to be entered now, if there is one; then it is taken."""
        commit = self.commit
        if commit is None or not (self.is_stopped or num_completed >= commit.boundary):
            return None
        self._entered = commit.view.generation
        self.commit = self.limit = None
        self.is_stopped = self.is_graceful = False
        return commit
