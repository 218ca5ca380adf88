# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
"""PyTorch's features upon process groups: compiled DDP, sharding, device meshes, checkpoints."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch import nn
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard, distribute_tensor
from torch.nn.parallel import DistributedDataParallel

from ddp_models import check_replicas, loss_of, perceptron

NUM_STEPS = 2
_any: Any = torch


def _train(model: Any) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(NUM_STEPS):
        optimizer.zero_grad()
        loss_of(model, dist.get_rank(), step, torch.float32).backward()
        optimizer.step()


def _pair() -> tuple[nn.Module, nn.Module]:
    """Return a model, the same on all ranks, and a copy of it that DDP has trained."""
    torch.manual_seed(11)
    model = perceptron()
    trained = DistributedDataParallel(copy.deepcopy(model))
    _train(trained)
    return model, trained.module


def compiled(gloo: Any) -> dict[str, Any]:
    """Compile DDP; C++ calls the group from within the compiled code."""
    model, expected = _pair()
    _train(_any.compile(DistributedDataParallel(model), backend="eager"))
    return {"hashes": [check_replicas(each, gloo) for each in (model, expected)]}


def sharded(gloo: Any) -> dict[str, Any]:
    """Shard the parameters: FSDP2 gathers them and scatters sums of gradients."""
    model, expected = _pair()
    fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
    _train(model)
    whole: Any = [parameter.full_tensor() for parameter in model.parameters()]  # type: ignore[operator]
    for mine, other in zip(whole, expected.parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-5)
    return {"rows": next(model.parameters()).to_local().shape[0], "all": len(whole[0])}  # type: ignore[operator]


def functional_collectives(_: Any) -> dict[str, Any]:
    rank, group = dist.get_rank(), dist.group.WORLD
    assert group is not None
    summed = functional.all_reduce(torch.full((3,), rank + 1.0), "sum", group)
    gathered = functional.all_gather_tensor(torch.full((1,), float(rank)), 0, group)
    return {"sum": (summed * 2).tolist(), "gathered": (gathered + 0).tolist()}


def checkpointed(folder: Path) -> dict[str, Any]:
    """Save a sharded tensor and read it back."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    saved = {"rows": distribute_tensor(torch.arange(8.0), mesh, [Shard(0)])}
    read = {"rows": distribute_tensor(torch.zeros(8), mesh, [Shard(0)])}
    save(saved, checkpoint_id=str(folder))
    load(read, checkpoint_id=str(folder))
    return {"read": read["rows"].full_tensor().tolist()}
