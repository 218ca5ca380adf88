# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The rig of the benchmark of time to accuracy: all contenders train over links that lose."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.transport.accuracy import trainable
from benchmarks.transport.conditions import parse_condition
from benchmarks.transport.training_rig import TrainingCase, TrainingRig
from switchfold.bmv2_topos import state
from switchfold.controller.cli.tolerance.rig import TrainingPlan
from torch_ranks import require_torch

require_torch()
pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]
SOURCE = "tests.support.tolerance_tasks:task"
EPOCHS, STEPS, ROUNDS = 2, 6, 1
TOLERANCE = 0.2


def test_contenders_train_alike_over_links_that_lose(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path)
    known = trainable(TOLERANCE)
    with TrainingRig(20_000_000) as rig:
        found = {
            name: rig.train(
                TrainingCase(
                    plan=TrainingPlan(source=SOURCE, rates=(), seeds=()),
                    contender=contender,
                    condition=parse_condition("0.05:up"),
                    seed=1,
                    rounds=ROUNDS,
                )
            )
            for name, contender in known.items()
            if name != "repair"  # as the tolerance command trains without loss
        }
    whole = found["gloo"].training.metrics[-1]
    for name, each in found.items():
        training = each.training
        assert (each.steps, len(each.sums)) == (STEPS, ROUNDS)
        assert min(each.sums) > 0
        assert len(training.epoch_seconds) == len(training.metrics) - 1 == EPOCHS
        assert training.dropped > 0, name
        assert training.metrics[-1] == pytest.approx(whole, rel=0.1)
        assert training.missing <= (known[name].tolerance or 0.0)
        assert training.metrics[-1] > training.metrics[0]
