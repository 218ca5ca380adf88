# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Performs one drill: acts, waits for the stated outcome, verifies every sum on the way."""

from __future__ import annotations

import queue
import time
from dataclasses import dataclass

from benchmarks.drills.drill import Drill
from benchmarks.drills.scene import Rig, Scene
from benchmarks.drills.watch import Steady, watch
from job_workers import agree
from time_bound import wait_until


@dataclass(frozen=True, kw_only=True)
class Performance:
    """What came of a drill."""

    measured_s: float
    """From the failure to the stated outcome."""
    longest_pause_s: float
    """Longest time without a finished tensor at a member, 0 if the job ends."""
    reason: str
    """Why the job has its last view, as the controller says."""
    calm_s: float = 0.0
    """What the same progress took before the failure, where the switch decides that; it is allowed
    on top of the drill's time."""

    def is_in_time(self, drill: Drill) -> bool:
        """Whether the outcome was there in the stated time."""
        return self.measured_s <= drill.time_s + self.calm_s


def perform(rig: Rig, drill: Drill) -> Performance:
    """Perform a drill on its fabric, and put the rig back to work.

    Raises AssertionError or queue.Empty if the outcome is another one or does not come.
    """
    try:
        with rig.job(drill) as scene:
            begin_s = drill.act(scene)
            if drill.outcome.members:
                return _await_sums(scene, drill, begin_s)
            return _await_end(scene, drill, begin_s)
    finally:
        rig.restore()


def _await_sums(scene: Scene, drill: Drill, begin_s: float) -> Performance:
    outcome = drill.outcome
    members = [scene.workers[worker] for worker in outcome.members]
    seen = watch(members, outcome.members, begin_s, outcome.pause_s)
    _check_errors(scene, drill)
    scene.rig.clock.jump(0)  # the operator's certificate may be younger than the jump
    reason = ""
    if scene.rig.record_of("controller") is not None:
        if scene.view.path != outcome.path:
            seen = _await_path(scene, drill, begin_s)
        reason = scene.view.reason
    agree(list(scene.workers.values()))
    return Performance(measured_s=seen.since_s, longest_pause_s=seen.longest_pause_s, reason=reason)


def _await_path(scene: Scene, drill: Drill, begin_s: float) -> Steady:
    """Wait until the job has the stated path, and is steady again."""
    outcome = drill.outcome
    longest_s = 0.0

    def has_path() -> bool:
        nonlocal longest_s
        members = [scene.workers[worker] for worker in outcome.members]
        longest_s = max(
            longest_s, watch(members, outcome.members, begin_s, outcome.pause_s).longest_pause_s
        )
        return scene.view.path == outcome.path

    wait_until(has_path, lambda: f"path {outcome.path}: {scene.view}")
    at_s = time.monotonic()
    members = [scene.workers[worker] for worker in outcome.members]
    seen = watch(members, outcome.members, at_s, outcome.pause_s)
    return Steady(
        since_s=at_s - begin_s + seen.since_s,
        longest_pause_s=max(longest_s, seen.longest_pause_s),
    )


def _check_errors(scene: Scene, drill: Drill) -> None:
    for worker, text in drill.outcome.errors.items():
        error = scene.workers[worker].until_error()
        assert text in error, error


def _await_end(scene: Scene, drill: Drill, begin_s: float) -> Performance:
    _check_errors(scene, drill)
    return Performance(measured_s=time.monotonic() - begin_s, longest_pause_s=0.0, reason="")


def stated_time(drill: Drill, performance: Performance | None) -> str:
    """Return the time that a drill has, and what is allowed on top."""
    if performance is None or not performance.calm_s:
        return f"{drill.time_s:g} s"
    return f"{drill.time_s:g} s + {performance.calm_s:.2f} s"


def describe(drill: Drill, performance: Performance | None, problem: str) -> str:
    """Return one line that says what was measured."""
    if performance is None:
        return f"NOT REACHED: {problem}"
    verdict = "held" if performance.is_in_time(drill) else "MISSED"
    stated = stated_time(drill, performance)
    return (
        f"{verdict}: {performance.measured_s:.2f} s of {stated}, longest pause"
        f" {performance.longest_pause_s:.2f} s; last view: {performance.reason or 'none'}"
    )


PROBLEMS = (AssertionError, queue.Empty)
"""What `perform` raises if the outcome is not reached."""
