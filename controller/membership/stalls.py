# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Workers that send and hear nothing back: when that is the path's fault, and not a slow worker's.

One worker that waits for another has no progress either. But a worker that reports has sent its own
part: when all of them report, nobody is waited for, and the path is broken.
"""

from __future__ import annotations

from typing import Final

from controller.job import Generation, WorkerId

WINDOW_S: Final = 5.0
"""Reports that are older do not count."""
AVOID_S: Final = 20.0
"""When a path breaks again within this time of its repair, it is left."""


class Stalls:
    """The reports of one job."""

    def __init__(self) -> None:
        self._reports: dict[WorkerId, tuple[Generation, float]] = {}
        self._repaired_s = float("-inf")

    def report(self, worker_id: WorkerId, generation: Generation, now_s: float) -> None:
        """Note a worker's report."""
        self._reports[worker_id] = (generation, now_s)

    def is_everybody(self, workers: set[WorkerId], generation: Generation, now_s: float) -> bool:
        """Return whether all workers have reported this layout of late."""
        return all(
            generation == reported and now_s - at_s <= WINDOW_S
            for reported, at_s in (
                self._reports.get(worker, (0, float("-inf"))) for worker in workers
            )
        )

    def repair(self, now_s: float) -> bool:
        """Start afresh; return whether the last repair did not help for long."""
        is_again = now_s - self._repaired_s <= AVOID_S
        self._repaired_s = now_s
        self._reports.clear()
        return is_again
