# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How tests are shared out among processes, and where their files are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from named_tests import TESTS
from side_by_side import BEGIN_EARLY, put_early, unit_of


@pytest.mark.parametrize(
    ("nodeid", "unit"),
    [
        (
            "tests/unit/hostlib/test_wire.py::test_bytes[bmv2-narrow]",
            "tests/unit/hostlib/test_wire.py",
        ),
        ("tests/packet/test_lanes.py::test_a[3-bmv2-wide]", "tests/packet/test_lanes.py"),
        ("tests/packet/test_lanes.py::test_a[bmv2-wide-3]", "tests/packet on bmv2-wide"),
        ("tests/packet/test_io.py::test_b[bmv2-wide]", "tests/packet on bmv2-wide"),
        ("tests/packet/test_io.py::test_b", "tests/packet/test_io.py"),
    ],
)
def test_unit_is_the_file_or_the_switch(nodeid: str, unit: str) -> None:
    assert unit_of(nodeid) == unit


@dataclass
class Named:
    nodeid: str


def test_files_with_many_mutations_begin_early_and_others_keep_their_order() -> None:
    for file in BEGIN_EARLY:
        assert (TESTS.parent / file).is_file()
    names = ["tests/b.py::test_1", f"{BEGIN_EARLY[1]}::test_m[2]", "tests/a.py::test_2[x::y]"]
    items: list[Any] = [Named(name) for name in names]
    put_early(items)
    assert [item.nodeid for item in items] == [names[1], names[0], names[2]]


def test_folder_of_a_test_with_a_long_name_has_a_short_path(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert tmp_path.is_dir()
    assert len(str(tmp_path.relative_to(tmp_path_factory.getbasetemp()))) < 8
