# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The models of the training benchmark, for torch and for the cost model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from switchfold.hostlib.schemes.models import Model, conv, fully_connected

CLASSES: Final = 10
BUCKET_BYTES: Final = 1 << 19
"""Bucket size of DistributedDataParallel, small enough for several in the first model."""
WARM_UP: Final = 2
"""Iterations that do not count: DistributedDataParallel makes its buckets again after the first."""
CALIBRATION_VALUES: Final = 1 << 20
"""Values of the exchange that measures the highest rate of each contender's software."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A model with its batch and its inputs."""

    name: str
    batch: int
    """Samples per worker and iteration."""
    inputs: tuple[int, ...]
    """Shape of a sample."""
    described: Model
    """Layers from input to output."""


def _fully_connected() -> Workload:
    layers = (
        *fully_connected("0", WIDTHS[0], WIDTHS[1]),
        *fully_connected("2", WIDTHS[1], WIDTHS[2]),
        *fully_connected("4", WIDTHS[2], WIDTHS[3]),
        *fully_connected("6", WIDTHS[3], CLASSES),
    )
    described = Model(name="communication-bound", source="this file", layers=layers)
    return Workload(name="communication", batch=8, inputs=(WIDTHS[0],), described=described)


def _convolutional() -> Workload:
    layers = (
        conv("0", 3, CHANNELS[0], 3, IMAGE, bias=CHANNELS[0]),
        conv("2", CHANNELS[0], CHANNELS[1], 3, IMAGE, bias=CHANNELS[1]),
        conv("5", CHANNELS[1], CHANNELS[1], 3, IMAGE // 2, bias=CHANNELS[1]),
        conv("7", CHANNELS[1], CHANNELS[1], 3, IMAGE // 2, bias=CHANNELS[1]),
        *fully_connected("11", CHANNELS[1] * POOLED**2, CLASSES),
    )
    described = Model(name="compute-bound", source="this file", layers=layers)
    return Workload(name="computing", batch=32, inputs=(3, IMAGE, IMAGE), described=described)


WIDTHS: Final = (512, 384, 384, 384)
CHANNELS: Final = (16, 32)
IMAGE: Final = 32
POOLED: Final = 2
WORKLOADS: Final = {each.name: each for each in (_fully_connected(), _convolutional())}
"""Workloads by name: large layers with a small batch, and convolutions with few values."""


def make_module(workload: Workload) -> Any:
    """Return a workload's model in torch, always with the same parameters."""
    import torch  # noqa: PLC0415 - the report needs only the descriptions

    seeded: Any = torch
    seeded.manual_seed(5)
    nn = torch.nn
    if workload.name == "communication":
        module = nn.Sequential(
            nn.Linear(WIDTHS[0], WIDTHS[1]),
            nn.ReLU(),
            nn.Linear(WIDTHS[1], WIDTHS[2]),
            nn.ReLU(),
            nn.Linear(WIDTHS[2], WIDTHS[3]),
            nn.ReLU(),
            nn.Linear(WIDTHS[3], CLASSES),
        )
    else:
        module = nn.Sequential(
            nn.Conv2d(3, CHANNELS[0], 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(CHANNELS[0], CHANNELS[1], 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(CHANNELS[1], CHANNELS[1], 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(CHANNELS[1], CHANNELS[1], 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(POOLED),
            nn.Flatten(),
            nn.Linear(CHANNELS[1] * POOLED**2, CLASSES),
        )
    assert sum(each.numel() for each in module.parameters()) == workload.described.num_values
    return module
