# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Ray Train over the switch: the backend is named in TorchConfig, and the loop is plain PyTorch.

    python examples/clusters/ray_train.py --workers 4

docs/clusters/ray.md says which variables Ray's workers need.
"""

import argparse
import hashlib
import os
import secrets
from typing import Any

import ray
import ray.train
import torch
import torch.distributed as dist
from ray.train.torch import TorchConfig, TorchTrainer, prepare_model


def train(config: dict[str, Any]) -> dict[str, Any]:
    """Fit a line in 64 dimensions; each worker has samples of its own."""
    torch.manual_seed(1)
    model = prepare_model(torch.nn.Linear(64, 1))  # wraps it in DistributedDataParallel
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    samples = torch.Generator().manual_seed(dist.get_rank())
    true_weights = torch.linspace(-1, 1, 64)
    loss = torch.zeros(())
    for _ in range(config["steps"]):
        inputs = torch.randn(32, 64, generator=samples)
        loss = torch.nn.functional.mse_loss(model(inputs).squeeze(1), inputs @ true_weights)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    weights = b"".join(value.numpy().tobytes() for value in model.state_dict().values())
    own = hashlib.sha256(weights).hexdigest(), ray.get_runtime_context().get_node_id()
    gathered: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(gathered, own)
    digests, nodes = map(set, zip(*gathered, strict=True))
    assert len(digests) == 1, "the workers' models differ"
    ray.train.report({"loss": loss.item()})
    return {"backend": dist.get_backend(), "loss": loss.item(), "nodes": len(nodes)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--one-per-node", action="store_true", help="for clusters")
    options = parser.parse_args()
    # A job of this run alone, into which no other run's workers get.
    job = {
        "SWITCHFOLD_JOB": os.environ.get("SWITCHFOLD_JOB", f"ray-{secrets.token_hex(4)}"),
        "SWITCHFOLD_JOB_TOKEN": secrets.token_hex(16),
    }
    ray.init(runtime_env={"env_vars": job})
    trainer = TorchTrainer(
        train,
        train_loop_config={"steps": options.steps},
        torch_config=TorchConfig(backend="switchfold"),
        scaling_config=ray.train.ScalingConfig(
            num_workers=options.workers,
            placement_strategy="STRICT_SPREAD" if options.one_per_node else "PACK",
        ),
    )
    found: Any = trainer.fit().return_value  # of rank 0; raises what a worker has raised
    print(f"backend {found['backend']}: loss {found['loss']:.4f}")
    print(f"{options.workers} workers on {found['nodes']} nodes have the same model")


if __name__ == "__main__":
    main()
