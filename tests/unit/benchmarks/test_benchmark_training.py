# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The training benchmark's arithmetic: workers' runs become rows, with predictions beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.overlap.overlap import summarize, values_for
from benchmarks.training.training_models import CALIBRATION_VALUES, WARM_UP, WORKLOADS
from benchmarks.training.training_plot import draw_training
from benchmarks.training.training_report import NAMES, markdown, rows_of
from switchfold.bmv2_topos.errors import TestbedError

RATE = 100_000_000
CALIBRATED_S = {"switchfold": 0.36, "gloo_switch": 0.36, "gloo_bridge": 0.36, "ps": 0.36}
ITERATION_S = {
    "alone": 0.05,
    "switchfold": 0.25,
    "switchfold_sequential": 0.3,
    "gloo_switch": 0.5,
    "gloo_bridge": 0.4,
    "ps": 0.6,
}


def first_s(label: str, turn: int, rank: int) -> float:
    """When a first step ends; workers that exchange nothing do not keep step."""
    return 10 * turn + (2.0 if label == "alone" else 0.001) * rank


def worker(rank: int, checksum: int = 7) -> dict[str, Any]:
    """What a worker prints whose iterations end 1 ms later than those of the one before."""
    cells: list[dict[str, Any]] = [
        {
            "model": "communication",
            "rate": RATE,
            "turn": turn,
            "label": label,
            "ends": [first_s(label, turn, rank) + step * seconds for step in range(WARM_UP + 4)],
            "losses": [],
            "cpu_s": 0.01,
            "busy_share": 0.95 if label == "ps" else 0.4,
            "checksum": rank if label == "alone" else checksum,
        }
        for label, seconds in ITERATION_S.items()
        for turn in range(2)
    ]
    calibrations = {**CALIBRATED_S, "round_trip": 0.001}
    return {"cells": cells, "calibrations": calibrations, "slots": 128, "statistics": {}}


@pytest.fixture
def rows() -> list[dict[str, Any]]:
    return rows_of([worker(0), worker(1)], {RATE: 99.97e6})


def test_rows_have_times_efficiency_and_ratio(rows: list[dict[str, Any]]) -> None:
    assert [row["label"] for row in rows] == list(NAMES)
    by_label = {row["label"]: row for row in rows}
    for label, seconds in ITERATION_S.items():
        row = by_label[label]
        assert len(row["times_s"]) == (16 if label == "alone" else 8)
        assert row["median_s"] == pytest.approx(seconds)
        assert row["samples_per_s"] == pytest.approx(2 * 8 / seconds)
        assert row["efficiency"] == pytest.approx(0.05 / seconds)
    assert by_label["switchfold"]["times_gloo"] == pytest.approx(0.4 / 0.25)
    assert by_label["switchfold"]["faster_gloo"] == "gloo_bridge"
    assert by_label["alone"]["predicted_s"] is None


def test_prediction_is_computing_and_bytes_over_the_rate(rows: list[dict[str, Any]]) -> None:
    by_label = {row["label"]: row for row in rows}
    num_bytes = 4 * WORKLOADS["communication"].described.num_values
    sequential_s = 0.05 + 8 * num_bytes / (99.97e6 * 1408 / 1494)
    assert by_label["switchfold_sequential"]["predicted_s"] == pytest.approx(sequential_s, rel=0.02)
    overlapped_s = by_label["switchfold"]["predicted_s"]
    assert sequential_s - 0.05 < overlapped_s < by_label["switchfold_sequential"]["predicted_s"]
    assert by_label["switchfold"]["error"] == pytest.approx(overlapped_s / 0.25 - 1)
    # Two workers: a ring carries every byte once in each direction, as the switch does.
    assert by_label["gloo_bridge"]["predicted_s"] == pytest.approx(overlapped_s, rel=0.05)


def test_slow_software_limits_what_is_predicted() -> None:
    slow = worker(0)
    link_s = 8 * 4 * CALIBRATION_VALUES / (99.97e6 * 1408 / 1494)
    slow["calibrations"]["switchfold"] = 3 * link_s
    fast = rows_of([worker(0), worker(1)], {RATE: 99.97e6})[1]
    row = rows_of([slow, worker(1)], {RATE: 99.97e6})[1]
    assert row["label"] == fast["label"] == "switchfold"
    assert row["predicted_s"] > 2.5 * fast["predicted_s"]


def test_replicas_that_differ_are_no_measurement() -> None:
    with pytest.raises(ValueError, match="different weights"):
        rows_of([worker(0), worker(1, checksum=8)], {RATE: 99.97e6})


def test_tables_and_picture_show_all_contenders(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    text = markdown(rows, {RATE: 99.97e6})
    assert all(name in text for name in NAMES.values())
    assert "**1.60** (kernel bridge)" in text
    assert "95 % (bound)" in text
    machine = {"cpu": "c", "cores": 2, "commit": "x", "busy_before": "1 %"}
    draw_training(rows, machine, tmp_path / "training.png")
    assert (tmp_path / "training.png").stat().st_size > 10_000


def test_overlap_takes_medians_and_the_least_bytes() -> None:
    def one(rank: int, label: str, repeat: int, seconds: float, sent: int) -> dict[str, Any]:
        return {
            "label": label,
            "repeat": repeat,
            "began_s": repeat + 0.001 * rank,
            "ended_s": repeat + seconds,
            "sent_bytes": sent,
            "received_bytes": 1000,
            "checksum": 1,
        }

    times_s = {"sequential": (0.2, 0.21, 0.4), "overlapped": (0.11, 0.12, 0.13)}
    workers: list[dict[str, Any]] = [
        {
            "runs": [
                one(rank, label, repeat, seconds, 1000 + 10 * repeat)
                for label, each in times_s.items()
                for repeat, seconds in enumerate(each)
            ],
            "compute_s": 0.1,
            "statistics": {"value_packets_retransmitted": 3},
        }
        for rank in range(2)
    ]
    row = summarize(workers)
    assert row["ratio"] == pytest.approx(0.12 / 0.21)
    assert row["bytes_difference"] == 0
    assert row["sequential"]["bytes"] == 4000
    assert row["retransmitted"] == 6
    workers[1]["runs"][0]["checksum"] = 2
    with pytest.raises(TestbedError, match="different gradients"):
        summarize(workers)


def test_values_fill_a_link_for_the_time_asked() -> None:
    values = values_for(0.09, 50e6)
    assert values * 4 * 8 * (1494 / 1408) / 50e6 == pytest.approx(0.09, rel=1e-4)
