# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The quick run leaves out tests that exist and take long; the smoke test has tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import long_tests
from named_tests import TESTS, is_test

MAKEFILE = (TESTS.parent / "Makefile").read_text("utf-8")
JUNIT = """<testsuites><testsuite>
<testcase classname="tests.unit.a.test_x" name="test_one[2-3]" time="0.1" />
<testcase classname="tests.unit.a.test_x" name="test_one[2-[4]]" time="0.5" />
<testcase classname="tests.unit.a.test_x" name="test_two" time="0.3" />
<testcase classname="tests.packet.test_y" name="test_three" time="9.0" />
</testsuite></testsuites>
"""


def test_list_names_unit_tests_that_exist() -> None:
    names = long_tests.listed()
    assert [name for name in names if not is_test(name)] == []
    assert all(name.startswith("unit/") for name in names)


def test_list_is_a_small_part() -> None:
    functions = sum(
        len(re.findall(r"^(?:async )?def test_", path.read_text("utf-8"), re.MULTILINE))
        for path in (TESTS / "unit").rglob("test_*.py")
    )
    assert len(long_tests.listed()) < functions / 4


def test_list_is_made_of_the_longest_case_of_each_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "junit.xml").write_text(JUNIT, encoding="utf-8")
    found = long_tests.find_long(tmp_path / "junit.xml")
    assert found == ["packet/test_y.py::test_three", "unit/a/test_x.py::test_one"]
    monkeypatch.setattr(long_tests, "LIST", tmp_path / "list.txt")
    long_tests.write_list(found)
    assert long_tests.listed() == set(found)


def test_names_have_no_parameters() -> None:
    assert long_tests.name_of("tests/unit/a/test_x.py::test_one[a::b[c]]") == (
        "unit/a/test_x.py::test_one"
    )


def test_smoke_test_has_tests_that_exist() -> None:
    found = re.search(r"^SMOKE := ((?:.*\\\n)*.*)$", MAKEFILE, re.MULTILINE)
    assert found is not None
    names = found[1].replace("\\\n", " ").split()
    assert len(names) >= 6
    for name in names:
        assert is_test(name) if "::" in name else (TESTS / name).is_file(), name
