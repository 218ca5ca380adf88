# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold demo hot` on the real text, and the evaluation that `switchfold bench hot` runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from secured_testbeds import SecuredTestbeds, secured_testbeds
from switchfold.controller.__main__ import run as run_command
from switchfold.controller.cli.workloads.glosses import FOLDER

__all__ = ["secured_testbeds"]

ROOT = Path(__file__).resolve().parents[2]
SIZE = ("--workers", "2", "--servers", "1", "--mode", "udp")


@pytest.mark.skipif(
    not (FOLDER / "data.noun").is_file(), reason="no WordNet here: apt-get install wordnet-base"
)
def test_demo_proves_its_sums_over_tls(
    capfd: pytest.CaptureFixture[str], secured_testbeds: SecuredTestbeds
) -> None:
    code = run_command(["demo", "hot", *SIZE, "--epochs", "1"])
    out = capfd.readouterr().out
    assert code == 0, out
    assert "FAILED" not in out
    assert out.count("proved") == 3
    secured_testbeds.check("run1-h1", "run1-h2", "run1-server0")


@pytest.mark.usefixtures("no_choice")  # benchmarks choose for themselves
def test_benchmark_writes_what_it_has_verified(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    small = ("--steps", "20", "--warm-up-s", "0", "--repeats", "2", "--seeds", "0")
    command = [sys.executable, str(ROOT / "benchmarks" / "hot_rows" / "evaluation.py")]
    command += [*SIZE, *small, "--workloads", "zipf-0.845", "--json", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    content: dict[str, Any] = json.loads(file.read_text())
    (row,) = content["load"]
    assert (row["offload"], row["workers"], len(row["runs"])) == ("none", 2, 2)
    assert row["ratios"]["samples/s"] == [1, 1, 1]
    assert row["figures"]["writes"] == row["figures"]["pulled keys at servers"] == 1
    assert row["figures"]["updates"] > 10_000
    assert content["skew"][0]["shares"]["256"] < content["skew"][0]["shares"]["4096"] < 1
