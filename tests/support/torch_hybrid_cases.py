# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""What each rank does in test_torch_hybrid_ranks.py."""

from __future__ import annotations

import os
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from switchfold.hostlib.torch.hybrid.hybrid_parallel import HybridParallel
from switchfold.hostlib.torch.syncers.sync_error import SyncError

ITERATIONS = 8
BATCH = 4


def make_model() -> nn.Module:
    return nn.Sequential(
        nn.Conv1d(1, 4, 3, padding=1),
        nn.Flatten(),
        nn.Linear(48, 32),
        nn.Tanh(),
        nn.Linear(32, 16),
        nn.Tanh(),
        nn.Linear(16, 3),
    )


def make_batches(num_ranks: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(8)
    shape = (num_ranks * BATCH, 1, 12)
    return [torch.randn(shape, generator=generator) for _ in range(ITERATIONS)]


def train(model: nn.Module, inputs: list[Tensor], parameters: Any) -> float:
    optimizer = torch.optim.AdamW(parameters, lr=1e-3)
    loss = torch.zeros(())
    for x in inputs:
        optimizer.zero_grad()
        loss = (model(x) - x[:, 0, :3].sin()).square().mean()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return loss.item()


def flat(module: nn.Module) -> Tensor:
    return torch.cat([parameter.detach().reshape(-1) for parameter in module.parameters()])


def whole_run(rank: int, device: str = "cpu") -> dict[str, Any]:
    # On a GPU convolutions would round to ten bits.
    torch.backends.cudnn.allow_tf32 = False
    dist.init_process_group("switchfold")
    num_ranks = dist.get_world_size()
    torch.manual_seed(1)
    reference = make_model().to(device)
    joint = [x.to(device) for x in make_batches(num_ranks)]
    train(reference, joint, reference.parameters())
    own = [x[BATCH * rank : BATCH * (rank + 1)] for x in joint]
    said: dict[str, Any] = {}
    for name, scheme in {
        "mix": {"0": "ina", "2": "sfb", "4": "ps", "6": "ina"},
        "auto": "auto",
    }.items():
        torch.manual_seed(1 + rank)
        module = make_model().to(device)
        with HybridParallel(module, scheme=scheme, timeout_s=60.0) as model:
            train(model, own, model.parameters())
            said[name] = {
                "hash": model.book.hash,
                "schemes": {e.layer.name: e.scheme.value for e in model.book.entries},
                "error": float((flat(module) - flat(reference)).abs().max()),
                "values": flat(module).tolist(),
            }
    # A rank dies in the middle; the group itself is not used any more.
    module = make_model().to(device)
    model = HybridParallel(module, scheme={"2": "sfb", "4": "ps"}, timeout_s=15.0)
    loss = model(own[0]).square().mean()
    if rank == num_ranks - 1:
        os._exit(7)
    try:
        loss.backward()
    except SyncError as error:
        said["death"] = str(error)
    model.close()
    return said
