# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Optimisers against those of PyTorch, over steps that touch every value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from switchfold.hostlib.parameter_server.rows import Adagrad, Adam, Optimiser, RowTable, Sgd
from torch_ranks import load_torch, require_torch

STEPS = 50


@pytest.mark.parametrize(
    ("optimiser", "name", "options"),
    [
        (Sgd(learning_rate=0.1), "SGD", {"lr": 0.1}),
        (Sgd(learning_rate=0.1, momentum=0.9), "SGD", {"lr": 0.1, "momentum": 0.9}),
        (Adagrad(learning_rate=0.1), "Adagrad", {"lr": 0.1}),
        (Adam(learning_rate=0.01), "Adam", {"lr": 0.01}),
        (
            Adam(learning_rate=0.1, beta1=0.5, beta2=0.9, epsilon=1e-3),
            "Adam",
            {"lr": 0.1, "betas": (0.5, 0.9), "eps": 1e-3},
        ),
    ],
    ids=["sgd", "momentum", "adagrad", "adam", "adam-options"],
)
def test_rows_move_as_with_torch(optimiser: Optimiser, name: str, options: dict[str, Any]) -> None:
    require_torch()
    torch, _ = load_torch()
    rng = np.random.default_rng(7)
    table = RowTable(width=24, max_rows=40, optimiser=optimiser)
    keys = np.arange(40, dtype=np.int64)
    parameter = torch.zeros(40, 24, requires_grad=True)
    of_torch = getattr(torch.optim, name)([parameter], **options)
    for _ in range(STEPS):
        gradients = rng.standard_normal((40, 24), np.float32)
        table.push(keys, gradients)
        parameter.grad = torch.from_numpy(gradients)
        of_torch.step()
    expected = parameter.detach().numpy()
    # Both round each of about eight operations of a step by 2^-24 of what they work on: of the
    # values and their states, or of a step of at most a few learning rates.
    largest = max(np.abs(expected).max(), 10 * options["lr"])
    np.testing.assert_allclose(
        table.pull(keys).values, expected, rtol=0, atol=STEPS * 8 * 2.0**-24 * largest
    )
