# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The benchmark's arithmetic: limits by hand, and how workers' runs become times."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks import limits
from bmv2_topos import rate_probe
from hostlib import wire


def test_limits_agree_with_hand_calculation() -> None:
    efficiency = limits.switchfold_efficiency(wire.VALUES_PER_PACKET_WIDE)
    assert efficiency == pytest.approx(1408 / 1494)
    assert rate_probe.FRAME_BYTES == 1494
    ours = limits.switchfold_limit_s(16_000_000, 100e6, wire.VALUES_PER_PACKET_WIDE)
    assert ours == pytest.approx(1.28 * 1494 / 1408)
    ring = limits.ring_limit_s(16_000_000, 100e6, 4)
    assert ring == pytest.approx(1.5 * 1.28 * 1514 / 1448)


def test_readme_states_the_largest_ratios() -> None:
    text = Path(limits.__file__).with_name("README.md").read_text()
    stated = re.search(r"is ([\d.]+) at 2 workers, ([\d.]+) at 4 and ([\d.]+) at 8", text)
    assert stated is not None
    for number, shown in zip((2, 4, 8), stated.groups(), strict=True):
        most = limits.ring_limit_s(1, 1, number) / limits.switchfold_limit_s(1, 1, 352)
        assert f"{most:.2f}" == shown


def worker(began_s: float, ended_s: float, checksum: int = 7) -> dict[str, Any]:
    warm_up = {"label": "x", "repeat": 0, "began_s": 0.0, "ended_s": 99.0, "checksum": 1}
    run = {
        "label": "x",
        "repeat": 1,
        "began_s": began_s,
        "ended_s": ended_s,
        "checksum": checksum,
    }
    return {"runs": [warm_up, run]}


def test_series_lasts_from_first_start_to_last_end_without_warm_up() -> None:
    series = limits.collect_series("x", [worker(10.0, 11.0), worker(10.5, 12.0)], 1.0)
    assert series.times_s == (2.0,)
    assert series.share_of_limit == 0.5


def test_series_refuses_results_that_differ() -> None:
    with pytest.raises(ValueError, match="different results"):
        limits.collect_series("x", [worker(0.0, 1.0), worker(0.0, 1.0, checksum=8)], 1.0)
