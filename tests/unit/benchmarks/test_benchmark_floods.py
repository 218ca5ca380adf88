# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Figures of the floods benchmark."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.control_plane.flood_attacker import CALLERS
from benchmarks.control_plane.floods import CALM, FLOODS, describe, print_table


def worker(calm_s: float, flooded_s: float) -> dict[str, Any]:
    attack = {"callers": 30, "refused": 2, "seconds": 3.0, "cpu_s": 0.3, "servers_s": [0.6, 0.15]}
    return {
        "times_s": {CALM: [calm_s] * 100, "joins": [flooded_s] * 100},
        "attacks": {"joins": [attack, attack]},
    }


def test_floods_are_compared_with_calm(capsys: pytest.CaptureFixture[str]) -> None:
    found = describe([worker(0.001, 0.003), worker(0.001, 0.003)])
    assert found[CALM]["ratio"] == 1
    row = found["joins"]
    assert (row["sums"], row["p50_ms"], row["p99_ms"]) == pytest.approx((200, 3, 3))
    assert row["ratio"] == pytest.approx(3)
    assert row["callers_per_s"] == pytest.approx(10)
    shares = (row["attacker"], row["controller"], row["switch"])
    assert shares == pytest.approx((0.1, 0.2, 0.05))
    print_table(found)
    assert "3.00   3.00     10 %       20 %    5 %" in " ".join(capsys.readouterr().out.split(","))


def test_every_flood_has_a_caller_and_a_title() -> None:
    assert {kind.caller for kind in FLOODS} <= set(CALLERS)
    assert len({kind.name for kind in FLOODS}) == len(FLOODS)
