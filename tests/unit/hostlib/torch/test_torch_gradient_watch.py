# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
"""Backward passes that are refused, or reach a layer twice, do not end in local gradients."""

from __future__ import annotations

from typing import Any, cast

import pytest

from torch_ranks import load_torch, require_torch

require_torch()
torch, _ = load_torch()

from torch import Tensor, nn  # noqa: E402

from switchfold.hostlib.torch.hybrid.gradient_watch import GradientWatch  # noqa: E402
from switchfold.hostlib.torch.hybrid.trained_layers import trained_layers  # noqa: E402
from switchfold.hostlib.torch.hybrid.used_parameters import UsedParameters  # noqa: E402


class _Listener:
    def __init__(self) -> None:
        self.told: list[int] = []
        self.is_refusing = False

    def on_backward_begin(self) -> bool:
        if self.is_refusing:
            raise RuntimeError("refused")
        return True

    def on_layer(self, layer: int) -> None:
        self.told.append(layer)

    def on_backward_end(self) -> None:
        self.told.append(-1)


class _Recomputed(torch.autograd.Function):
    """Does what checkpoint(use_reentrant=True) does; importing that takes seconds."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, module: nn.Module) -> Tensor:
        ctx.x, ctx.module = x, module
        return module(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, None]:
        x = ctx.x.detach().requires_grad_()
        with torch.enable_grad():
            output: Tensor = ctx.module(x)
        output.backward(gradients[0])
        return x.grad, None


class _Twice(nn.Module):
    """Reaches its middle layer in two backward passes inside of one."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.shared = nn.Conv1d(3, 3, 1)
        self.last = nn.Linear(3, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x).unsqueeze(2)
        for _ in range(2):
            x = cast("Tensor", _Recomputed.apply(x, self.shared))
        return self.last(x.squeeze(2))


def watched(model: nn.Module, listener: _Listener) -> GradientWatch:
    return GradientWatch(trained_layers(model), listener, UsedParameters([*model.parameters()]))


def test_the_pass_after_a_refused_one_is_a_new_one() -> None:
    model, listener = nn.Sequential(nn.Linear(3, 2)), _Listener()
    watched(model, listener)
    listener.is_refusing = True
    with pytest.raises(RuntimeError, match="refused"):
        model(torch.ones(4, 3)).sum().backward()
    listener.is_refusing = False
    model(torch.ones(4, 3)).sum().backward()
    assert listener.told == [0, -1]


def test_gradients_that_come_twice_in_one_pass_are_reported_twice() -> None:
    model, listener = _Twice(), _Listener()
    watched(model, listener)
    model(torch.ones(4, 3)).sum().backward()
    assert listener.told.count(1) > 1  # a schedule raises at the second
    assert [listener.told.count(layer) for layer in (0, 2, -1)] == [1, 1, 1]


def test_factors_of_passes_are_not_kept_for_layers_that_go_otherwise() -> None:
    model = nn.Sequential(nn.Linear(3, 2))
    watch = watched(model, _Listener())
    factors = watch.factors["0.weight"]
    factors.install()
    output = model(torch.ones(4, 3))
    factors.remove()
    output.sum().backward()
    assert factors.weight.grad is not None
    factors.weight.grad = None
    assert not len(factors.take()[0])
