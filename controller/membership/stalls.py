# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Workers that send and hear nothing back: when that is the path's fault, and not a slow worker's.

One worker that waits for another has no progress either. But a worker that reports has sent its own
part: when all of them report, nobody is waited for, and the path is broken.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from controller.job import Generation, WorkerId

WINDOW_S: Final = 5.0
"""Reports that are older do not count."""
SETTLED_S: Final = 1.5
"""Whoever has not reported after so long is not going to: workers report each second."""
AVOID_S: Final = 20.0
"""When a path breaks again within this time of its repair, it is left."""


@dataclass(frozen=True)
class _Report:
    generation: Generation
    since_s: float
    at_s: float
    missing: frozenset[WorkerId]

    def is_of(self, generation: Generation, now_s: float) -> bool:
        return generation == self.generation and now_s - self.at_s <= WINDOW_S


class Stalls:
    """The reports of one job."""

    def __init__(self) -> None:
        self._reports: dict[WorkerId, _Report] = {}
        self._repaired_s = float("-inf")

    def report(
        self,
        worker_id: WorkerId,
        generation: Generation,
        now_s: float,
        missing: Collection[WorkerId] = (),
    ) -> None:
        """Note a worker's report: who may be missing, as far as its own switch knows."""
        before = self._reports.get(worker_id)
        is_more = before is not None and before.is_of(generation, now_s)
        since_s = before.since_s if before is not None and is_more else now_s
        self._reports[worker_id] = _Report(generation, since_s, now_s, frozenset(missing))

    def missing(
        self, workers: set[WorkerId], generation: Generation, now_s: float
    ) -> set[WorkerId]:
        """Return who is missed by all that have reported of late, when those are all the others.

        A switch knows only what has reached it: a worker whose part waits in another switch is
        missed there. But it waits too, and reports.
        """
        fresh = {
            worker: report
            for worker, report in self._reports.items()
            if worker in workers and report.is_of(generation, now_s)
        }
        others = workers - fresh.keys()
        is_known = bool(fresh) and all(
            others <= report.missing and now_s - report.since_s >= SETTLED_S
            for report in fresh.values()
        )
        return others if is_known else set()

    def is_everybody(self, workers: set[WorkerId], generation: Generation, now_s: float) -> bool:
        """Return whether all workers have reported this layout of late."""
        reports = self._reports
        return all(
            worker in reports and reports[worker].is_of(generation, now_s) for worker in workers
        )

    def repair(self, now_s: float) -> bool:
        """Start afresh; return whether the last repair did not help for long."""
        is_again = now_s - self._repaired_s <= AVOID_S
        self._repaired_s = now_s
        self._reports.clear()
        return is_again
