# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sums of a process group are exact; those of DDP's buckets are in blocks."""

from __future__ import annotations

import numpy as np
import pytest

from exact_oracle import IDIOMS, exact_sum
from switchfold.bmv2_topos.processes.free_ports import free_port
from torch_ranks import TorchTestbed, require_torch, run_ranks, torch_testbed

require_torch()

__all__ = ["torch_testbed"]
NUM_RANKS = 4
BUCKETS = ("buckets", "compiled", "checkpointed", "unused parameters")


@pytest.mark.timeout(600)
def test_sums_are_exact_and_buckets_in_blocks(torch_testbed: TorchTestbed) -> None:
    results = run_ranks(
        "precision_cases:see",
        NUM_RANKS,
        testbed=torch_testbed,
        arguments={"num_ranks": NUM_RANKS, "ports": [free_port() for _ in range(3)]},
        preload=("torch._dynamo",),
        timeout_s=540.0,
    )
    for seen in results:
        for number, (dtype, values) in enumerate(IDIOMS):
            expected = exact_sum([np.array(values, dtype)] * NUM_RANKS)
            assert seen[f"idiom {number}"] == expected.tolist()
        assert seen["bfloat16 off"] == 0
        assert seen["strided mean"] == [0.1]
        for setting, bucket, other in (
            ("auto", "block", "exact"),
            ("exact", "exact", "exact"),
            ("block", "block", "block"),
        ):
            found = seen[setting]
            assert found["construction"] == []
            assert {name: found[name] for name in BUCKETS} == {name: [bucket] for name in BUCKETS}
            # Ranks that run out of inputs are counted by a sum of PyTorch's.
            assert found["join"] == sorted({bucket, other})
            assert (found["own backward"], found["loss"]) == ([other], [other]), setting
