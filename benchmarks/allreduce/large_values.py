# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What sums of gradients lack, with and without large values first, in simulated time.

Small models are trained in memory on batches of several workers. Each worker's gradient is cut into
packets. The streams of the host library, in C, sum as many chunks over simulated links that lose
packets (loss_simulation/), and may lack a share of all contributions. The table has the energy
(squared norm) of what sums lack, as a share of that of all gradients; the share of contributions
that they lack; what is sent again, of what is sent once; and the mean time, over the lossless time.
"repair" lacks nothing.

    python benchmarks/allreduce/large_values.py --loss 0.01,0.05,0.1
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from benchmarks.allreduce.simulated_loss import SimulatedRun, compile_simulation  # noqa: E402
from benchmarks.support.machine import describe_machine, machine_line  # noqa: E402
from switchfold.hostlib.summation.quantization import (  # noqa: E402
    chunk_exponents,
    large_chunks,
)

CLASSES: Final = 10
MODELS: Final = ("mlp", "cnn", "transformer")
REPAIR, LARGE_FIRST = "repair", "large first"
KINDS: Final = (REPAIR, "any let go", LARGE_FIRST)
HEADING: Final = (
    "| model | lost | sums | energy missing | contributions missing | sent again | time |\n"
    "|---|---:|---|---:|---:|---:|---:|"
)


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


def gradients(name: str, options: argparse.Namespace) -> Iterator[NDArray[np.float32]]:
    """Train a model on what a random teacher says of noise; return the workers' gradients."""
    torch.manual_seed(options.seed)
    model, teacher = model_of(name), nn.Sequential(nn.Flatten(), nn.Linear(192, CLASSES))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    # DDP's buckets begin with the last parameters.
    parameters = list(reversed(list(model.parameters())))
    for step in range(1, options.steps + 1):
        rows: list[NDArray[np.float32]] = []
        for _ in range(options.workers):
            images = torch.randn(64, 3, 8, 8)
            loss = nn.functional.cross_entropy(model(images), teacher(images).argmax(1))
            found = torch.autograd.grad(loss, parameters)
            rows.append(torch.cat([each.reshape(-1) for each in found]).numpy())
        given = np.array(rows)
        if step % options.every == 0:
            yield given
        sizes = [parameter.numel() for parameter in parameters]
        parts = torch.from_numpy(given.mean(axis=0)).split(sizes)
        for parameter, part in zip(parameters, parts, strict=True):
            parameter.grad = part.reshape(parameter.shape)
        optimizer.step()


class Chunks:
    """The workers' gradients as a sum sees them."""

    def __init__(self, given: NDArray[np.float32], per_packet: int) -> None:
        num_workers, size = given.shape
        self.number = -(-size // per_packet)
        packets = np.zeros((num_workers, self.number * per_packet), np.float32)
        packets[:, :size] = given
        packets = packets.reshape(num_workers, self.number, per_packet)
        self.energy: NDArray[np.float64] = (packets.astype(np.float64) ** 2).sum(axis=2)
        """By worker and chunk."""
        agreed = np.max([chunk_exponents(rows) for rows in packets], axis=0)
        found = large_chunks(agreed)
        self.is_large = np.zeros(self.number, bool) if found is None else found


class Lacking:
    """What sums of one kind lack, and what they cost."""

    def __init__(self) -> None:
        self.energy: list[float] = []
        self.contributions: list[float] = []
        self.again: list[float] = []
        self.time: list[float] = []

    def measure(
        self,
        program: Path,
        folder: Path,
        chunks: Chunks,
        *,
        lossless_s: float,
        **settings: float | Path,
    ) -> None:
        """Run sums for a while, and note them."""
        is_bounded = "tolerated" in settings
        if is_bounded:
            settings["bitmaps"] = folder / "bitmaps"
        run = SimulatedRun(program, chunks=chunks.number, **settings)
        if not run.times:
            raise SystemExit("no sum ended: give more by --seconds")
        self.time += [time / lossless_s for time in run.times]
        self.again.append(float(run.packets[1] / run.packets[0]))
        if not is_bounded:
            return
        num_workers = len(chunks.energy)
        bitmaps = np.fromfile(folder / "bitmaps", np.uint32).reshape(-1, chunks.number)
        workers = np.arange(num_workers, dtype=np.uint32)[:, None]
        for of_sum in bitmaps:
            is_missing = (of_sum >> workers & 1) == 0
            self.energy.append(float(chunks.energy[is_missing].sum() / chunks.energy.sum()))
            self.contributions.append(float(is_missing.mean()))

    def cells(self) -> str:
        """Return its columns: energy and contributions that are missing, sent again, time."""
        shares = (self.energy, self.contributions, self.again)
        texts = [f"{100 * mean(each):.2f} %" if each else "-" for each in shares]
        return " | ".join([*texts, f"{mean(self.time):.2f}"])


def rows_of(program: Path, folder: Path, name: str, options: argparse.Namespace) -> Iterator[str]:
    """Return the rows of a model: by loss, and by what sums do about it."""
    steps = [Chunks(given, options.per_packet) for given in gradients(name, options)]
    common = {"workers": options.workers, "seconds": options.seconds}
    lossless_s = mean(SimulatedRun(program, chunks=steps[0].number, **common).times)
    for loss in map(float, options.loss.split(",")):
        for kind in KINDS:
            lacking = Lacking()
            for seed, chunks in enumerate(steps, 1):
                settings: dict[str, float | Path] = {**common, "loss": loss, "seed": seed}
                if kind != REPAIR:
                    settings["tolerated"] = options.tolerated
                if kind == LARGE_FIRST:
                    settings["large"] = folder / "large"
                    chunks.is_large.astype(np.uint8).tofile(folder / "large")
                lacking.measure(program, folder, chunks, lossless_s=lossless_s, **settings)
            yield f"| {name} | {100 * loss:g} % | {kind} | {lacking.cells()} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", default=",".join(MODELS), help="default %(default)s")
    parser.add_argument("--loss", default="0.01,0.05,0.1", help="on every hop; default %(default)s")
    parser.add_argument("--tolerated", type=float, default=0.1, help="default %(default)s")
    parser.add_argument("--workers", type=int, default=4, help="default %(default)s")
    parser.add_argument("--per-packet", type=int, default=352, help="values in a packet")
    parser.add_argument("--steps", type=int, default=20, help="of training, default %(default)s")
    parser.add_argument("--every", type=int, default=4, help="the gradients of which are summed")
    parser.add_argument("--seconds", type=float, default=3.0, help="simulated, of each gradient")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(machine_line(describe_machine(has_torch=True)))
    print(HEADING)
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        program = folder / "loss_simulation"
        compile_simulation(program)
        for name in options.models.split(","):
            if name not in MODELS:
                raise SystemExit(f"--models {name}: choose from {', '.join(MODELS)}")
            for row in rows_of(program, folder, name, options):
                print(row, flush=True)


if __name__ == "__main__":
    main()
