# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests that the checklist of transport.md names, and writes their outcomes into it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "transport.md"
_TABLE: Final = re.compile(r"(<!-- checklist: .*-->\n\| feature .*\n\|[-|]+\|\n)((?:\|.*\n)+)")
_TEST: Final = re.compile(r"`([\w/]+\.py::\w+)`")
ANSWER: Final = "answer"
OUTCOMES: Final = ("pass", "fail", ANSWER)


@dataclass(frozen=True)
class Row:
    """A feature, whether it passed, and by which tests or why not."""

    feature: str
    outcome: str
    text: str

    @property
    def tests(self) -> list[str]:
        """The tests that the text names, as "file::function" below tests/."""
        return _TEST.findall(self.text)


def read_rows(page: str) -> list[Row]:
    """Return the checklist of a page."""
    found = _TABLE.search(page)
    if found is None:
        raise SystemExit(f"error: {PAGE} has no checklist; its comment and head must stay")
    lines = found[2].splitlines()
    return [Row(*(cell.strip() for cell in line.strip("|").split("|"))) for line in lines]


def write_rows(page: str, rows: Sequence[Row]) -> str:
    """Return a page with these rows as its checklist."""
    lines = "".join(f"| {row.feature} | {row.outcome} | {row.text} |\n" for row in rows)
    return _TABLE.sub(lambda found: found[1] + lines, page)


class Outcomes:
    """A plugin of pytest that keeps what became of some tests."""

    def __init__(self, names: Iterable[str]) -> None:
        self._passed: dict[str, list[bool]] = {name: [] for name in names}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note one phase of one case."""
        name = report.nodeid.removeprefix("tests/").partition("[")[0]
        if name in self._passed and (report.failed or (report.when == "call" and report.passed)):
            self._passed[name].append(report.passed)

    @property
    def passed(self) -> dict[str, bool]:
        """Of each test, whether at least one of its cases passed, and none failed."""
        return {name: bool(each) and all(each) for name, each in self._passed.items()}


def judge(rows: Sequence[Row], outcomes: dict[str, bool]) -> list[Row]:
    """Return the rows with outcomes of the tests; answers stay answers."""
    return [
        row
        if row.outcome == ANSWER
        else replace(row, outcome="pass" if all(outcomes[name] for name in row.tests) else "fail")
        for row in rows
    ]


def main() -> int:
    """Run the tests; return 1 if one did not pass."""
    page = PAGE.read_text("utf-8")
    rows = read_rows(page)
    names = sorted({name for row in rows for name in row.tests})
    os.chdir(ROOT)
    kept = Outcomes(names)
    pytest.main(["-q", "-n", "2", *(f"tests/{name}" for name in names)], plugins=[kept])
    outcomes = kept.passed
    judged = judge(rows, outcomes)
    PAGE.write_text(write_rows(page, judged), "utf-8")
    for outcome in OUTCOMES:
        print(f"{outcome}: {sum(row.outcome == outcome for row in judged)} of {len(judged)}")
    failed = [name for name, passed in outcomes.items() if not passed]
    for name in failed:
        print(f"did not pass: {name}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
