# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""docs/security.md: each row says can or cannot, and names tests that exist."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from named_tests import TESTS, is_test

PAGE = (TESTS.parent / "docs" / "security.md").read_text("utf-8")
MARK = "<!-- attacker: checked by tests/unit/docs/test_security_page.py -->"
HEAD = "| action | outcome today | shown by |\n|---|---|---|\n"
UNTESTED = "not tested"
NUM_ATTACKERS = 6
THREATENED = {"all", "availability", "secrecy", "sums"}


@dataclass(frozen=True)
class Row:
    """What an attacker tries, what comes of it, and the tests that show it."""

    action: str
    outcome: str
    shown_by: str

    @property
    def tests(self) -> list[str]:
        """The tests as "file::function"; none if the row says that nothing shows it."""
        if self.shown_by == UNTESTED:
            return []
        return [name.strip().strip("`") for name in self.shown_by.split(",")]


def read_tables(page: str) -> list[list[Row]]:
    """Return the rows of each attacker's table."""
    tables: list[list[Row]] = []
    for part in page.split(MARK)[1:]:
        text = part.lstrip("\n")
        assert text.startswith(HEAD), text.splitlines()[0]
        lines = text.removeprefix(HEAD).partition("\n\n")[0].splitlines()
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        tables.append([Row(*row) for row in cells])
    return tables


ROWS = [row for table in read_tables(PAGE) for row in table]


def test_every_attacker_has_a_table() -> None:
    tables = read_tables(PAGE)
    assert len(tables) == NUM_ATTACKERS
    assert all(len(table) > 5 for table in tables)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.action)
def test_row_names_tests_that_exist(row: Row) -> None:
    assert set(re.split(", ", row.action.partition(":")[0])) <= THREATENED
    assert re.match(r"(can|cannot)\b", row.outcome)
    assert row.tests or row.shown_by == UNTESTED
    assert not [name for name in row.tests if not is_test(name)]


@pytest.mark.parametrize(
    "name",
    [
        "packet/test_worker_admission.py",
        "packet/test_worker_admission.py::test_that_nobody_wrote",
        "packet/test_that_is_no_file.py::test_worker_admission_foreign_job",
        "packet/conftest.py::target",
        "",
    ],
)
def test_name_that_is_no_test_is_noticed(name: str) -> None:
    assert not is_test(name)
