# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A training by Ray whose last worker is killed once; it goes on from the last checkpoint."""

from __future__ import annotations

import argparse
import hashlib
import os
import secrets
import signal
from pathlib import Path
from typing import Any

import ray
import ray.train
import torch
import torch.distributed as dist
from ray.train.torch import TorchConfig, TorchTrainer, prepare_model

STEPS = 12
KILLED_AT = 5
"""A step behind the first checkpoint, of the first start alone."""
CHECKPOINT_EVERY = 4


def train(config: dict[str, Any]) -> None:
    torch.manual_seed(1)
    model = prepare_model(torch.nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    folder = Path(config["folder"])
    rank, begin = dist.get_rank(), 0
    checkpoint = ray.train.get_checkpoint()
    if checkpoint is not None:
        with checkpoint.as_directory() as saved:
            state = torch.load(Path(saved) / "state.pt")
        model.load_state_dict(state["model"])
        begin = state["step"] + 1
    samples = torch.Generator().manual_seed(100 * begin + rank)
    for step in range(begin, STEPS):
        loss = model(torch.randn(32, 64, generator=samples)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if begin == 0 and step == KILLED_AT and rank == dist.get_world_size() - 1:
            ray.train.get_all_reported_checkpoints()  # returns once Ray has them
            os.kill(os.getpid(), signal.SIGKILL)
        if step % CHECKPOINT_EVERY == CHECKPOINT_EVERY - 1:
            _report(model, step, folder)
    weights = b"".join(value.numpy().tobytes() for value in model.state_dict().values())
    digest = hashlib.sha256(weights).hexdigest()
    (folder / f"result{rank}").write_text(f"{begin} {dist.get_backend()} {digest}", "utf-8")


def _report(model: torch.nn.Module, step: int, folder: Path) -> None:
    checkpoint = None
    if dist.get_rank() == 0:
        saved = folder / f"step{step}"
        saved.mkdir(exist_ok=True)
        torch.save({"model": model.state_dict(), "step": step}, saved / "state.pt")
        checkpoint = ray.train.Checkpoint.from_directory(str(saved))
    ray.train.report({"step": step}, checkpoint=checkpoint)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args()
    job = {"SWITCHFOLD_JOB": "restarted", "SWITCHFOLD_JOB_TOKEN": secrets.token_hex(16)}
    ray.init(runtime_env={"env_vars": job})
    trainer = TorchTrainer(
        train,
        train_loop_config={"folder": str(options.folder)},
        torch_config=TorchConfig(backend="switchfold"),
        scaling_config=ray.train.ScalingConfig(num_workers=options.workers),
        run_config=ray.train.RunConfig(
            storage_path=str(options.folder / "storage"),
            failure_config=ray.train.FailureConfig(max_failures=1),
        ),
    )
    trainer.fit()


if __name__ == "__main__":
    main()
