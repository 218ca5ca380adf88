# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The benchmark of contention: its formulas by hand, and what it prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.contention import contention_model, contention_report
from benchmarks.contention.contention_plot import draw_contention
from switchfold.hostlib.slots import wire

WIDE = wire.VALUES_PER_PACKET_WIDE
ONE_SLOT = 8 * 1408 / 0.010
"""bits/s of one slot with a round trip of 10 ms."""
LINK: dict[str, Any] = {"link_bits_per_s": 40e6, "round_trip_s": 0.010, "values_per_packet": WIDE}


def test_static_split_is_limited_by_the_link_and_then_by_the_slots() -> None:
    assert contention_model.static_split(1, 112, **LINK) == 40e6
    # 28 slots each: 3 for exponents, 25 for values
    assert contention_model.static_split(4, 112, **LINK) == pytest.approx(25 * ONE_SLOT)


def test_best_effort_with_a_tenth_fallen_back_keeps_59_percent_at_8_workers() -> None:
    assert contention_model.best_effort(1.0, 0.1, 8) == pytest.approx(0.588, abs=0.001)
    assert contention_model.best_effort(1.0, 0.0, 8) == 1.0


def test_best_effort_falls_back_with_what_exceeds_the_slots() -> None:
    assert contention_model.best_effort_fallback(1, 112, **LINK) == 0.0
    # 8 jobs want 8 * 40e6 / ONE_SLOT = 284.1 slots; 98 carry values.
    found = contention_model.best_effort_fallback(8, 112, **LINK)
    assert found == pytest.approx(1 - 98 / 284.1, abs=0.001)


def job(name: str, bits_per_s: float, slots: int, *, is_on_switch: bool = True) -> dict[str, Any]:
    return {
        "job": name,
        "bits_per_s": bits_per_s,
        "slots": slots,
        "is_on_switch": is_on_switch,
        "sums": 9,
    }


def content() -> dict[str, Any]:
    def row(*jobs: dict[str, Any], has_settled: bool = True) -> dict[str, Any]:
        return {
            "num_jobs": len(jobs),
            "has_settled": has_settled,
            "busy_share": 0.5,
            "jobs": list(jobs),
        }

    on_host = job("job2", 12e6, 0, is_on_switch=False)
    return {
        **LINK,
        "shared_slots": 112,
        "workers_per_job": 2,
        "machine": {"cpu": "x", "cores": 2, "commit": "y"},
        "shared": {
            "rows": [
                row(job("job1", 39e6, 112)),
                row(job("job1", 20e6, 56), job("job2", 22e6, 56), has_settled=False),
            ]
        },
        "fixed": {"rows": [row(job("job1", 30e6, 60), on_host)], "slots_wanted": 60},
    }


def test_report_has_slots_rates_and_jobs_among_hosts() -> None:
    lines = contention_report.describe(content()).splitlines()
    (one,) = [line for line in lines if line.startswith("   1 ")]
    assert one.split()[1:3] == ["39.00", "39.00"]
    assert "| 112 " in one
    two, fixed = [line for line in lines if line.startswith("   2 ")]
    assert two.split()[1:5] == ["42.00", "21.00", "20.00", "22.00"]
    assert two.endswith("slots still changing")
    assert "| 60 " in fixed
    assert "changing" not in fixed
    assert lines[-2].startswith("of 2 jobs 1 on the switch: 30.00 Mbit/s")
    assert lines[-1].startswith("of 2 jobs 1 among their hosts: 12.00 Mbit/s")


def test_picture_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    draw_contention(content(), tmp_path / "contention.png")
    assert (tmp_path / "contention.png").read_bytes().startswith(b"\x89PNG")
