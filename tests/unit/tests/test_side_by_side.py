# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How tests are shared out among processes, and where their files are."""

from __future__ import annotations

from pathlib import Path

import pytest

from side_by_side import unit_of


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


def test_folder_of_a_test_with_a_long_name_has_a_short_path(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert tmp_path.is_dir()
    assert len(str(tmp_path.relative_to(tmp_path_factory.getbasetemp()))) < 8
