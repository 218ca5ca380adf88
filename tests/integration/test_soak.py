# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A short soak: mixed jobs with random drills leave nothing behind. `make soak` is the long one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.drills.soak_run import Soak
from benchmarks.drills.soak_verdict import problems
from switchfold.bmv2_topos import state

NUM_ROUNDS = int(os.environ.get("SWITCHFOLD_SOAK_ROUNDS", "3"))
"""A round takes about 10 s."""


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
@pytest.mark.timeout(300 + 60 * NUM_ROUNDS)
def test_nothing_is_left_of_jobs_and_drills(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SWITCHFOLD_SOAK_ROUNDS=60 makes it long."""
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path / "records")
    record = Soak(tmp_path, seed=1, say=print).run(0.0, NUM_ROUNDS)
    assert problems(record) == []
    assert record.rounds == NUM_ROUNDS
    assert record.tensors
    assert record.pushes
    assert {"controller", "switch"} <= record.footprints.keys()
