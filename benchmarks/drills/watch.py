# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""When a job's sums are steady again after a failure, from the lines of its workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from job_workers import WorkerProcess

STEADY_S: Final = 1.0
"""Sums are steady if so long no pause began ..."""
STEADY_TENSORS: Final = 10
"""... and so many tensors ended."""


@dataclass(frozen=True, kw_only=True)
class Steady:
    """What the workers that go on have seen since a moment."""

    since_s: float
    """When the last of them was steady; in seconds after that moment."""
    longest_pause_s: float
    """Longest time without a finished tensor at any of them."""


def watch(
    workers: Sequence[WorkerProcess], members: Sequence[int], begin_s: float, pause_s: float
) -> Steady:
    """Read on until each worker's sums are steady, with exactly these members.

    A longer time than `pause_s` without a finished tensor is a pause.
    Every sum is verified on the way. Raises AssertionError for a wrong sum or an error, queue.Empty
    when a worker writes nothing for a minute.
    """
    seen = [_watch_one(worker, [*members], begin_s, pause_s) for worker in workers]
    return Steady(
        since_s=max(each.since_s for each in seen),
        longest_pause_s=max(each.longest_pause_s for each in seen),
    )


def _watch_one(
    worker: WorkerProcess, members: list[int], begin_s: float, longest_allowed_s: float
) -> Steady:
    # What a worker does before its first tensor is no pause.
    last_s, longest_s = (begin_s if worker.lines else None), 0.0
    steady_s, num_tensors = None, 0
    while True:
        line = worker.next()
        at_s: float = line["at_s"]
        if at_s <= begin_s:
            continue
        pause_s = 0.0 if last_s is None else at_s - last_s
        longest_s, last_s = max(longest_s, pause_s), at_s
        if line["members"] != members:
            steady_s = None
        elif steady_s is None or pause_s > longest_allowed_s:
            steady_s, num_tensors = at_s, 0
        num_tensors += 1
        if steady_s is not None and at_s - steady_s >= STEADY_S and num_tensors >= STEADY_TENSORS:
            break
    return Steady(since_s=steady_s - begin_s, longest_pause_s=longest_s)
