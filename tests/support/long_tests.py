# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Unit tests that take long: `pytest --quick` leaves them out, `make long-tests` renews their list.

python -m long_tests JUNIT_FILE
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

TESTS: Final = Path(__file__).resolve().parents[1]
LIST: Final = TESTS / "long_tests.txt"
LIMIT_S: Final = 0.4
"""A test that takes longer is listed, with all of its cases."""
HEAD: Final = f"# Longer than {LIMIT_S} s beside three others on two cores: make long-tests\n"


def listed() -> frozenset[str]:
    """Return what is listed, as "unit/folder/test_file.py::test_function"."""
    lines = LIST.read_text("utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))


def deselect_long(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take tests that are listed out of `items`."""
    names = listed()
    long = [item for item in items if name_of(item.nodeid) in names]
    items[:] = [item for item in items if name_of(item.nodeid) not in names]
    config.hook.pytest_deselected(items=long)


def name_of(nodeid: str) -> str:
    """Return the name of a test without its parameters, relative to tests/."""
    return nodeid.partition("[")[0].removeprefix("tests/")


def find_long(file: Path) -> list[str]:
    """Return the tests of a JUnit file of which a case took longer than the limit, sorted."""
    longest: dict[str, float] = defaultdict(float)
    for case in ET.parse(file).getroot().iter("testcase"):
        module = case.attrib["classname"].removeprefix("tests.").replace(".", "/")
        name = name_of(f"{module}.py::{case.attrib['name']}")
        longest[name] = max(longest[name], float(case.attrib["time"]))
    return sorted(name for name, seconds in longest.items() if seconds > LIMIT_S)


def write_list(names: Iterable[str]) -> None:
    """Replace the list."""
    LIST.write_text(HEAD + "".join(f"{name}\n" for name in names), encoding="utf-8")


if __name__ == "__main__":
    found = [name for name in find_long(Path(sys.argv[1])) if name.startswith("unit/")]
    write_list(found)
    print(f"{len(found)} tests are listed in {LIST}")
