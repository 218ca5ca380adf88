# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The batches of the demo, step by step: the same for the workers and the reference run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Hyperparameters of one training run."""

    num_workers: int = 4
    epochs: int = 10
    batch_size: int = 128
    """Digits of one step over all workers; a multiple of num_workers."""
    learning_rate: float = 0.2
    momentum: float = 0.9
    seed: int = 1

    def __post_init__(self) -> None:
        if self.num_workers < 1 or self.epochs < 1 or self.batch_size < 1:
            raise ValueError("num_workers, epochs and batch_size must be at least 1")
        if self.batch_size % self.num_workers:
            raise ValueError(
                f"batch_size {self.batch_size} is not a multiple of {self.num_workers} workers"
            )

    def steps_per_epoch(self, num_images: int) -> int:
        """Return the steps of one epoch; an incomplete last batch is left out."""
        return num_images // self.batch_size

    def batches(self, num_images: int) -> Iterator[tuple[int, int, NDArray[np.int64]]]:
        """Yield (epoch, step in the epoch, image indices (batch_size,)), shuffled per epoch."""
        generator = np.random.default_rng(self.seed)
        for epoch in range(self.epochs):
            order = generator.permutation(num_images)
            for step in range(self.steps_per_epoch(num_images)):
                start = step * self.batch_size
                yield epoch, step, order[start : start + self.batch_size]

    def share(self, batch: NDArray[np.int64], worker_id: int) -> NDArray[np.int64]:
        """Return a worker's part of a batch: (batch_size / num_workers,) image indices."""
        return np.split(batch, self.num_workers)[worker_id]

    def write(self, path: Path) -> None:
        """Write the schedule as JSON."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Schedule:
        """Read what `write` wrote; unknown keys are an error."""
        raw = json.loads(path.read_text(encoding="utf-8"))
        known = {field.name for field in fields(cls)}
        if unknown := set(raw) - known:
            raise ValueError(f"{path}: unknown keys {sorted(unknown)}")
        return cls(**raw)
