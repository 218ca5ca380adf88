# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""An embedding whose rows live on parameter servers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, cast, final

import numpy as np
import torch
from numpy.typing import NDArray

from ..parameter_server.rows import Versions
from ..parameter_server.tables import TableClient, TableDefinition
from .errors import CollectiveInputError

_MAX_OPEN: Final = 64
"""Pushes without a receipt, at most; their errors show at the latest so many batches later."""


@final
class TableEmbedding(torch.nn.Module):
    """Looks rows up on the servers, and pushes their gradients in the backward pass.

    It takes the place of `torch.nn.Embedding`, for any int64 keys, and has no parameters of its
    own: the servers' optimiser applies the gradients. Each worker loads the rows of its mini-batch
    alone. Use `torch.no_grad` to look up without pushing.

        embedding = TableEmbedding(client, TableDefinition(name="user", width=16, optimiser=...))

    After each iteration, call `advance`, on all workers alike; or the `step` of a TableOptimizer.
    """

    def __init__(self, client: TableClient, definition: TableDefinition) -> None:
        """Define the table, and wait for the servers. Raises what `TableClient.define` raises."""
        super().__init__()
        self.definition = definition
        self._client = client
        self._table = client.define(definition)
        self._pushes: deque[Future[Versions]] = deque()
        self._rate: float | None = None
        self._wanted_rate: Callable[[], float | None] = lambda: None

    def forward(self, keys: torch.Tensor) -> torch.Tensor:
        """Return rows of shape (*keys.shape, width), float32, on the keys' device.

        Keys that repeat are looked up once. Raises CollectiveInputError for keys that are not
        int64, and what `SparseTable.pull` and earlier pushes raise.
        """
        if keys.dtype != torch.int64:
            raise CollectiveInputError(
                f"keys of {keys.dtype} for table {self.definition.name!r}; give torch.int64"
            )
        own, places = np.unique(_values_of(keys), return_inverse=True)
        rows = _tensor_of(self._table.pull(own).result().values, keys.device)
        if torch.is_grad_enabled():
            rows.requires_grad_()

            def push(leaf: torch.Tensor) -> None:
                assert leaf.grad is not None
                self._send_rate()
                self._note(self._table.push(own, _values_of(leaf.grad)))

            cast("Any", rows).register_post_accumulate_grad_hook(push)
        found = rows[_tensor_of(places.reshape(-1), keys.device)]
        return found.reshape(*keys.shape, self.definition.width)

    def advance(self) -> None:
        """End this worker's iteration: wait for the receipts of its pushes, and raise their errors.

        One call is enough for all embeddings of a client.
        """
        self.settle()
        self._client.advance().result()

    def follow(self, wanted_rate: Callable[[], float]) -> None:
        """Let later pushes have the learning rate that a function returns; see TableOptimizer."""
        self._wanted_rate = wanted_rate

    def settle(self) -> None:
        """Send a learning rate that has changed; wait for all receipts, and raise their errors."""
        self._send_rate()
        self._settle(0)

    def extra_repr(self) -> str:
        """Return what `print` shows of the module."""
        return f"{self.definition.name!r}, width={self.definition.width}"

    def _send_rate(self) -> None:
        rate = self._wanted_rate()
        if rate is None or rate == self._rate:
            return
        if self.definition.hot_keys:
            self._settle(0)  # what waits for a switch would have the new rate, too
        self._note(self._table.set_learning_rate(rate))
        self._rate = rate

    def _note(self, push: Future[Versions]) -> None:
        self._pushes.append(push)
        self._settle(_MAX_OPEN)

    def _settle(self, most: int) -> None:
        while len(self._pushes) > most or (self._pushes and self._pushes[0].done()):
            self._pushes.popleft().result()


def _values_of(tensor: torch.Tensor) -> NDArray[Any]:
    return cast("Any", tensor.detach().cpu().contiguous()).numpy()


def _tensor_of(array: NDArray[Any], device: torch.device) -> torch.Tensor:
    return cast("Any", torch).from_numpy(array).to(device)
