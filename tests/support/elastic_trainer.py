# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownLambdaType=false
"""A training script for torchrun that one rank's death interrupts, and a checkpoint continues.

Arguments: folder for checkpoint and records, number of steps, rank that dies (-1: none), step of
its death. It dies once, in the midst of a backward pass, as by kill -9.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

gc.disable()  # What is loaded stays: collections need not look at it, now or later.

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

from ddp_models import SMALL_BUCKET_MB, digest, loss_of, perceptron  # noqa: E402
from time_bound import wait_until  # noqa: E402

gc.freeze()
gc.enable()


def train(
    rank: int, folder: str, num_steps: int, dying_rank: int = -1, dying_step: int = 0
) -> dict[str, Any]:
    """Train from the checkpoint on, if there is one; return what was done."""
    life = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
    checkpoint = Path(folder) / "checkpoint.pt"
    dist.init_process_group("switchfold")
    group: Any = dist.group.WORLD
    torch.manual_seed(11)
    model = DistributedDataParallel(perceptron(), bucket_cap_mb=SMALL_BUCKET_MB)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    # DDP makes its buckets again after the first backward pass, and values are rounded by chunks of
    # a bucket: with this pass before the first step, every run has the same buckets throughout.
    loss_of(model, rank, 0, torch.float32).backward()
    first_step = 0
    if checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        first_step = saved["step"]
    # No rank may write the next checkpoint before all have read this one.
    dist.barrier()
    generation = group.session.view.generation
    (Path(folder) / f"{rank}-life-{life}").write_text(str(generation))
    for step in range(first_step, num_steps):
        if (rank, step, life) == (dying_rank, dying_step, 0):
            # What comes back begins with this step, once rank 0 has stored the one before.
            wait_until(
                lambda step=step: torch.load(checkpoint, weights_only=True)["step"] == step,
                "the checkpoint of the step before",
            )
            layer: Any = model.module[2]
            layer.register_full_backward_hook(lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        optimizer.zero_grad()
        loss_of(model, rank, step, torch.float32).backward()
        optimizer.step()
        if rank == 0:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            unfinished = checkpoint.with_suffix(".part")
            torch.save({**state, "step": step + 1}, unfinished)
            unfinished.rename(checkpoint)
    said = {
        "life": life,
        "first_step": first_step,
        "generation": generation,
        "hash": digest(model),
    }
    dist.destroy_process_group()
    return said


def main() -> None:
    folder, *numbers = sys.argv[1:]
    num_steps, dying_rank, dying_step = (int(number) for number in numbers)
    rank = int(os.environ["RANK"])
    said = train(rank, folder, num_steps, dying_rank, dying_step)
    (Path(folder) / f"{rank}.json").write_text(json.dumps(said))


if __name__ == "__main__":
    main()
