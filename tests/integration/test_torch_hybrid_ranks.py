# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Hybrid training by processes that join a job through torch.distributed."""

from __future__ import annotations

import pytest

from torch_ranks import RankFailure, TorchTestbed, require_torch, run_ranks

require_torch()

NUM_RANKS = 3


@pytest.mark.timeout(600)
def test_ranks_train_by_mixed_schemes_until_one_dies(torch_testbed: TorchTestbed) -> None:
    said = run_ranks(
        "torch_hybrid_cases:whole_run",
        NUM_RANKS,
        testbed=torch_testbed,
        preload=("torch._dynamo",),
        timeout_s=540.0,
        check=False,
    )
    dead = said.pop()
    assert isinstance(dead, RankFailure)
    assert "status 7" in dead.text, dead
    for one in said:
        assert not isinstance(one, RankFailure), one
    for name in ("mix", "auto"):
        assert said[0][name]["hash"] == said[1][name]["hash"]
        assert said[0][name]["values"] == said[1][name]["values"]
        assert said[0][name]["error"] < 1e-4
    schemes = said[0]["mix"]["schemes"]
    assert schemes["0.weight"] == schemes["0.bias"] == schemes["6.weight"] == "ina"
    assert schemes["2.weight"] == "sfb"
    assert schemes["4.weight"] == schemes["4.bias"] == "ps"
    for rank, one in enumerate(said):
        assert one["death"].startswith(f"rank {rank}, layer "), one["death"]
        assert "restart the ranks" in one["death"]
