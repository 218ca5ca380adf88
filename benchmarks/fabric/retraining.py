# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The same run at other learning rates: training is done again along its measured times.

When an update is asked for, sent and applied does not depend on its values. So each worker computes
again on the version that it had, and each update is applied when it was; only the rate differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from benchmarks.fabric.run_record import FabricRun
from benchmarks.fabric.tasks import FabricWorkload, Floats, TaskPlan

FACTORS: Final = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Of the rate of the run itself."""


def best_rate(
    record: FabricRun, workload: FabricWorkload, plan: TaskPlan, target: float
) -> tuple[float | None, float]:
    """Return the least time to the target over all rates, and its rate; None: none gets there."""
    found = [
        (time_to_target(record, workload, replace(plan, learning_rate=rate), target), rate)
        for rate in (factor * record.learning_rate for factor in FACTORS)
    ]
    known = [(time_s, rate) for time_s, rate in found if time_s is not None]
    return min(known, default=(None, record.learning_rate))


def time_to_target(
    record: FabricRun, workload: FabricWorkload, plan: TaskPlan, target: float
) -> float | None:
    """Return when training at the plan's rate reaches the target, None if it does not."""
    tasks = [plan.make(worker) for worker in range(plan.num_workers)]
    steps: dict[int, list[tuple[int, int, int]]] = {}
    for worker, rows in enumerate(record.rows):
        for row in rows:
            if row["version"]:
                step = worker, row["iteration"], row["computed_on"]
                steps.setdefault(row["version"], []).append(step)
    oldest = _oldest_needed(steps)
    share = np.float32(1 / record.per_version)
    times = record.commit_times
    models: dict[int, Floats] = {0: tasks[0].start()}
    for version in sorted(steps):
        model = models[version - 1].copy()
        for worker, iteration, computed_on in steps[version]:
            model += share * tasks[worker].update(models[computed_on], iteration)
        if not np.isfinite(model).all():
            return None
        if workload.reaches(tasks[0].score(model), target):
            return times[version]
        models[version] = model
        for old in [each for each in models if each < oldest[version]]:
            del models[old]
    return None


def _oldest_needed(steps: Mapping[int, Sequence[tuple[int, int, int]]]) -> dict[int, int]:
    """Return by version the oldest one that updates after it were computed on, or itself."""
    found: dict[int, int] = {}
    oldest = max(steps, default=0)
    for version in sorted(steps, reverse=True):
        found[version] = min(version, oldest)
        oldest = min(oldest, *(computed_on for _, _, computed_on in steps[version]))
    return found
