# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""An embedding on parameter servers trains as torch.nn.Embedding does."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from loopback import LOOPBACK
from switchfold.hostlib.errors import NonFiniteGradientError
from switchfold.hostlib.parameter_server import ClientOptions, ParameterServer, ServerOptions
from switchfold.hostlib.parameter_server.rows import Adagrad, Normal, Optimiser, Sgd
from switchfold.hostlib.parameter_server.tables import TableClient, TableDefinition
from switchfold.hostlib.torch.errors import CollectiveInputError
from torch_ranks import load_torch, require_torch

require_torch()
torch, _ = load_torch()

NUM_KEYS, WIDTH, ITERATIONS, BATCH, NUM_SHARDS = 40, 5, 30, (4, 6), 3


@pytest.fixture
def client() -> Iterator[TableClient]:
    servers = [
        ParameterServer(ServerOptions(num_workers=1, shard=shard), address=LOOPBACK)
        for shard in range(NUM_SHARDS)
    ]
    try:
        with TableClient(
            [(server.address, server.port) for server in servers], ClientOptions(worker_id=0)
        ) as made:
            yield made
    finally:
        for server in servers:
            server.close()


def definition(optimiser: Optimiser) -> TableDefinition:
    return TableDefinition(
        name="e", width=WIDTH, optimiser=optimiser, initialiser=Normal(deviation=0.5), seed=7
    )


@pytest.mark.parametrize("name", ["sgd", "adagrad"])
def test_trains_as_an_embedding_of_torch(client: TableClient, name: str) -> None:
    from switchfold.hostlib.torch import TableEmbedding  # noqa: PLC0415

    optimiser = {"sgd": Sgd(learning_rate=0.3), "adagrad": Adagrad(learning_rate=0.3)}[name]
    embedding = TableEmbedding(client, definition(optimiser))
    with torch.no_grad():
        first = embedding(torch.arange(NUM_KEYS))
    reference = torch.nn.Embedding(NUM_KEYS, WIDTH, _weight=first.clone())
    kind = {"sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad}[name]
    steps = kind(reference.parameters(), lr=0.3)
    generator = np.random.default_rng(3)
    for _ in range(ITERATIONS):
        keys = torch.from_numpy(generator.integers(0, NUM_KEYS, BATCH))
        target = torch.from_numpy(generator.normal(size=(*BATCH, WIDTH)).astype(np.float32))
        steps.zero_grad()
        for rows in (embedding(keys), reference(keys)):
            assert rows.shape == target.shape
            ((rows - target) ** 2).sum().backward()
        steps.step()
        embedding.advance()
    with torch.no_grad():
        ours = embedding(torch.arange(NUM_KEYS))
    # Sums of a key's gradients and roots may be rounded in another order.
    torch.testing.assert_close(ours, reference.weight.detach(), rtol=1e-5, atol=1e-6)
    assert not torch.equal(ours, first)


def test_lookup_without_gradients_pushes_nothing(client: TableClient) -> None:
    from switchfold.hostlib.torch import TableEmbedding  # noqa: PLC0415

    embedding = TableEmbedding(client, definition(Sgd(learning_rate=1.0)))
    keys = torch.tensor([1 << 62, -5])
    with torch.no_grad():
        rows = embedding(keys)
    assert not rows.requires_grad
    embedding.advance()
    with torch.no_grad():
        assert torch.equal(embedding(keys), rows)


def test_bad_keys_and_gradients_say_so(client: TableClient) -> None:
    from switchfold.hostlib.torch import TableEmbedding  # noqa: PLC0415

    embedding = TableEmbedding(client, definition(Sgd(learning_rate=1.0)))
    with pytest.raises(CollectiveInputError, match=r"int32 for table 'e'; give torch\.int64"):
        embedding(torch.tensor([1], dtype=torch.int32))
    rows = embedding(torch.tensor([3, 4]))
    with pytest.raises(NonFiniteGradientError, match="key 4 of table 'e'"):
        (rows * torch.tensor([[1.0], [float("nan")]])).sum().backward()
