# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
"""Which float sums of programs are exact, and which use blocks; ranks of a group call `see`."""

from __future__ import annotations

import os
from datetime import timedelta
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from ddp_models import Branches, loss_of, perceptron
from exact_oracle import IDIOMS, exact_sum

SMALL_BUCKET_MB = 0.01
_any: Any = torch


class _Summed(torch.autograd.Function):
    """Sums in its backward pass, as layers of parallel models do."""

    @staticmethod
    def forward(ctx: Any, values: torch.Tensor) -> torch.Tensor:
        return values.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        own = gradients[0].clone()
        dist.all_reduce(own)
        group: Any = dist.group.WORLD
        group.allreduce([own]).wait()
        return own


class _Calls:
    """The group's float sums, by the calls that it has logged."""

    def __init__(self) -> None:
        group: Any = dist.group.WORLD
        self._log = group._log
        self._seen = set(self._log.latest())

    def new(self) -> list[str]:
        """Return which of "block" and "exact" the sums since the last call were."""
        latest = self._log.latest()
        calls = [call for number, call in latest.items() if number not in self._seen]
        self._seen = set(latest)
        sums = [c.key for c in calls if c.kind.startswith("all_reduce") and "float" in c.key]
        return sorted({"block" if key.endswith("in blocks") else "exact" for key in sums})


def _sums(rank: int, num_ranks: int) -> dict[str, Any]:
    """Return what all_reduce gives for a loss and a count, for bfloat16, for strides."""
    seen: dict[str, Any] = {}
    for number, (dtype, values) in enumerate(IDIOMS):
        tensor = torch.tensor(values, dtype=getattr(torch, dtype))
        dist.all_reduce(tensor)
        seen[f"idiom {number}"] = tensor.tolist()
    source = torch.Generator().manual_seed(5)
    values = torch.randn(num_ranks, 6000, generator=source).to(torch.bfloat16)
    tensor = values[rank].clone()
    dist.all_reduce(tensor)
    expected = exact_sum(list(values.float().numpy()), name="bfloat16")
    seen["bfloat16 off"] = int((tensor.float().numpy() != expected).sum())
    strided = torch.full((3, 6), 0.1, dtype=torch.float64)[:, ::2]
    dist.all_reduce(strided, op=dist.ReduceOp.AVG)
    seen["strided mean"] = strided.unique().tolist()
    return seen


def _precisions(rank: int) -> dict[str, list[str]]:
    calls, seen = _Calls(), dict[str, list[str]]()

    def step(model: Any) -> None:
        loss_of(model, rank, 0, torch.float32).backward()

    torch.manual_seed(3)
    trained = DistributedDataParallel(perceptron(), bucket_cap_mb=SMALL_BUCKET_MB)
    seen["construction"] = calls.new()
    step(trained)
    seen["buckets"] = calls.new()
    step(_any.compile(DistributedDataParallel(perceptron()), backend="eager"))
    seen["compiled"] = calls.new()
    step(partial(checkpoint, trained, use_reentrant=False))
    seen["checkpointed"] = calls.new()
    step(DistributedDataParallel(Branches(), find_unused_parameters=True))
    seen["unused parameters"] = calls.new()
    with trained.join():
        for _ in range(rank + 1):
            step(trained)
    seen["join"] = calls.new()
    summed: Any = _Summed.apply(torch.ones(3, requires_grad=True))
    summed.sum().backward()
    seen["own backward"] = calls.new()
    dist.all_reduce(torch.tensor([0.5, 3.0]))
    seen["loss"] = calls.new()
    return seen


def see(rank: int, num_ranks: int, ports: list[int]) -> dict[str, Any]:
    """Run everything in a group for each setting of SWITCHFOLD_PRECISION."""
    seen: dict[str, Any] = {}
    for setting, port in zip(("auto", "exact", "block"), ports, strict=True):
        os.environ["SWITCHFOLD_PRECISION"] = setting
        dist.init_process_group(
            "switchfold",
            init_method=f"tcp://127.0.0.1:{port}",
            rank=rank,
            world_size=num_ranks,
            timeout=timedelta(seconds=240),
        )
        if setting == "auto":
            seen |= _sums(rank, num_ranks)
        seen[setting] = _precisions(rank)
        dist.barrier()
        dist.destroy_process_group()
    return seen
