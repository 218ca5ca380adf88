# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How tests are shared out among processes: by file, or by switch."""

from __future__ import annotations

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
