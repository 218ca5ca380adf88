# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Distances of replicas: what is compared after each commit, and the chart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.scheduler.replica_distances import (
    after_commits,
    distances,
    draw_distances,
    greatest,
    greatest_ratio,
)


def row(version: int, replica_version: int, true: float, bound: float) -> dict[str, float]:
    return {
        "version": version,
        "replica_version": replica_version,
        "true": true,
        "bound": bound,
    }


ROWS = [row(0, 0, 0.0, 0.0), row(1, 0, 2.0, 4.0), row(2, 0, 3.0, 8.0), row(2, 1, 1.0, 4.0)]
FOUND: dict[str, Any] = {"momentum": 0.9, "div_max": 9.0, "rows": ROWS}


def test_distances_after_commits_are_not_those_of_later_receipts() -> None:
    assert after_commits(ROWS) == ROWS[:3]
    assert (greatest(FOUND, "true"), greatest(FOUND, "bound")) == (3.0, 8.0)
    assert greatest_ratio(FOUND) == 0.5


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_each_comparison_has_both_versions_true_distance_and_bound(momentum: float) -> None:
    found = distances(momentum, 12)
    versions = [each["version"] for each in found["rows"]]
    assert versions == sorted(versions)
    assert found["rows"][-1] == row(12, 12, 0.0, 0.0)
    assert greatest(found, "true") <= greatest(found, "bound") <= found["div_max"]
    assert all(each["replica_version"] <= each["version"] for each in found["rows"])


def test_distances_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    draw_distances({"0.0": FOUND, "0.9": FOUND}, tmp_path / "distances.png")
    assert (tmp_path / "distances.png").read_bytes().startswith(b"\x89PNG")
