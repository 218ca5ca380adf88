# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Estimates of a link that is halved: which report is right, and which update comes next."""

from __future__ import annotations

import pytest

from benchmarks.scheduler.link_estimates import EstimateReport, RateChange, judge


def report(estimate: float, planned_s: float, measured_s: float) -> EstimateReport:
    return EstimateReport(
        planned_s=planned_s, measured_s=measured_s, limit="grant", estimate=estimate, true=10e6
    )


SLOW = [report(20e6, 0.4, 0.8), report(14e6, 0.4, 0.8), report(9.5e6, 0.6, 0.8)]
LATE = RateChange(halved=[*SLOW, report(10e6, 0.8, 0.9)], restored=[], back_s=11.0)
QUICK = [report(10.5e6, 0.4, 0.8), report(12e6, 0.8, 0.6)]
SOON = RateChange(halved=QUICK, restored=[], back_s=1.0)


def test_the_next_update_is_that_after_the_first_right_report() -> None:
    assert [each.is_right for each in LATE.halved] == [False, False, True, True]
    assert (LATE.num_reports, SOON.num_reports) == (3, 1)
    assert LATE.next_lateness == pytest.approx(0.125)
    assert SOON.next_lateness == pytest.approx(-0.25)


def test_aims_that_are_missed_are_not_counted_as_met(capsys: pytest.CaptureFixture[str]) -> None:
    judge(1, [LATE, SOON])
    told = capsys.readouterr().out.splitlines()
    assert [line.rpartition(": ")[2] for line in told[1:]] == ["1 of 2"] * 3
    shown = [" .. 3)", " .. 25)", " .. 11.00)"]
    assert all(each in line for each, line in zip(shown, told[1:], strict=True))
