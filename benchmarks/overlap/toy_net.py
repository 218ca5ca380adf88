# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The toy net of the overlap benchmark: convolutions below a layer with many values.

Its computation is emulated or real. Emulated computation waits and leaves the processor free, as a
worker's processor is free while an accelerator computes.
"""

from __future__ import annotations

import time
from typing import Any

import torch

untyped: Any = torch  # some of its functions are only partly typed

CHANNELS = 8
IMAGE = 32
BATCH = 8
POOLED = 4
"""Width and height of the convolutions' output."""


class EmulatedLayer(torch.nn.Module):
    """A layer whose backward pass has a given time and a given gradient."""

    def __init__(self, num_values: int, backward_s: float) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(num_values))
        self.gradient = torch.zeros(num_values)
        self.backward_s = backward_s
        self.is_hurried = False
        """Whether the pass takes no time, for the oracle."""

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the inputs."""
        wait: Any = _Wait
        return wait.apply(inputs, self.weight, self)


class _Wait(torch.autograd.Function):
    """The identity; its backward pass takes a layer's time."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any, **_: Any) -> Any:
        values, _weight, ctx.layer = inputs
        return values.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        layer = ctx.layer
        if not layer.is_hurried:
            time.sleep(layer.backward_s)  # a computation of a known length, emulated
        return gradients[0], layer.gradient.clone(), None


class ToyNet(torch.nn.Module):
    """`conv` at the bottom, `fc` on top, whose gradients come first."""

    def __init__(self, conv: torch.nn.Module, fc: torch.nn.Module) -> None:
        super().__init__()
        self.conv = conv
        self.fc = fc

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Run the bottom layer, then the top layer."""
        return self.fc(self.conv(inputs))

    def set_iteration(self, repeat: int, rank: int, *, is_hurried: bool = False) -> torch.Tensor:
        """Set the gradients and return the inputs of an iteration, equal in both arrangements."""
        generator = untyped.Generator().manual_seed(1000 * repeat + rank)
        for layer in (self.conv, self.fc):
            if isinstance(layer, EmulatedLayer):
                layer.gradient = torch.randn(layer.weight.shape, generator=generator)
                layer.is_hurried = is_hurried
        if isinstance(self.fc, EmulatedLayer):
            return torch.ones(1)
        return torch.randn(BATCH, CHANNELS, IMAGE, IMAGE, generator=generator)


def emulated_net(
    *, conv_values: int, conv_backward_s: float, fc_values: int, fc_backward_s: float
) -> ToyNet:
    """Return a net that waits instead of computing."""
    return ToyNet(
        EmulatedLayer(conv_values, conv_backward_s), EmulatedLayer(fc_values, fc_backward_s)
    )


def real_net(*, num_convolutions: int, fc_values: int) -> ToyNet:
    """Return a net that computes: convolutions with few values, a linear layer with many."""
    layers: list[torch.nn.Module] = []
    for _ in range(num_convolutions):
        layers += [torch.nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1), torch.nn.ReLU()]
    features = CHANNELS * POOLED**2
    conv = torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(POOLED), torch.nn.Flatten())
    return ToyNet(conv, torch.nn.Linear(features, max(1, fc_values // features), bias=False))


def pass_s(net: ToyNet, inputs: torch.Tensor) -> float:
    """Return the shortest time of three forward and backward passes."""
    times: list[float] = []
    for _ in range(3):
        began_s = time.monotonic()
        untyped.autograd.backward(net(inputs).sum())
        times.append(time.monotonic() - began_s)
    net.zero_grad()
    return min(times)
