# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportMissingTypeArgument=false
"""Machines of an elastic training, each with an agent of torchrun's and one rank.

Gradients are integers, and the mean over ranks is that of their sum: a step that counts twice, not
at all, or with the wrong number of ranks changes the weights, and anything else changes no bit.
"""

from __future__ import annotations

import os
import signal
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.launcher.api import LaunchConfig, elastic_launch
from torch.nn.parallel import DistributedDataParallel

BATCH, WIDTH, DYING_STEP, ALONE_STEP, NUM_STEPS = 6, 4000, 2, 4, 6
RATE = 2.0**-6
TIMEOUT_S = 120.0


class Scale(torch.nn.Module):
    """The gradient of its weights is its input."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(WIDTH))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return (self.weight * values).sum()


def sample(step: int, index: int) -> torch.Tensor:
    return torch.arange(WIDTH) * (step * BATCH + index + 1) % 17 - 8.0


def final_weights() -> torch.Tensor:
    pairs = [(step, index) for step in range(NUM_STEPS) for index in range(BATCH)]
    return -RATE * sum((sample(*pair) for pair in pairs), torch.zeros(WIDTH))


def agent(rank: int, folder: str, endpoint: str) -> dict[str, Any]:
    """Run the agent of a machine; the last one starts when the others have lost one."""
    node = "again" if rank == 3 else str(rank)
    await_file(Path(folder) / "alone", until=node == "again")
    config = LaunchConfig(
        min_nodes=2,
        max_nodes=3,
        nproc_per_node=1,
        run_id="elastic-nodes",
        rdzv_backend="c10d",
        rdzv_endpoint=endpoint,
        rdzv_configs={
            "is_host": node == "0",
            "last_call_timeout": 1,
            "keep_alive_interval": 1,
            "keep_alive_max_attempt": 10,
        },
        local_addr="127.0.0.1",
        max_restarts=3,
        monitor_interval=0.05,
        start_method="fork",
    )
    os.environ["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
    (said,) = elastic_launch(config, train)(folder, node).values()
    return said


def await_file(path: Path, *, until: bool) -> None:
    deadline_s = time.monotonic() + TIMEOUT_S
    while until and not path.exists():
        assert time.monotonic() < deadline_s, f"{path} did not come"
        time.sleep(0.02)


def train(folder: str, node: str) -> dict[str, Any]:
    """Train from the checkpoint on; the machine "2" dies, and two wait for its return."""
    dist.init_process_group("switchfold", timeout=timedelta(seconds=TIMEOUT_S))
    rank, num_ranks = dist.get_rank(), dist.get_world_size()
    group: Any = dist.group.WORLD
    life = (num_ranks, group.session.view.generation)
    model = Scale()
    wrapped = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    checkpoint = Path(folder) / "checkpoint.pt"
    saved: dict[str, Any] = {"step": 0, "lives": [], "weight": model.weight.detach()}
    if checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True)
    model.load_state_dict({"weight": saved["weight"]})
    lives = [*map(tuple, saved["lives"]), (*life, saved["step"])]
    dist.barrier()  # no rank writes the next checkpoint before all have read this one
    vanished = Path(folder) / "vanished"
    for step in range(saved["step"], NUM_STEPS):
        if (node, step) == ("2", DYING_STEP):
            vanished.touch()
            os.kill(os.getppid(), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
        if num_ranks == 2 and (step == ALONE_STEP or not vanished.exists()):
            if vanished.exists():
                (Path(folder) / "alone").touch()
            time.sleep(TIMEOUT_S)  # the agents end it when the third machine is there
        optimizer.zero_grad()
        mine = sum((sample(step, i) for i in range(rank, BATCH, num_ranks)), torch.zeros(WIDTH))
        wrapped(mine * num_ranks).backward()
        optimizer.step()
        if rank == 0:
            unfinished = checkpoint.with_suffix(".part")
            state = {"step": step + 1, "lives": lives, "weight": model.weight.detach()}
            torch.save(state, unfinished)
            unfinished.rename(checkpoint)
    exact = torch.equal(model.weight.detach(), final_weights())
    dist.destroy_process_group()
    return {"lives": lives, "is_exact": exact}
