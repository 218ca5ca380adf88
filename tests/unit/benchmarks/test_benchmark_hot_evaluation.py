# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The evaluation of hot rows: medians, ratios pair by pair, lines of its tables."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.hot_rows import evaluation
from benchmarks.hot_rows.evaluation import Figures

FIGURES: Figures = {
    "writes": 1.0,
    "1 - h + h/c": 1.0,
    "h": 0.0,
    "c": None,
    "pulled keys at servers": 1.0,
    "server us/update": 2.0,
    "worker us/update": 1.0,
    "push p50 ms": 1.5,
    "push p99 ms": 9.25,
    "pull p50 ms": 1.25,
    "pull p99 ms": 8.0,
    "hottest pull p50 ms": None,
    "hottest pull p99 ms": None,
    "samples/s": 1000.0,
}
HELPED: Figures = {**FIGURES, "writes": 0.55, "1 - h + h/c": 0.55, "h": 0.6, "c": 4.0}


def test_medians_leave_out_what_a_run_did_not_have() -> None:
    runs = [{**FIGURES, "samples/s": rate} for rate in (900.0, 1000.0, 2000.0)]
    assert evaluation.medians(runs) == FIGURES
    assert evaluation.medians([*runs, {**HELPED, "c": 3.0}])["c"] == 3.0


def test_ratios_are_of_runs_that_followed_each_other() -> None:
    without = [{**FIGURES, "samples/s": rate} for rate in (1000.0, 2000.0, 500.0)]
    runs = [{**HELPED, "samples/s": rate} for rate in (2000.0, 2000.0, 2000.0)]
    found = evaluation.ratios(runs, without)
    assert found["samples/s"] == [1.0, 2.0, 4.0]
    assert found["writes"] == [0.55, 0.55, 0.55]


def test_line_shows_the_model_beside_the_measured_writes() -> None:
    row: dict[str, Any] = {
        "workload": "wordnet",
        "workers": 8,
        "offload": "none",
        "figures": {**HELPED, "writes": 0.5625},
        "ratios": evaluation.ratios([HELPED], [FIGURES]),
    }
    words = evaluation.line_of(row).split()
    assert words[:8] == ["wordnet", "8", "none", "0.562", "0.550", "0.600", "4.00", "1.000"]
    assert words[8:] == [
        "2.00",
        "(1.00)",
        "1.00",
        "(1.00)",
        "1.50",
        "/",
        "9.25",
        "1.25",
        "/",
        "8.00",
        "-",
        "1000",
        "(1.00)",
    ]
    row["figures"] = FIGURES
    assert evaluation.line_of(row).split()[6] == "-"
    assert len(evaluation.line_of(row)) == len(evaluation.HEADER)


def test_accuracies_are_compared_seed_by_seed() -> None:
    line = evaluation.accuracy_line("none", [0.75, 0.5], [0.5, 0.25])
    assert line.split(None, 1)[1] == (
        "0.6250 +- 0.1768, difference 0.2500 +- 0.0000  (0.7500 0.5000)"
    )


def test_runs_without_offload_come_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluation.parse(["--mode", "veth"]).offloads == ["none", "hot", "lru", "random"]
    assert evaluation.parse(["--mode", "udp"]).offloads == ["none"]
    with pytest.raises(SystemExit):
        evaluation.parse(["--offloads", "hot", "none"])
    assert "--offloads" in capsys.readouterr().err
