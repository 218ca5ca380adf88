# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel over the switch, unmodified and with the communication hook.

All cases run in one start of four ranks (tests/support/ddp_ranks.py); the tests judge what came
out.
"""

from __future__ import annotations

from typing import Any

import pytest

from torch_ranks import RankFailure, TorchTestbed, require_torch, run_ranks, torch_testbed

require_torch()

__all__ = ["torch_testbed"]
pytestmark = pytest.mark.timeout(600)
NUM_RANKS = 4
EXITING_RANK, EXIT_STATUS = 3, 17
DISAGREEING_RANK = 2
TRAINED = ["float32", "bfloat16", "float16", "bucket views", "zero-sized", "sparse"]


@pytest.fixture(scope="module")
def outcomes(torch_testbed: TorchTestbed, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """The ranks' results; in the end the last rank exits, and the one before it fails."""
    folder = tmp_path_factory.mktemp("ddp")
    said = run_ranks(
        "ddp_ranks:run",
        NUM_RANKS,
        testbed=torch_testbed,
        arguments={"folder": str(folder)},
        environment={"SWITCHFOLD_JOB_TOKEN": "of-all-jobs-of-these-ranks"},
        check=False,
        timeout_s=540.0,
        preload=("torch._dynamo", "torch.distributed.optim", "parallel_cases"),
    )
    failures = [outcome for outcome in said if isinstance(outcome, RankFailure)]
    assert failures == said[DISAGREEING_RANK:], failures
    return said


def figures(outcomes: list[Any], name: str) -> list[dict[str, Any]]:
    """Return a case's figures on the ranks that lived; fail with its traces if it failed."""
    said = [outcome[name] for outcome in outcomes[:DISAGREEING_RANK]]
    failures = [f"rank {i}: {each['failure']}" for i, each in enumerate(said) if "failure" in each]
    assert not failures, "\n".join(failures)
    return said


@pytest.mark.parametrize(
    "name",
    [
        *TRAINED,
        *("clipped", "static graph", "unused parameters"),
        *(f"hook {name}" for name in [*TRAINED, "float64"]),
    ],
)
def test_gradients_are_within_the_bound_of_the_mean(outcomes: list[Any], name: str) -> None:
    said = figures(outcomes, name)
    assert all(each["error"] <= 1 for each in said)
    assert len({each["hash"] for each in said}) == 1


@pytest.mark.parametrize("prefix", ["", "hook "])
def test_model_is_trained_in_several_buckets(outcomes: list[Any], prefix: str) -> None:
    (said, *_) = figures(outcomes, f"{prefix}float32")
    assert len(said["buckets"].split(",")) >= 3


def test_backend_and_hook_give_the_same_bytes(outcomes: list[Any]) -> None:
    """The same sums, divided before or after the sum: with 4 ranks both are exact."""
    for name in TRAINED:
        (plain, *_), (hooked, *_) = figures(outcomes, name), figures(outcomes, f"hook {name}")
        if name != "sparse":
            assert plain["hash"] == hooked["hash"], name


@pytest.mark.parametrize("prefix", ["", "hook "])
def test_nan_of_one_rank_reaches_all(outcomes: list[Any], prefix: str) -> None:
    assert all(each["nan"] for each in figures(outcomes, f"{prefix}nan"))


@pytest.mark.parametrize("prefix", ["", "hook "])
def test_no_sync_sends_nothing(outcomes: list[Any], prefix: str) -> None:
    for each in figures(outcomes, f"{prefix}no_sync"):
        assert each["accumulating"] == 0
        assert each["sent"] > 0


@pytest.mark.parametrize("name", ["join", "hook join", "join of those left"])
def test_join_takes_uneven_inputs(outcomes: list[Any], name: str) -> None:
    assert len({each["hash"] for each in figures(outcomes, name)}) == 1


def test_late_rank_is_left_out_of_the_mean_but_receives_it(outcomes: list[Any]) -> None:
    for each in figures(outcomes, "hook late rank"):
        assert each["off"] < 1e-6, "the mean of the three that came in time"
        assert each["is_even"], "the late rank has the same bytes"


def test_sharded_optimizer_gives_the_bytes_of_the_plain_one(
    outcomes: list[Any],
) -> None:
    for each in figures(outcomes, "zero optimizer"):
        assert len(set(each["hashes"])) == 1


def test_compiled_model_is_trained_to_the_same_bytes(outcomes: list[Any]) -> None:
    for each in figures(outcomes, "compiled"):
        assert len(set(each["hashes"])) == 1


def test_features_upon_process_groups(outcomes: list[Any]) -> None:
    """Sharded parameters, device meshes, functional collectives and sharded checkpoints."""
    for each in figures(outcomes, "sharded"):
        assert 0 < each["rows"] < each["all"]
    for each in figures(outcomes, "functional collectives"):
        assert each == {"sum": [20.0] * 3, "gathered": [0.0, 1.0, 2.0, 3.0]}
    for each in figures(outcomes, "checkpoint"):
        assert each["read"] == [float(value) for value in range(8)]


def test_hook_after_its_state_was_closed(outcomes: list[Any]) -> None:
    for rank, each in enumerate(figures(outcomes, "hook closed state")):
        assert f"rank {rank}, DDP bucket 0" in each["text"]
        assert "closed" in each["text"]


def test_ranks_that_disagree_on_the_number_of_parameters(outcomes: list[Any]) -> None:
    for each in figures(outcomes, "parameter counts"):
        assert each["type"] == "RuntimeError"
        assert "same model across all ranks" in each["text"]


def test_rank_that_exits_during_a_step(outcomes: list[Any]) -> None:
    assert str(EXIT_STATUS) in outcomes[EXITING_RANK].text
    for rank, each in enumerate(figures(outcomes, "exit")):
        assert f"rank {rank}, all_reduce" in each["text"], each
        assert f"worker {EXITING_RANK} lost" in each["text"]
        assert "restart the ranks" in each["text"]


def test_rank_whose_parameters_have_another_shape(outcomes: list[Any]) -> None:
    """PyTorch reports the shapes to that rank; the others report that it has gone."""
    assert "appears not to match" in outcomes[DISAGREEING_RANK].trace
    for each in figures(outcomes, "shapes"):
        # Gloo may notice before the controller does.
        gone = (f"worker {DISAGREEING_RANK}", "closed by peer", "reset by peer", "Broken pipe")
        assert any(text in each["text"] for text in gone), each
