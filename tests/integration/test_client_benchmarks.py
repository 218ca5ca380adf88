# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Benchmarks of clients of hot rows, small: they verify what they measure."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "hot_rows"
pytestmark = [
    pytest.mark.root,
    pytest.mark.usefixtures("no_choice"),  # benchmarks choose for themselves
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]


def run(script: str, file: Path, *options: str) -> dict[str, Any]:
    """Run a benchmark; return what it wrote."""
    command = [sys.executable, str(FOLDER / script), *options, "--json", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(file.read_text())


def test_the_switch_has_entries_for_workers_and_servers(tmp_path: Path) -> None:
    small = ("--clients", "1", "2", "--requests", "40", "--repeats", "1")
    found = run("connections.py", tmp_path / "figures.json", *small)
    assert found["tables"]["worker"] == 4
    assert found["tables"]["worker_address"] == 5, "with the mark of generations"
    peers = {(one["clients"], one["operation"], one["path"]): one for one in found["peers"]}
    for operation in ("push", "pull"):
        assert peers[2, operation, "TCP"]["TCP peers"] == 2
    assert peers[2, "push", "switch"]["UDP peers"] == 1
    for figures in found["figures"].values():
        for kinds in figures["kinds"].values():
            assert [one["clients"] for one in kinds] == [1, 2]


def test_larger_messages_are_fewer(tmp_path: Path) -> None:
    small = ("--workers", "2", "--steps", "6", "--repeats", "1", "--warm-up-s", "1")
    found = run("small_messages.py", tmp_path / "figures.json", *small)
    messages = {(one["path"], one["parts"]): one["messages"] for one in found["contenders"]}
    assert messages["TCP", 16] > messages["TCP", 4] > messages["TCP", 1] > 0
    assert messages["switch", 16] > messages["switch", 1] > 0


def test_blocks_with_a_log_are_compared_with_blocks_without(tmp_path: Path) -> None:
    small = ("--workers", "2", "--servers", "1", "--batches", "256", "--blocks", "8")
    short = ("--steps", "5", "--warm-up-s", "1", "--rate", "none")
    found = run("block_throughput.py", tmp_path / "figures.json", "log", *small, *short)
    assert [row["offload"] for row in found["rows"]] == ["none", "hot"]
    for row in found["rows"]:
        assert row["records"] >= 2 * 2 * 4 * 5  # a push and a pull in each step with the log
        assert len(row["ratios"]) == 2
        assert min(row["ratios"]) > 0
    found = run("block_throughput.py", tmp_path / "figures.json", "hot-keys", *small, *short)
    (row,) = found["rows"]
    assert (row["offload"], row["records"], len(row["ratios"])) == ("hot", 0, 2)


def test_rows_are_installed_and_gone_again(tmp_path: Path) -> None:
    small = ("--rows", "4", "--repeats", "1", "--targets", "softswitch")
    found = run("install.py", tmp_path / "figures.json", *small)
    changes = [row["change"] for row in found["softswitch"]]
    assert changes == [
        *("all new", "all epochs", "a tenth of the epochs", "nothing", "a repair", "all gone")
    ]
