# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The PyTorch examples train as over Gloo, and differ from their Gloo versions by one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from torch_ranks import require_torch

require_torch()

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "pytorch"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("example", "length"), [("digits_cnn", "--epochs=1"), ("text_transformer", "--steps=10")]
)
def test_example_trains_as_over_gloo(example: str, length: str) -> None:
    # Most of the time goes to the start of processes that load torch, twice for each worker.
    words = ["--workers=2", "--mbit=1000", length]
    command = [sys.executable, str(FOLDER / "compare.py"), example, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("different weights: gloo 1, switchfold 1\nproved\n")


@pytest.mark.parametrize("example", ["digits_cnn", "text_transformer"])
def test_diff_is_one_line(example: str) -> None:
    lines = (FOLDER / f"{example}.diff").read_text().splitlines()[2:]
    changes = [line.split() for line in lines if line[0] in "+-"]
    assert changes == [
        ["-", 'dist.init_process_group("gloo")'],
        ["+", 'dist.init_process_group("switchfold")'],
    ]
    after = [line[1:] for line in lines if line[0] in " +"]
    assert "\n".join(after) in (FOLDER / f"{example}.py").read_text()
