# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Drills and soak: what is called held, late, leaked, or no record."""

from __future__ import annotations

import math
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.drills.catalogue import DRILLS
from benchmarks.drills.drill import TIME_S, Drill, StatedOutcome
from benchmarks.drills.footprint import ProcessFootprint, process_footprint
from benchmarks.drills.perform import Performance, describe
from benchmarks.drills.report import DrillRow, markdown
from benchmarks.drills.soak_run import SoakRecord
from benchmarks.drills.soak_verdict import (
    MORE_DESCRIPTORS,
    MORE_MEMORY_BYTES,
    MORE_POOL_THREADS,
    MORE_THREADS,
    MOST_DRIFT,
    drift,
    problems,
)
from benchmarks.drills.watch import watch
from switchfold.softswitch.p4runtime.service.server import POOL_NAME
from switchfold.softswitch.p4runtime.thread_name import name_this_thread

NAMESPACES = {"sf-soak-h1", "sf-soak-s1"}
FIRST = ProcessFootprint(memory_bytes=10**8, descriptors=20, threads=9, pool_threads=4)
LINE = "2026-11-25 15:10:53,727 INFO switchfold.controller.server: option lease_s = 6"


def act(_: object) -> float:
    return 0.0


def row(measured_s: float | None) -> DrillRow:
    performance = None
    if measured_s is not None:
        performance = Performance(measured_s=measured_s, longest_pause_s=0.1, reason="")
    drill = Drill(name="worker killed", fails="worker 3 is killed", act=act)
    return DrillRow(target="softswitch", drill=drill, performance=performance, problem="a | b")


def test_drills_have_names_of_their_own() -> None:
    assert len({drill.name for drill in DRILLS}) == len(DRILLS)


def test_time_of_its_own_needs_a_reason() -> None:
    with pytest.raises(ValueError, match="needs a reason"):
        Drill(name="slow", fails="", act=act, time_s=9.0)


def test_outcome_names_members_and_errors() -> None:
    outcome = StatedOutcome(members=(0, 1), errors={3: "cut off", 2: "cut off"})
    assert str(outcome) == 'exact sums of workers 0, 1 by switches; worker 2, 3: error "cut off"'


@pytest.mark.parametrize(
    ("measured_s", "verdict"), [(TIME_S, "held"), (TIME_S + 0.01, "missed"), (None, "not reached")]
)
def test_row_says_whether_the_drill_held(measured_s: float | None, verdict: str) -> None:
    assert row(measured_s).verdict == verdict
    page = markdown([row(measured_s)], {"cores": 2})
    assert f"{int(verdict == 'held')} of 1 drills held" in page
    assert (r"**" in page) == (verdict != "held")
    assert r"a \| b" in page or verdict == "held"


@pytest.mark.parametrize(("measured_s", "verdict"), [(9.0, "held"), (9.1, "missed")])
def test_what_the_same_takes_in_calm_is_allowed_and_shown(measured_s: float, verdict: str) -> None:
    late = Performance(measured_s=measured_s, longest_pause_s=0.0, reason="", calm_s=9.0 - TIME_S)
    slow = replace(row(None), performance=late)
    assert slow.verdict == verdict
    assert f"| {TIME_S:g} s + {9.0 - TIME_S:.2f} s | {measured_s:.2f} s |" in markdown([slow], {})
    assert describe(slow.drill, late, "").lower().startswith(verdict)


class Told:
    """A worker whose lines are written by hand: members, and when the tensor ended."""

    def __init__(self, *lines: tuple[list[int], float]) -> None:
        self.lines: list[object] = ["one from before"]
        self._told = iter(lines)

    def next(self) -> dict[str, object]:
        members, at_s = next(self._told)
        return {"members": members, "at_s": at_s}


def test_watch_counts_from_the_last_pause_and_the_last_other_member() -> None:
    before = [([0, 1], 9.9), ([0, 1], 10.1)]
    after = [([0], 11.0 + 0.1 * n) for n in range(5)] + [([0], 13.0 + 0.1 * n) for n in range(20)]
    seen = watch([Told(*before, *after)], [0], 10.0, 0.5)  # type: ignore[list-item]
    assert seen.since_s == pytest.approx(3.0)
    assert seen.longest_pause_s == pytest.approx(1.6)


def test_threads_that_serve_calls_are_counted_apart() -> None:
    with ThreadPoolExecutor(1, initializer=name_this_thread, initargs=(POOL_NAME,)) as pool:
        number = pool.submit(threading.get_native_id).result()
        assert Path(f"/proc/self/task/{number}/comm").read_text() == f"{POOL_NAME}\n"
        found = process_footprint(os.getpid())
        assert found.pool_threads >= 1
        assert found.threads >= 1, "this one"


def record(last: ProcessFootprint) -> SoakRecord:
    return SoakRecord(
        rounds=1,
        footprints={"controller": [FIRST, last]},
        namespaces=(NAMESPACES, NAMESPACES, set()),
        logs={"controller": [LINE]},
    )


def test_soak_without_a_leak_has_no_problem() -> None:
    assert problems(record(FIRST)) == []
    grown = replace(FIRST, memory_bytes=FIRST.memory_bytes + MORE_MEMORY_BYTES)
    assert problems(record(grown)) == [], "not yet a leak"


@pytest.mark.parametrize(
    ("last", "word"),
    [
        (replace(FIRST, memory_bytes=FIRST.memory_bytes + MORE_MEMORY_BYTES + 1), "memory"),
        (replace(FIRST, descriptors=FIRST.descriptors + MORE_DESCRIPTORS + 1), "descriptors"),
        (replace(FIRST, threads=FIRST.threads + MORE_THREADS + 1), "threads"),
        (replace(FIRST, pool_threads=FIRST.pool_threads + MORE_POOL_THREADS + 1), "serve calls"),
    ],
)
def test_soak_names_what_a_process_has_leaked(last: ProcessFootprint, word: str) -> None:
    (problem,) = problems(record(last))
    assert word in problem


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"slots_left": 3}, "3 slots"),
        ({"namespaces": (NAMESPACES, NAMESPACES, NAMESPACES)}, "namespaces"),
        ({"namespaces": (NAMESPACES, {"sf-soak-h1"}, set())}, "namespaces"),
        ({"logs": {"s1": ["Traceback (most recent call last):"]}}, "no record"),
        ({"logs": {"s1": [LINE] * 100}}, "100 lines in 1 rounds"),
    ],
)
def test_soak_names_what_is_left(changes: dict[str, object], word: str) -> None:
    (problem,) = problems(replace(record(FIRST), **changes))  # type: ignore[arg-type]
    assert word in problem


def test_drift_is_that_of_the_medians_of_the_first_and_last_third() -> None:
    rounds = [*[(9.0, 40.0), (10.0, 900.0), (11.0, 12.0)] * 5, *[(50.0, 60.0)] * 15]
    rounds += [(12.0, 99.0)] * 14 + [(99.0, 99.0)]
    seen = replace(record(FIRST), latencies_ms=rounds)
    assert drift(seen) == pytest.approx(1.2)
    assert drift(seen) < MOST_DRIFT, "a round that is slow does not count"
    assert math.isnan(drift(replace(seen, latencies_ms=rounds[:29]))), "too few to tell"
