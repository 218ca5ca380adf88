# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Some of PyTorch's own tests of backends; `make test-torch-suite` runs all of them."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from torch_ranks import TorchTestbed, require_torch, torch_testbed
from torch_suite.floor import floor_of
from torch_suite.server import SuiteServer

require_torch()
__all__ = ["torch_testbed"]
NUM_RANKS = 2
SAMPLE = [
    "test_all_gather",
    "test_all_reduce_coalesced_sum",
    "test_all_reduce_sum_async",
    "test_ddp_join_model_equivalence",
    "test_ddp_uneven_input_join_disable",
    "test_get_backend",
    "test_monitored_barrier_gloo",
    "test_send_recv_torch_profiler",
]


@pytest.fixture(scope="module")
def suite(torch_testbed: TorchTestbed) -> Generator[SuiteServer]:
    places = [torch_testbed.place(rank, NUM_RANKS, "") for rank in range(NUM_RANKS)]
    with SuiteServer("switchfold", places) as server:
        yield server


@pytest.mark.timeout(600)
@pytest.mark.parametrize("test", SAMPLE)
def test_of_pytorch_passes(suite: SuiteServer, test: str) -> None:
    assert test in floor_of(NUM_RANKS)
    result = suite.run(test)
    assert result.outcome == "pass", f"{result.why}\n{result.log}"
