# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""A script's function for `switchfold tolerance`: a linear model that learns a known matrix."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from switchfold.hostlib.torch.training_task import TrainingTask

INPUTS, OUTPUTS = 160, 100
"""16,100 parameters: 46 chunks of a wide switch."""
STEPS = 6


def task(seed: int, rank: int, num_ranks: int) -> TrainingTask:
    """Return a training that gains in every epoch."""
    model = nn.Linear(INPUTS, OUTPUTS)
    wanted = torch.ones(INPUTS, OUTPUTS) / INPUTS
    generator = torch.Generator().manual_seed(seed * num_ranks + rank)
    batches: list[tuple[Tensor, Tensor]] = []
    for _ in range(STEPS):
        inputs = torch.randn(32, INPUTS, generator=generator)
        batches.append((inputs, inputs @ wanted))

    def closeness(trained: nn.Module) -> float:
        assert isinstance(trained, nn.Linear)
        return -(trained.weight.T - wanted).norm().item()

    return TrainingTask(
        model=model,
        batches=batches,
        loss=nn.MSELoss(),
        optimizer=torch.optim.SGD(model.parameters(), lr=5.0),
        metric=closeness,
        epochs=2,
    )


def number(*_: int) -> int:
    """Return what is no training."""
    return 3
