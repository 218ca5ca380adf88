# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The benchmark of planned sums in a short form: all sums are verified, none is timed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from benchmarks.scheduler import allreduces
from switchfold.bmv2_topos import state

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]


def test_planned_sums_and_a_ring_take_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path)
    path = tmp_path / "out" / "sums.json"
    words = ["--members", "2", "3", "--rounds", "1", "--megabytes", "0.1", "--json", str(path)]
    allreduces.main(words)
    rows = json.loads(path.read_text())["rows"]
    cases = [(links, count) for links in allreduces.LINKS for count in (2, 3)]
    assert [(row["links"], row["members"]) for row in rows] == cases
    for row in rows:
        assert row["ungranted"] == 0
        for kind in "planned", "ring":
            assert len(row[kind]["times_s"]) == 1, "the warm-up does not count"
        assert len(row["ratios"]) == 1
