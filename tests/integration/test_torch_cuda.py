# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""CUDA tensors over the switch: all ranks share one GPU; the tests judge what came out."""

from __future__ import annotations

from typing import Any

import pytest

from torch_ranks import RankFailure, TorchTestbed, load_torch, require_torch, run_ranks

require_torch()

NUM_RANKS = 4
LEAVING_RANK, EXIT_STATUS = 3, 5
TOTAL = 10.0
TRAINED = ["convolutions", "bfloat16", "float16", "bucket views", "unused parameters", "sparse"]
MAPS = ["cpu:gloo,cuda:switchfold", "cuda:switchfold", "cpu:switchfold,cuda:gloo"]


@pytest.fixture(scope="module", autouse=True)
def gpu() -> None:
    torch, _ = load_torch()
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device; test_torch_staging.py has a stand-in for its stream")


@pytest.fixture(scope="module")
def outcomes(
    gpu: None, torch_testbed: TorchTestbed, tmp_path_factory: pytest.TempPathFactory
) -> list[Any]:
    """The results of the ranks that stay; the last one exits."""
    *stayed, gone = run_ranks(
        "torch_cuda_cases:run",
        NUM_RANKS,
        testbed=torch_testbed,
        arguments={"folder": str(tmp_path_factory.mktemp("cuda"))},
        check=False,
    )
    assert isinstance(gone, RankFailure)
    assert f"status {EXIT_STATUS}" in gone.text, gone
    failures = [outcome for outcome in stayed if isinstance(outcome, RankFailure)]
    assert not failures
    return stayed


def seen(outcomes: list[Any], name: str) -> list[Any]:
    """Return what the ranks saw in a case; fail with its traces if it failed."""
    said = [outcome[name] for outcome in outcomes]
    traces = [each["failure"] for each in said if isinstance(each, dict) and "failure" in each]
    assert not traces, "\n".join(traces)
    return said


def test_collectives_give_what_gloo_gives(outcomes: list[Any]) -> None:
    for each in seen(outcomes, "battery"):
        assert not each["differences"]
        assert each["cases"] >= 70, each["failed on gloo"]


def test_messages_between_two_ranks_are_refused(outcomes: list[Any]) -> None:
    for rank, errors in enumerate(seen(outcomes, "refused")):
        for name, text in zip(("send", "recv"), errors, strict=True):
            assert text.startswith(f"CollectiveInputError: rank {rank}, {name} of group")
            assert "move them to the CPU" in text


def test_sums_are_exact_in_any_memory_layout(outcomes: list[Any]) -> None:
    for each in seen(outcomes, "exact"):
        assert all(all(found) for found in each), each


@pytest.mark.parametrize("stream", ["default stream", "other stream"])
def test_streams_wait_for_each_other(outcomes: list[Any], stream: str) -> None:
    for each in seen(outcomes, stream):
        assert each == {
            "sum": [TOTAL],
            "product": [0.0, 3.0],
            "overwritten": [-1.0],
            "again": [NUM_RANKS * TOTAL],
            "by Gloo": [TOTAL],
            "callback": [2 * TOTAL],
        }


@pytest.mark.parametrize("backend", MAPS)
def test_maps_of_devices(outcomes: list[Any], backend: str) -> None:
    for each in seen(outcomes, backend):
        assert each == {"sum": [TOTAL], "is on switch": True, "devices": ["cuda:0"] * NUM_RANKS}


@pytest.mark.parametrize("prefix", ["", "hook "])
@pytest.mark.parametrize("name", TRAINED)
def test_gradients_are_within_the_bound_of_the_mean(
    outcomes: list[Any], name: str, prefix: str
) -> None:
    said = seen(outcomes, f"{prefix}{name}")
    assert all(each["error"] <= 1 for each in said)
    assert len({each["hash"] for each in said}) == 1


def test_backend_and_hook_give_the_same_bytes(outcomes: list[Any]) -> None:
    """Both sum DDP's buckets in blocks; with 4 ranks the division is exact, except in float16."""
    for name in ("convolutions", "bfloat16", "bucket views", "unused parameters"):
        (plain, *_), (hooked, *_) = seen(outcomes, name), seen(outcomes, f"hook {name}")
        assert plain["hash"] == hooked["hash"], name


def test_rank_that_exits_while_sums_are_pending(outcomes: list[Any]) -> None:
    for rank, each in enumerate(seen(outcomes, "rank away")):
        first, second = each["errors"]
        assert first.startswith(f"RankExitedError: rank {rank}, all_reduce 2")
        assert f"rank {rank}, all_reduce 3" in second
        assert each["kept"] == [rank + 1.0]
    for each in seen(outcomes, "after"):
        assert each == [6.0]


def test_hybrid_training_by_mixed_schemes(gpu: None, torch_testbed: TorchTestbed) -> None:
    *said, dead = run_ranks(
        "torch_hybrid_cases:whole_run",
        NUM_RANKS - 1,
        testbed=torch_testbed,
        arguments={"device": "cuda"},
        check=False,
    )
    assert isinstance(dead, RankFailure)
    for one in said:
        assert not isinstance(one, RankFailure), one
    for name in ("mix", "auto"):
        assert said[0][name]["hash"] == said[1][name]["hash"]
        assert said[0][name]["values"] == said[1][name]["values"]
        assert said[0][name]["error"] < 1e-4
    for rank, one in enumerate(said):
        assert one["death"].startswith(f"rank {rank}, layer "), one["death"]
