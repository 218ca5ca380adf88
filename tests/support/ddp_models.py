# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownLambdaType=false
"""Small models, their data by rank and step, and an exact mean to compare gradients with."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from switchfold.hostlib.summation.quantization import chunk_exponents, error_bound

WIDTH = 24
SMALL_BUCKET_MB = 0.002
"""About 500 float32: the models below need several such buckets."""

Make = Callable[[], nn.Module]


def perceptron() -> nn.Module:
    return nn.Sequential(
        nn.Linear(WIDTH, 48), nn.Tanh(), nn.Linear(48, 40), nn.Tanh(), nn.Linear(40, WIDTH)
    )


def convolutions() -> nn.Module:
    channels = 6
    return nn.Sequential(
        nn.Unflatten(1, (1, 4, WIDTH // 4)),
        nn.Conv2d(1, channels, 3, padding=1),
        nn.BatchNorm2d(channels),
        nn.ReLU(),
        nn.Conv2d(channels, channels, 3, padding=1),
        nn.Flatten(),
        nn.Linear(channels * WIDTH, WIDTH),
    )


class ZeroSized(nn.Module):
    """A model with some parameters that have no elements."""

    def __init__(self) -> None:
        super().__init__()
        self.empty = nn.Parameter(torch.zeros(0, 5))
        self.layers = perceptron()

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return self.layers(values) + self.empty.sum()


class Branches(nn.Module):
    """A model of which odd ranks leave out a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = perceptron()
        self.odd = nn.Linear(WIDTH, WIDTH)
        self.never = nn.Linear(WIDTH, WIDTH)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        if dist.get_rank() % 2:
            values = self.odd(values)
        return self.layers(values)


class Words(nn.Module):
    """An embedding with sparse gradients below a perceptron."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, WIDTH, sparse=True)
        self.layers = perceptron()

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        words = values[:, :3].abs().mul(100).long() % 50
        return self.layers(self.embedding(words).sum(dim=1))


def batch(rank: int, step: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1000 * rank + step)
    return torch.randn(8, WIDTH, generator=generator).to(dtype)


def loss_of(
    model: nn.Module, rank: int, step: int, dtype: torch.dtype, device: str = "cpu"
) -> torch.Tensor:
    values = batch(rank, step, dtype).to(device)
    return (model(values) - values.flip(1)).float().square().mean()


def digest(model: nn.Module) -> str:
    """Return a hash of all parameters' bytes."""
    sha = hashlib.sha256()
    for parameter in model.parameters():
        sha.update(parameter.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return sha.hexdigest()


def check_replicas(model: nn.Module, group: Any) -> str:
    """Return the hash of the parameters, which is the same on all ranks."""
    mine = digest(model)
    digests: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(digests, mine, group=group)
    assert len(set(digests)) == 1, f"replicas differ: {digests}"
    return mine


def compare(  # noqa: PLR0913 - a case names the few that differ
    make: Make,
    oracle_group: Any,
    *,
    hook: tuple[Any, Any] | None = None,
    dtype: torch.dtype = torch.float32,
    device: str = "cpu",
    num_steps: int = 3,
    max_norm: float = 0.0,
    **options: Any,
) -> dict[str, Any]:
    """Train a model with and without the switch, and check every gradient.

    Each must be within the bound that hostlib.summation.quantization states of the mean in
    float64. The model that Gloo trains beside it, and that never sees our sums, must end with the
    same weights except for rounding.
    """
    rank, num_ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(7)
    model = make().to(device, dtype)
    local = copy.deepcopy(model)
    options = {"bucket_cap_mb": SMALL_BUCKET_MB, **options}
    theirs = DistributedDataParallel(copy.deepcopy(model), process_group=oracle_group, **options)
    ours = DistributedDataParallel(model, **options)
    if hook is not None:
        ours.register_comm_hook(*hook)
    optimizers = [_optimizer(ours), _optimizer(theirs)]
    worst = 0.0
    for step in range(num_steps):
        local.load_state_dict(ours.module.state_dict())
        for each in (ours, theirs, local):
            each.zero_grad()
            loss_of(each, rank, step, dtype, device).backward()
        if hook is None:  # DDP divides before it sums, and subnormal numbers then lose bits
            for parameter in local.parameters():
                if parameter.grad is not None:
                    parameter.grad.mul_(torch.scalar_tensor(1 / num_ranks, dtype=torch.float64))
        share = 1 if hook is None else num_ranks
        worst = max(worst, _worst_error(ours.module, local, share, oracle_group))
        for each, optimizer in zip((ours, theirs), optimizers, strict=True):
            if max_norm:
                nn.utils.clip_grad_norm_(each.parameters(), max_norm)
            optimizer.step()
    assert worst <= 1, f"gradients off by {worst} of the bound"
    eps = max(torch.finfo(dtype).eps, torch.finfo(torch.float32).eps)
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=8 * eps, atol=8 * eps)
    # The buckets are made again after the first step if the graph does not change.
    logged: dict[str, Any] = getattr(ours, "_get_ddp_logging_data")()  # noqa: B009
    buckets = logged.get("rebuilt_bucket_sizes") or logged["bucket_sizes"]
    return {"error": worst, "hash": check_replicas(ours, oracle_group), "buckets": buckets}


def _optimizer(model: nn.Module) -> torch.optim.Optimizer:
    """Return SGD with two groups of parameters; sparse gradients allow no momentum."""
    parameters = [*model.parameters()]
    has_sparse = any(isinstance(m, nn.Embedding) for m in model.modules())
    groups = [
        {"params": parameters[:2], "lr": 0.05},
        {"params": parameters[2:], "momentum": 0.0 if has_sparse else 0.9},
    ]
    return torch.optim.SGD(groups, lr=0.1)


def _worst_error(ours: nn.Module, local: nn.Module, share: int, group: Any) -> float:
    """Return the largest error of a sum over ranks, divided by `share`, in parts of its bound."""
    num_ranks = dist.get_world_size()
    mine = flat_gradients(local).cpu().double()
    everyone = [torch.empty_like(mine) for _ in range(num_ranks)]
    dist.all_gather(everyone, mine, group=group)
    stacked = torch.stack(everyone).numpy()
    result = flat_gradients(ours).cpu()
    info = torch.finfo(result.dtype)
    # A chunk's exponent is at most that of the whole gradient.
    exponent = int(chunk_exponents(np.abs(stacked).max(0)[None].astype(np.float32))[0])
    exact = stacked.sum(0) / share
    dtype = np.float64 if result.dtype == torch.float64 else np.float32
    bound = error_bound(exponent, num_ranks, dtype) / share
    rounding = np.abs(exact) * info.eps / 2 + info.smallest_normal * info.eps / 2
    rounding += np.abs(exact) * np.finfo(dtype).eps / 2
    return float((np.abs(result.double().numpy() - exact) / (bound + rounding)).max())


def flat_gradients(model: nn.Module) -> torch.Tensor:
    """Return all gradients one after the other; zeros for those that are missing."""
    return torch.cat([_flat_gradient(parameter) for parameter in model.parameters()])


def _flat_gradient(parameter: nn.Parameter) -> torch.Tensor:
    gradient = parameter.grad
    if gradient is None:
        return torch.zeros_like(parameter).reshape(-1)
    if gradient.is_sparse:
        gradient = gradient.to_dense()
    return gradient.reshape(-1)
