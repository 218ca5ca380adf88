# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What `switchfold demo hot` claims."""

from __future__ import annotations

import numpy as np
import pytest

from switchfold.controller.cli.demo.hot import check_runs
from switchfold.controller.cli.hot.plan import TablePlan, TableWorkload
from switchfold.controller.cli.hot.rig import TableRun
from switchfold.controller.cli.hot.server import ServerReading
from switchfold.controller.cli.hot.worker import WorkerTimes


def run_with(accuracy: float) -> TableRun:
    worker = WorkerTimes(
        num_steps=1,
        pull_s=np.ones(1),
        hottest_pull_s=np.empty(0),
        push_s=np.ones(2),
        seconds=1.0,
        processor_s=1.0,
        block_s=np.empty(0),
        samples=1,
        pushed_keys=60,
        pulled_keys=30,
    )
    servers = ServerReading(
        processor_s=1.0,
        pushes=2,
        pushed_keys=60,
        pulls=1,
        pulled_keys=30,
        hot_sums=0,
        hot_pushes=0,
        writes=60,
    )
    plan = TablePlan(workload=TableWorkload.GLOSSES, is_training=True)
    return TableRun(plan=plan, workers=[worker], servers=servers, num_keys=30, accuracy=accuracy)


def test_claims_name_what_was_measured() -> None:
    proofs = check_runs([run_with(0.8125)], 17.0)
    assert all(proof.is_proved for proof in proofs)
    assert [proof.measured for proof in proofs] == [
        "30 keys, 30 pushes of a key",
        "0.8125",
        "17.0 s",
    ]


@pytest.mark.parametrize(("second", "is_proved"), [(0.825, True), (0.83, False), (0.80, False)])
def test_all_runs_are_compared_with_the_first(second: float, is_proved: bool) -> None:
    proofs = check_runs([run_with(0.8175), run_with(second)], 17.0)
    (compared,) = (proof for proof in proofs if "within" in proof.claim)
    assert compared.is_proved == is_proved
    assert compared.measured == f"{second - 0.8175:+.4f}"


@pytest.mark.parametrize(("accuracy", "seconds"), [(0.79, 17.0), (0.81, 121.0)])
def test_a_claim_that_does_not_hold_is_not_proved(accuracy: float, seconds: float) -> None:
    proofs = check_runs([run_with(accuracy)], seconds)
    assert [proof.is_proved for proof in proofs].count(False) == 1
