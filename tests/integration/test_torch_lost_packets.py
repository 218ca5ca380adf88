# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Training over a softswitch that loses packets, with gradients that tolerate it.

By DDP's hook, over the backend, which has one tolerance for all buckets, and by hybrid training.
All cases run in one start of four ranks (tests/support/lossy_ranks.py).
"""

from __future__ import annotations

from typing import Any

import pytest

from switchfold.hostlib.loss_fill import FillPolicy
from switchfold.hostlib.loss_tolerance import LossTolerance
from torch_ranks import TorchTestbed, require_torch, run_ranks

require_torch()

pytestmark = pytest.mark.timeout(600)
NUM_RANKS = 4
TOLERANCE = LossTolerance(loss=0.1)
CASES = [*(f"hook {fill}" for fill in FillPolicy), "backend zero", "hybrid previous"]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    options: list[str] = []
    for port in range(1, NUM_RANKS + 1):
        for direction, loss in (("in", 0.05), ("out", 0.01)):
            options += ["--impair", f"{port}:{direction}:loss={loss},seed={port}"]
    testbed = TorchTestbed(NUM_RANKS, switch_options=options)
    with testbed.live:
        return run_ranks(
            "lossy_ranks:run",
            NUM_RANKS,
            testbed=testbed,
            arguments={"folder": str(tmp_path_factory.mktemp("lossy"))},
            preload=("torch._dynamo", "lossy_ranks"),
            timeout_s=540.0,
        )


@pytest.mark.parametrize("case", CASES)
def test_ranks_hold_the_same_bits(outcomes: list[dict[str, Any]], case: str) -> None:
    assert len({each[case]["hash"] for each in outcomes}) == 1


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_numpys_of_what_deliveries_say(
    outcomes: list[dict[str, Any]], case: str
) -> None:
    """Whole numbers below 100: a mean in float32 is off by less than a unit of 2^-16."""
    for each in outcomes:
        assert each[case]["error"] < 1e-4


@pytest.mark.parametrize("case", CASES)
def test_contributions_are_missing_within_the_bounds(
    outcomes: list[dict[str, Any]], case: str
) -> None:
    (said, *_) = outcomes
    coverages = said[case]["coverage"]
    assert all(coverage >= 1 - TOLERANCE.loss for coverage in coverages)
    assert min(coverages) < 1, "no step lacked anything, so nothing was tried"
    assert said[case]["floor"] >= TOLERANCE.least_of_worker


def test_counts_lack_nothing(outcomes: list[dict[str, Any]]) -> None:
    assert [each["backend zero"]["counts"] for each in outcomes] == [[NUM_RANKS]] * NUM_RANKS


def test_ranks_that_disagree_are_all_told(outcomes: list[dict[str, Any]]) -> None:
    for rank, each in enumerate(outcomes):
        assert each["disagreement"].startswith(f"rank {rank}: the ranks have different options")
        assert "worker_floor 0.8 on ranks [0, 2, 3], loss 0.2 with" in each["disagreement"]
