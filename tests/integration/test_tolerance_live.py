# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold tolerance` on a testbed whose links drop packets: what is missing, and the file."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from switchfold.controller.__main__ import run
from switchfold.hostlib import LossTolerance, load_tolerance
from switchfold.hostlib.tolerance_file import read_models
from torch_ranks import require_torch

require_torch()
pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]
SUPPORT = Path(__file__).resolve().parents[1] / "support"
RATE = 0.2
SOURCE, WRONG = "tolerance_tasks:task", "tolerance_tasks:number"


def test_drops_of_links_are_missing_within_the_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))
    out = tmp_path / "tolerance.json"
    words = ["--workers", "2", "--rates", f"0,{RATE}", "--seeds", "1", "--out", str(out)]
    status = run(["tolerance", *words, "--script", SOURCE, "--script", WRONG])
    said = capsys.readouterr()
    # The ranks are started once, and what was found before the error is in the file.
    error = f"{WRONG}, tolerance 0, seed 1: rank [01]: ToleranceRunError: {WRONG} returned a int"
    assert re.search(error, said.err), said
    assert status == 1
    entry = read_models(out)[SOURCE]
    whole, lossy = entry["rates"]
    assert (whole["missing"], whole["dropped"]) == (0, 0)
    assert lossy["dropped"] > 0
    assert 0 < lossy["missing"] <= lossy["most_missing"] <= RATE
    assert whole["has_equal_epochs"]
    assert load_tolerance(out, SOURCE) == LossTolerance(loss=entry["x1"])
