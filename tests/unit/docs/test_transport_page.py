# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""docs/transport.md: each row of the checklist passes by tests that exist, or is answered."""

from __future__ import annotations

import re
from typing import Any, cast

import pytest

from docs.build_transport import ANSWER, PAGE, Outcomes, Row, judge, read_rows, write_rows
from named_tests import is_test

TEXT = PAGE.read_text("utf-8")
ROWS = read_rows(TEXT)
NUM_ROWS = 37
Phases = list[tuple[str, str, str]]
"""Of cases: name, phase, outcome."""


def test_checklist_is_whole() -> None:
    assert len({row.feature for row in ROWS}) == NUM_ROWS


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.feature)
def test_row_passes_or_is_answered(row: Row) -> None:
    assert row.outcome in ("pass", ANSWER)
    assert row.tests or row.outcome == ANSWER
    assert not [name for name in row.tests if not is_test(name)]
    if row.outcome == ANSWER:
        assert re.sub(r"`[^`]*`", "", row.text).rstrip(" ,").endswith(".")


def test_page_is_written_as_it_is_read() -> None:
    assert write_rows(TEXT, ROWS) == TEXT
    changed = [Row(row.feature, "fail", row.text) for row in ROWS]
    assert read_rows(write_rows(TEXT, changed)) == changed


@pytest.mark.parametrize(
    ("phases", "expected"),
    [
        ([("test_x", "call", "passed")], True),
        ([("test_x[1]", "call", "passed"), ("test_x[2]", "call", "passed")], True),
        ([("test_x[1]", "call", "passed"), ("test_x[2]", "setup", "skipped")], True),
        ([("test_x[1]", "call", "passed"), ("test_x[2]", "call", "failed")], False),
        ([("test_x", "setup", "failed")], False),
        ([("test_x", "call", "passed"), ("test_x", "teardown", "failed")], False),
        ([("test_x", "setup", "passed"), ("test_x", "call", "skipped")], False),
        ([("test_xy", "call", "passed")], False),
        ([], False),
    ],
)
def test_row_fails_unless_its_tests_ran_and_passed(phases: Phases, expected: bool) -> None:
    name = "unit/test_a.py::test_x"
    outcomes = Outcomes([name])
    for case, when, outcome in phases:
        outcomes.pytest_runtest_logreport(
            pytest.TestReport(
                f"tests/unit/test_a.py::{case}",
                ("", None, ""),
                {},
                cast("Any", outcome),
                None,
                cast("Any", when),
            )
        )
    assert outcomes.passed == {name: expected}
    rows = [Row("a", "pass", f"`{name}`"), Row("b", ANSWER, f"Not there. `{name}`")]
    assert [row.outcome for row in judge(rows, outcomes.passed)] == [
        "pass" if expected else "fail",
        ANSWER,
    ]
