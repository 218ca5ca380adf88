# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Predictions name the faster of switch and ring, as the measurements of the docs found it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.schemes.advice import tensor_bytes
from benchmarks.schemes.advice_report import (
    AIM,
    RING,
    SWITCH,
    compare,
    describe_row,
    predicted_s,
    share_named_rightly,
    summary,
)
from switchfold.hostlib.schemes.calibration_file import Calibration, MeasuredFigure
from switchfold.hostlib.schemes.hardware import HOSTS, SWITCHES

RECORDED = Path(__file__).parents[3] / "benchmarks" / "results" / "advice.json"
"""A run at rates at which no figure of the model was fitted."""
FRAMES, SUPER_FRAMES = ("frame-by-frame", "softswitch"), ("super-frames", "softswitch-super-frames")
PAGE = [
    (FRAMES, 1e8, 2, 16, 1.06),
    (FRAMES, 1e8, 4, 16, 1.54),
    (FRAMES, 1e8, 8, 16, 1.85),
    (FRAMES, 1e9, 2, 16, 0.94),
    (FRAMES, 1e9, 4, 16, 1.37),
    (FRAMES, 1e9, 8, 16, 1.33),
    (FRAMES, None, 2, 16, 0.75),
    (FRAMES, None, 4, 16, 1.0),
    (FRAMES, None, 8, 64, 1.05),
    (SUPER_FRAMES, 1e9, 2, 16, 0.95),
    (SUPER_FRAMES, 1e9, 4, 16, 1.42),
    (SUPER_FRAMES, 1e9, 8, 16, 1.41),
    (SUPER_FRAMES, None, 2, 16, 0.68),
    (SUPER_FRAMES, None, 4, 16, 0.61),
]
"""Tables of docs/performance.md: hardware, bit/s, workers, MB, times the faster Gloo.

Without a rate, of two to four runs. The two cores are shared by all."""


def named(hosts: str, switch: str) -> Calibration:
    """Return a calibration with the figures of named hardware."""
    figures = {
        "worker_chunk_s": HOSTS[hosts].worker_chunk_s,
        "tcp_byte_s": HOSTS[hosts].tcp_byte_s,
        "ring_step_s": HOSTS[hosts].ring_step_s,
        "shared_tcp_byte_s": HOSTS[hosts].shared_tcp_byte_s,
        "switch_packet_s": SWITCHES[switch].switch_packet_s,
        "switch_round_s": SWITCHES[switch].switch_round_s,
        "shared_chunk_s": SWITCHES[switch].shared_chunk_s,
    }
    measured = {name: MeasuredFigure.of([seconds]) for name, seconds in figures.items()}
    return Calibration(machine={}, links="", figures=measured)


def row(rate: float | None, workers: int, megabytes: int) -> dict[str, Any]:
    return {
        "rate_bits_per_s": rate,
        "workers": workers,
        "bytes": 1_000_000 * megabytes,
        "slots": 128,
        "busy_share": 0.9,
    }


def predicted_ratio(
    hardware: tuple[str, str], rate: float | None, workers: int, megabytes: int
) -> float:
    found = predicted_s(row(rate, workers, megabytes), named(*hardware), 2)
    return found[RING] / found[SWITCH]


def test_named_hardware_agrees_with_the_tables_of_the_performance_page() -> None:
    ratios = [(predicted_ratio(*condition), measured) for *condition, measured in PAGE]
    rightly = [
        # At 1, the runs lie on both sides, and neither is the faster one.
        measured == 1.0 or (predicted > 1) == (measured > 1)
        for predicted, measured in ratios
    ]
    assert sum(rightly) / len(rightly) >= AIM
    for predicted, measured in ratios:
        assert predicted == pytest.approx(measured, rel=0.35)


def recorded() -> dict[str, Any]:
    return json.loads(RECORDED.read_text("utf-8"))


def test_the_recorded_benchmark_names_its_machine_and_commit() -> None:
    machine = recorded()["machine"]
    assert {"time", "commit", "cpu", "cores", "kernel", "busy_before"} <= set(machine)
    assert machine["busy_before"] in ("0 %", "1 %"), "the machine had other work"


def test_nine_of_ten_recorded_measurements_are_named_rightly() -> None:
    found = recorded()
    calibration = Calibration.from_dict(found["calibration"], str(RECORDED))
    rows = [compare(each, calibration, found["shared_cores"]) for each in found["rows"]]
    assert len(rows) >= 10
    rates = [each["rate_bits_per_s"] for each in rows]
    assert min(rate for rate in rates if rate is not None) <= 40e6
    assert None in rates, "links without a rate are missing"
    assert {each["measured"] for each in rows} == {SWITCH, RING}, "one of them always wins"
    assert share_named_rightly(rows) >= AIM


def test_the_faster_gloo_counts_as_the_ring() -> None:
    times = {"switchfold": [2.0, 1.0, 9.0], "gloo_switch": [3.0], "gloo_bridge": [1.0, 1.5]}
    found = compare({**row(1e9, 4, 16), "times_s": times}, named(*FRAMES), 2)
    assert found["measured_s"] == {SWITCH: 2.0, RING: 1.25}
    assert (found["measured"], found["predicted"]) == (RING, SWITCH)
    line = describe_row(found)
    assert line.startswith("| 1000 | 4 | 16 | 2.000 | 0.18")
    assert "| ring | switch, wrongly | 90 % |" in line
    right = {**found, "predicted": RING, "rate_bits_per_s": None}
    assert "| ring | rightly | 90 % |" in describe_row(right)
    assert describe_row(right).startswith("| no limit | 4 |")
    assert share_named_rightly([found, right]) == 0.5
    assert summary([found, right]) == "1 of 2 named rightly (aim: 90%)"


def test_a_calibration_without_a_switch_predicts_no_sums() -> None:
    calibration = named(*FRAMES)
    without = {n: f for n, f in calibration.figures.items() if not n.startswith("switch_")}
    with pytest.raises(ValueError, match="has no switch"):
        predicted_s(row(1e9, 4, 16), Calibration(machine={}, links="", figures=without), 2)


def test_tensors_take_a_link_about_a_second() -> None:
    assert tensor_bytes(40e6) == 5_000_000
    assert tensor_bytes(1e6) == 1_000_000
    assert tensor_bytes(1e9) == tensor_bytes(None) == 8_000_000
