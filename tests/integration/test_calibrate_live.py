# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold calibrate` over loopback, for real: every figure, and predictions that use it.

No time is asserted: the sums are verified by the workers themselves.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from switchfold.controller.__main__ import run
from switchfold.controller.cli.calibrate import rig
from switchfold.controller.cli.calibrate.rig import CalibrationPlan, measure_ring
from switchfold.controller.cli.schemes.hardware_options import default_calibration
from switchfold.hostlib.schemes.calibration_file import FIGURES, load_calibration

SMALL = ["--workers", "2", "--megabytes", "1", "--repeats", "2", "--links", "loopback"]


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("SWITCHFOLD_CALIBRATION", raising=False)


@pytest.mark.slow
def test_what_is_measured_is_what_predictions_assume(capsys: pytest.CaptureFixture[str]) -> None:
    status = run(["calibrate", *SMALL])
    assert status == 0, capsys.readouterr().err
    capsys.readouterr()
    kept = load_calibration(default_calibration())
    of_shared_cores = {"shared_chunk_s", "shared_tcp_byte_s"}
    assert set(FIGURES) - of_shared_cores <= set(kept.figures) <= set(FIGURES)
    assert all(0 < figure.least <= figure.median for figure in kept.figures.values())
    predict = ["scheme", "predict", "--model", "resnet-50", "--flops", "5T", "--json"]
    assert run(predict) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["hosts"]["name"] == "calibrated"
    assert found["capacity"]["worker_chunk_s"] == kept.figures["worker_chunk_s"].median
    assert found["capacity"]["switch_packet_s"] == kept.figures["switch_packet_s"].median
    assert found["capacity"]["tcp_byte_s"] == kept.figures["tcp_byte_s"].median


@pytest.mark.slow
def test_without_torch_the_host_allreduce_is_the_ring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rig, "ring_kind", lambda: "host")
    plan = CalibrationPlan(workers=3, num_bytes=1_000_000, repeats=2, links="loopback")
    found = measure_ring(plan)
    assert {"tcp_byte_s", "ring_step_s"} <= set(found)
    assert found["tcp_byte_s"].count == 2
