# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
"""Built-in models of `switchfold tolerance`: their sizes and batches; scripts that are none."""

from __future__ import annotations

import os
from typing import Any

import pytest

from torch_ranks import load_torch, require_torch

require_torch()
torch, _ = load_torch()

from switchfold.controller.cli.tolerance import data_sets, models, rank  # noqa: E402
from switchfold.controller.cli.tolerance.command import BUILT_IN  # noqa: E402
from switchfold.controller.cli.tolerance.errors import ToleranceRunError  # noqa: E402
from switchfold.controller.cli.workloads.glosses import FOLDER  # noqa: E402
from switchfold.hostlib.torch import TrainingTask  # noqa: E402

NUM_RANKS = 4
CHUNK = 352
"""Values of a packet."""
QUICK = tuple(name for name in BUILT_IN if name.endswith(("digits", "manual")))
TRIED = BUILT_IN if "SWITCHFOLD_ALL_MODELS" in os.environ else QUICK
"""Each kind with one data set; the others take seconds to read."""


def test_the_command_knows_all_models() -> None:
    assert tuple(models.MODELS) == BUILT_IN


@pytest.mark.parametrize("name", TRIED)
def test_a_model_trains_and_may_lack_a_hundredth(name: str) -> None:
    if "wordnet" in name and not FOLDER.exists():
        pytest.skip("WordNet is not installed: apt-get install wordnet-base")
    torch.manual_seed(1)
    task = models.MODELS[name](1, 0, NUM_RANKS)
    assert isinstance(task, TrainingTask)
    size = sum(parameter.numel() for parameter in task.model.parameters())
    assert NUM_RANKS * size / CHUNK * 0.01 > 1, "a hundredth is no contribution at all"
    inputs, targets = next(iter(task.batches))
    loss = task.loss(task.model(inputs), targets)
    loss.backward()
    task.optimizer.step()
    assert task.loss(task.model(inputs), targets) < loss
    task.model.eval()
    with torch.no_grad():
        assert task.metric(task.model) <= 1


def test_ranks_share_each_batch_and_see_each_sample_once() -> None:
    count, batch = 103, 20
    samples = data_sets.TensorSamples(
        inputs=torch.arange(count),
        targets=-torch.arange(count),
        held_inputs=torch.empty(0),
        held_targets=torch.empty(0),
    )
    parts = [models.RankBatches(samples, batch, (7, rank, NUM_RANKS)) for rank in range(NUM_RANKS)]
    epochs: list[list[int]] = []
    for _ in range(2):
        seen: list[int] = []
        for shares in zip(*map(iter, parts), strict=True):
            assert all((inputs == -targets).all() for inputs, targets in shares)
            assert {len(inputs) for inputs, _ in shares} == {batch // NUM_RANKS}
            seen += torch.cat([inputs for inputs, _ in shares]).tolist()
        assert len(set(seen)) == len(seen) == count // batch * batch
        epochs.append(seen)
    assert epochs[0] != epochs[1]


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ("no_such_module:task", r"cannot load 'task' of the module 'no_such_module'"),
        ("tolerance_tasks:missing", r"cannot load 'missing' of the module 'tolerance_tasks'"),
        ("tolerance_tasks:STEPS", r"tolerance_tasks:STEPS is a int, not a function"),
    ],
)
def test_a_script_that_has_no_such_function_is_named(source: str, wrong: str) -> None:
    with pytest.raises(ToleranceRunError, match=wrong):
        rank.find_maker(source)


def test_what_a_function_returns_is_checked() -> None:
    class Joined:
        rank, num_ranks = 0, 1

    joined: Any = Joined()
    trainer = rank.RankTrainer(joined)
    with pytest.raises(ToleranceRunError, match="tolerance_tasks:number returned a int"):
        trainer.prepare({"source": "tolerance_tasks:number", "seed": 1})


def test_a_training_of_no_epoch_is_refused() -> None:
    model = torch.nn.Linear(1, 1)
    with pytest.raises(ValueError, match="epochs is 0"):
        TrainingTask(
            model=model,
            batches=[],
            loss=torch.nn.MSELoss(),
            optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
            metric=lambda _: 0.0,
            epochs=0,
        )
