# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One training of one rank, as `switchfold tolerance` repeats it with other loss and seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer


@dataclass(frozen=True, kw_only=True)
class TrainingTask:
    """What a function of `switchfold tolerance --script module:function` returns.

    The function is called as function(seed, rank, num_ranks), once for each training on each rank,
    after torch.manual_seed(seed). All ranks train for the same number of steps.
    """

    model: nn.Module
    """Not wrapped in DistributedDataParallel."""
    batches: Iterable[tuple[Any, Tensor]]
    """This rank's inputs and targets; iterated once for each epoch, as a DataLoader is."""
    loss: Callable[[Any, Tensor], Tensor]
    """Of the model's output and the targets: a mean over the batch."""
    optimizer: Optimizer
    """Of the model's parameters."""
    metric: Callable[[nn.Module], float]
    """Quality on held-out data, the more the better. Called on rank 0 before training and after
    each epoch, in evaluation mode and without gradients."""
    epochs: int
    """How long a training lasts."""

    def __post_init__(self) -> None:
        """Check ranges."""
        if self.epochs < 1:
            raise ValueError(f"epochs is {self.epochs}; a training has at least one")
