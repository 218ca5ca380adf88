# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Which workers are missing, by the reports of a tree's workers: each knows only its switch."""

from __future__ import annotations

import pytest

from switchfold.controller.jobs.stalls import STILL_S, WINDOW_S, Stalls

GENERATION = 7
LEAVES = {0: {2, 3}, 1: {2, 3}, 2: {0, 1, 3}}
"""Workers 0 and 1 below one leaf, 2 and 3 below the other; the root has heard of the first leaf."""
DEEP = {0: {1, 3, 5}, 1: {0, 2, 3, 5}, 2: {1, 3, 5}, 5: {1, 3}}
"""Worker 3 is missing at its leaf; 5 hears from the root, 0 and 2 from a switch in between."""


@pytest.mark.parametrize("reports", [LEAVES, DEEP])
def test_reports_of_all_others_name_the_missing_worker(reports: dict[int, set[int]]) -> None:
    stalls = Stalls()
    members = {*reports, 3}
    for now_s in (1.0, 2.0, 3.0):
        for worker_id, missing in reports.items():
            stalls.report(worker_id, GENERATION, now_s, missing)
            settled = stalls.missing(members, GENERATION, now_s)
            assert settled == ({3} if now_s == 3.0 else set()), "another may be about to report"
    assert not stalls.missing(members, GENERATION + 1, 3.0)
    assert not stalls.missing(members, GENERATION, 3.1 + WINDOW_S)


def test_worker_that_begins_to_report_is_missing_no_more() -> None:
    stalls = Stalls()
    for worker_id in (0, 1):
        stalls.report(worker_id, GENERATION, 1.0, LEAVES[worker_id])
    assert stalls.missing({0, 1, 2, 3}, GENERATION, 2.5) == {2, 3}
    stalls.report(2, GENERATION, 2.6, LEAVES[2])
    assert not stalls.missing({0, 1, 2, 3}, GENERATION, 2.6)
    assert stalls.missing({0, 1, 2, 3}, GENERATION, 4.2) == {3}


def test_several_workers_can_be_missing() -> None:
    stalls = Stalls()
    stalls.report(0, GENERATION, 1.0, {1, 2, 3})
    stalls.report(2, GENERATION, 1.0, {0, 1, 3})
    assert stalls.missing({0, 1, 2, 3}, GENERATION, 2.5) == {1, 3}


def test_workers_that_one_report_excludes_are_not_named() -> None:
    stalls = Stalls()
    stalls.report(0, GENERATION, 1.0, {1, 2})
    stalls.report(1, GENERATION, 1.0, set())
    assert not stalls.missing({0, 1, 2}, GENERATION, 3.0)
    stalls.report(2, GENERATION, 1.0, {0})
    assert not stalls.missing({0, 1, 2}, GENERATION, 3.0), "all workers wait, and none is missing"


def test_a_switch_that_begins_to_answer_is_not_cut_off_from_those_yet_to_report() -> None:
    stalls = Stalls()
    workers = {0, 1}
    stalls.report(0, GENERATION, 9.4, silent_s=2.0)
    stalls.report(1, GENERATION, 9.6, silent_s=2.0)
    assert stalls.cut_off(workers, GENERATION, 9.6) == ({0, 1}, set(), set())
    stalls.report(0, GENERATION, 10.4)
    assert stalls.cut_off(workers, GENERATION, 10.4) == (set(), {0}, {1})
    stalls.report(1, GENERATION, 10.6, silent_s=3.0)
    assert stalls.cut_off(workers, GENERATION, 10.6) == (set(), {0}, {1})
    stalls.report(0, GENERATION, 11.4)
    stalls.report(1, GENERATION, 11.6, silent_s=4.0)
    assert stalls.cut_off(workers, GENERATION, 11.6) == ({1}, {0}, set())
    stalls.report(1, GENERATION, 12.6)
    assert stalls.cut_off(workers, GENERATION, 12.6) == (set(), {0, 1}, set())


def test_worker_that_stops_reporting_has_progress() -> None:
    """Values that flow from member to member let one after the other wait, never all at once."""
    stalls = Stalls()
    stalls.report(0, GENERATION, 1.0)
    stalls.report(1, GENERATION, 1.0 + STILL_S + 0.1)
    assert not stalls.is_everybody({0, 1}, GENERATION, 1.0 + STILL_S + 0.1)
    stalls.report(0, GENERATION, 1.0 + STILL_S + 0.2)
    assert stalls.is_everybody({0, 1}, GENERATION, 1.0 + STILL_S + 0.2)
    assert not stalls.is_everybody({0, 1}, GENERATION + 1, 1.0 + STILL_S + 0.2)
