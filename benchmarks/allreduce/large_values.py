# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What gradients would gain if lost packets of large values were sent again, and others let go.

Small models are trained in memory. Each gradient is cut into packets; some are lost, evenly. The
table has the energy (squared norm) of what is missing, as a share of the gradient's: where all that
is lost is let go, where only packets of small scale are, and where as many are, whatever their
scale. The scale is that of the packet's exponent, which workers agree on before they send it.

    python benchmarks/allreduce/large_values.py --loss 0.05
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from benchmarks.support.machine import describe_machine, machine_line  # noqa: E402

CLASSES: Final = 10
MODELS: Final = ("mlp", "cnn", "transformer")


def model_of(name: str) -> nn.Module:
    """Return a model from 8 x 8 images of 3 colours to classes."""
    if name == "mlp":
        return nn.Sequential(
            nn.Flatten(), nn.Linear(192, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
            nn.Linear(512, CLASSES),
        )  # fmt: skip
    if name == "cnn":
        return nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
            nn.MaxPool2d(2), nn.Conv2d(64, 128, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, CLASSES),
        )  # fmt: skip
    layer: Any = nn.TransformerEncoderLayer(128, 4, 256, dropout=0.0, batch_first=True)
    return nn.Sequential(
        nn.Flatten(2), nn.Linear(64, 128), nn.TransformerEncoder(layer, 2), nn.Flatten(),
        nn.Linear(384, CLASSES),
    )  # fmt: skip


def gradients(name: str, steps: int, seed: int) -> Iterator[NDArray[np.float32]]:
    """Train a model on what a random teacher says of noise; return the gradient of each step."""
    torch.manual_seed(seed)
    model, teacher = model_of(name), nn.Sequential(nn.Flatten(), nn.Linear(192, CLASSES))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for _ in range(steps):
        images = torch.randn(64, 3, 8, 8)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), teacher(images).argmax(1)).backward()
        # DDP's buckets begin with the last parameters.
        parts = [
            p.grad.reshape(-1) for p in reversed(list(model.parameters())) if p.grad is not None
        ]
        yield torch.cat(parts).numpy()
        optimizer.step()


def measure(gradient: NDArray[np.float32], options: argparse.Namespace, seed: int) -> list[float]:
    """Return three shares of energy that is missing, and the share of lost that is sent again."""
    rng = np.random.default_rng(seed)
    rows = -(-len(gradient) // options.per_packet)
    packets = np.zeros(rows * options.per_packet)
    packets[: len(gradient)] = gradient
    packets = packets.reshape(rows, -1)
    energy = (packets**2).sum(1)
    exponents = np.frexp(np.abs(packets).max(1))[1]
    is_small = exponents <= np.quantile(exponents, options.small)
    is_lost = rng.random(rows) < options.loss
    total = energy.sum()
    let_go = is_lost & is_small
    again = (is_lost & ~is_small).sum() / max(is_lost.sum(), 1)
    fewer = np.zeros_like(is_lost)
    fewer[rng.permutation(np.flatnonzero(is_lost))[: let_go.sum()]] = True
    return [float(energy[each].sum() / total) for each in (is_lost, let_go, fewer)] + [float(again)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--loss", type=float, default=0.05, help="share of packets")
    parser.add_argument("--small", type=float, default=0.5, help="share of packets of small scale")
    parser.add_argument("--per-packet", type=int, default=352, help="values in a packet")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    print(machine_line(describe_machine(has_torch=True)))
    print(f"{'energy missing':12}{'all':>7}{'small':>9}{'as many':>9}{'sent again':>12}")
    for name in MODELS:
        rows = [
            measure(gradient, options, 1000 * seed + step)
            for seed in range(options.seeds)
            for step, gradient in enumerate(gradients(name, options.steps, seed))
        ]
        means = [statistics.mean(column) for column in zip(*rows, strict=True)]
        print(f"{name:12}" + "".join(f"{mean:9.4f}" for mean in means), flush=True)


if __name__ == "__main__":
    main()
