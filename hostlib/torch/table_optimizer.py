# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The servers' optimisers of embeddings, for PyTorch's schedulers of learning rates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import torch

from ..errors import ConfigurationError
from .table_embedding import TableEmbedding


@final
class TableOptimizer(torch.optim.Optimizer):
    """Stands for the servers' optimisers of all embeddings of a client.

    The servers apply gradients when these arrive, or at the end of the iteration; `step` ends it.
    So it takes the place of a torch optimizer in a training loop, and schedulers set its rates:

        optimizer = TableOptimizer(users, items)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=30)

    Each embedding is a parameter group, with the rate `lr`. A rate that has changed goes to the
    servers before the embedding's next push, or the end of the iteration. TorchRec's optimizers of
    fused embeddings have the same form (torchrec/optim/fused.py).
    """

    def __init__(self, *embeddings: TableEmbedding) -> None:
        """`embeddings`: of one client. Raises ConfigurationError if an optimiser has no rate."""
        if not embeddings:
            raise ConfigurationError("no embeddings; give all those of a client")
        groups: list[dict[str, Any]] = []
        for embedding in embeddings:
            definition = embedding.definition
            rate = definition.optimiser.rate
            if rate is None:
                raise ConfigurationError(
                    f"table {definition.name!r}: {definition.optimiser!r} has no learning rate"
                )
            # torch asks for a parameter in each group.
            groups.append({"params": [torch.nn.Parameter(torch.empty(0))], "lr": rate})
        super().__init__(groups, {})
        self._embeddings = embeddings
        for number, embedding in enumerate(embeddings):
            embedding.follow(lambda number=number: float(self.param_groups[number]["lr"]))

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """End this worker's iteration, for all tables of the client.

        Returns what `closure` returns. Raises what `TableEmbedding.advance` raises, and
        ConfigurationError for a rate that is not above 0 and finite.
        """
        found = None
        if closure is not None:
            with torch.enable_grad():
                found = closure()
        for embedding in self._embeddings:
            embedding.settle()
        self._embeddings[0].advance()
        return found
