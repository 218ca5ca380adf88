# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold scheme predict` prints what hosts and switch it assumes, and where it has it from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from switchfold.controller.__main__ import run
from switchfold.controller.cli.schemes.hardware_options import default_calibration
from switchfold.hostlib.schemes.calibration_file import (
    FIGURES,
    Calibration,
    MeasuredFigure,
    store_calibration,
)

OF_A_SWITCH = ("switch_packet_s", "switch_round_s", "shared_chunk_s")
PREDICT = ["scheme", "predict", "--model", "vgg19", "--iteration-ms", "900", "--workers", "4"]


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("SWITCHFOLD_CALIBRATION", raising=False)


def keep(path: Path, *, has_switch: bool = True, **seconds: float) -> None:
    """Store a calibration: 1 ns for each byte of TCP, 1 us for others that are not given."""
    seconds.setdefault("tcp_byte_s", 1e-9)
    names = [name for name in FIGURES if has_switch or name not in OF_A_SWITCH]
    figures = {name: MeasuredFigure.of([seconds.get(name, 1e-6)]) for name in names}
    machine = {"cpu": "a quick processor", "cores": 8, "time": "2026-11-27"}
    store_calibration(path, Calibration(machine=machine, links="veth", figures=figures))


def predicted(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run([*PREDICT, *words]) == 0
    return capsys.readouterr().out


def test_without_a_calibration_named_hardware_is_assumed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = predicted(capsys, "--rate", "100M,1G,10G")
    assert "assumed hosts: frame-by-frame, 3 us of a core per chunk" in out
    assert "not measured on your hosts" in out
    assert "assumed switch: softswitch, 2.5 us of a core per packet" in out
    assert "run 'switchfold calibrate' on one of your hosts" in out
    slow, middle, fast = (line for line in out.splitlines() if line.startswith("4 workers: "))
    assert "aggregation helps: 1." in slow
    assert "aggregation helps: 1." in middle
    assert "a ring is faster here: " in fast
    assert "of aggregation, which the switch limits" in fast


def test_a_ring_that_is_a_little_faster_is_said_to_be(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = predicted(capsys, "--rate", "10G", "--workers", "2")
    (line,) = (line for line in out.splitlines() if line.startswith("2 workers: "))
    assert line.startswith("2 workers: a ring is a little faster here: 1.04 times the throughput")
    assert "brings" not in line


def test_a_calibration_is_loaded_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    keep(default_calibration(), switch_packet_s=40e-6)
    out = predicted(capsys, "--rate", "1G")
    assert "measured 2026-11-27 over veth: a quick processor, 8 cores" in out
    assert "assumed switch: calibrated softswitch, 40 us of a core per packet" in out
    assert "a ring is faster here: " in out
    assert "on one of your hosts" not in out
    named = predicted(capsys, "--rate", "1G", "--switch", "tofino", "--hosts", "unlimited")
    assert "assumed hosts: unlimited, which keep up with any link" in named
    assert "SwitchML's published figures" in named
    assert "aggregation helps: 1.4" in named


def test_a_file_that_is_named_takes_precedence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(default_calibration())
    keep(tmp_path / "other.json", worker_chunk_s=77e-6)
    out = predicted(capsys, "--calibration", str(tmp_path / "other.json"), "--json")
    assert json.loads(out)["hosts"]["worker_chunk_s"] == 77e-6
    monkeypatch.setenv("SWITCHFOLD_CALIBRATION", str(tmp_path / "other.json"))
    assert json.loads(predicted(capsys, "--json"))["capacity"]["worker_chunk_s"] == 77e-6


def test_stated_times_replace_single_figures(capsys: pytest.CaptureFixture[str]) -> None:
    stated = ["--switch-us", "0", "--worker-us", "0.5", "--tcp-ns", "0", "--cores", "2"]
    out = predicted(capsys, *stated, "--rate", "10G")
    assert "assumed hosts: frame-by-frame with stated times, 0.5 us" in out
    assert "assumed switch: softswitch with stated times, which keeps up with its links" in out
    assert "cores: all workers and the switch share 2" in out
    found = json.loads(predicted(capsys, *stated, "--json"))
    assert found["capacity"]["shared_cores"] == 2
    assert found["capacity"]["tcp_byte_s"] == 0


def test_a_calibration_without_a_switch_leaves_the_named_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    keep(default_calibration(), has_switch=False)
    assert "assumed switch: softswitch, 2.5 us" in predicted(capsys)
    assert run([*PREDICT, "--switch", "calibrated"]) == 1
    assert "run 'switchfold calibrate' without --no-switch" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--hosts", "calibrated"], 1, "calibration.json is missing; `switchfold calibrate`"),
        (["--switch", "calibrated"], 1, "calibration.json is missing; `switchfold calibrate`"),
        (["--calibration", "none.json"], 1, "none.json is missing"),
        (["--hosts", "mine"], 2, "'mine' is not one of 'calibrated'"),
        (["--switch", "mine"], 2, "'mine' is not one of 'calibrated'"),
        (["--switch-us", "-1"], 2, "--switch-us"),
        (["--switch", "tofino", "--rate", "400G"], 1, "carry at most 100 Gbit/s"),
    ],
)
def test_wrong_hardware_is_refused(
    words: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*PREDICT, *words]) == code
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_damaged_calibration_is_not_passed_over(capsys: pytest.CaptureFixture[str]) -> None:
    default_calibration().parent.mkdir(parents=True)
    default_calibration().write_text("{}")
    assert run(PREDICT) == 1
    assert "is no calibration" in capsys.readouterr().err
