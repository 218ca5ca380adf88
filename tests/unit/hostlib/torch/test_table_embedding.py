# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""An embedding on parameter servers trains as torch.nn.Embedding does."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from loopback import LOOPBACK
from switchfold.hostlib.errors import ConfigurationError, NonFiniteGradientError
from switchfold.hostlib.parameter_server import ClientOptions, ParameterServer, ServerOptions
from switchfold.hostlib.parameter_server.rows import Adagrad, GradientSum, Normal, Optimiser, Sgd
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


def definition(
    optimiser: Optimiser, name: str = "e", staleness: int | None = None
) -> TableDefinition:
    return TableDefinition(
        name=name,
        width=WIDTH,
        optimiser=optimiser,
        initialiser=Normal(deviation=0.5),
        seed=7,
        staleness=staleness,
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


@pytest.mark.parametrize("staleness", [None, 0])
def test_follows_a_schedule_of_torch(client: TableClient, staleness: int | None) -> None:
    """The worked example of docs/parameter_server.md, and two tables with a rate each."""
    from switchfold.hostlib.torch import TableEmbedding, TableOptimizer  # noqa: PLC0415

    users = TableEmbedding(client, definition(Sgd(learning_rate=0.2), "users", staleness))
    items = TableEmbedding(client, definition(Adagrad(learning_rate=0.4), "items", staleness))
    optimizer = TableOptimizer(users, items)
    with torch.no_grad():
        first = users(torch.arange(NUM_KEYS)), items(torch.arange(NUM_KEYS))
    own = [torch.nn.Embedding(NUM_KEYS, WIDTH, _weight=each.clone()) for each in first]
    references = (
        torch.optim.SGD(own[0].parameters(), lr=0.2),
        torch.optim.Adagrad(own[1].parameters(), lr=0.4),
    )
    schedules = [
        torch.optim.lr_scheduler.StepLR(each, step_size=4, gamma=0.5)
        for each in (optimizer, *references)
    ]
    generator = np.random.default_rng(3)
    for _ in range(ITERATIONS):
        keys = torch.from_numpy(generator.integers(0, NUM_KEYS, BATCH))
        for optimizers, tables in (((optimizer,), (users, items)), (references, own)):
            for each in optimizers:
                each.zero_grad()
            loss = (tables[0](keys) * tables[1](keys)).sigmoid().sum()
            loss.backward()
            for each in optimizers:
                each.step()
        for schedule in schedules:
            schedule.step()
    assert [group["lr"] for group in optimizer.param_groups] == [
        each.param_groups[0]["lr"] for each in references
    ]
    with torch.no_grad():
        ours = users(torch.arange(NUM_KEYS)), items(torch.arange(NUM_KEYS))
    for found, reference in zip(ours, own, strict=True):
        torch.testing.assert_close(found, reference.weight.detach(), rtol=1e-5, atol=1e-6)


def test_a_restored_schedule_goes_on(client: TableClient) -> None:
    from switchfold.hostlib.torch import TableEmbedding, TableOptimizer  # noqa: PLC0415

    saved = None
    for rate in (1.0, 0.25):
        embedding = TableEmbedding(client, definition(Sgd(learning_rate=1.0)))
        optimizer = TableOptimizer(embedding)
        if saved is not None:
            optimizer.load_state_dict(saved)
        rows = embedding(torch.tensor([3]))
        rows.sum().backward()
        optimizer.step(lambda: None)
        with torch.no_grad():
            assert torch.equal(embedding(torch.tensor([3])), rows - rate)
        optimizer.param_groups[0]["lr"] = 0.25
        saved = optimizer.state_dict()


def test_rates_that_no_server_takes_say_so(client: TableClient) -> None:
    from switchfold.hostlib.torch import TableEmbedding, TableOptimizer  # noqa: PLC0415

    with pytest.raises(ConfigurationError, match="no embeddings"):
        TableOptimizer()
    sums = TableEmbedding(client, definition(GradientSum(), "sums"))
    with pytest.raises(ConfigurationError, match=r"'sums': GradientSum\(\) has no learning rate"):
        TableOptimizer(sums)
    optimizer = TableOptimizer(TableEmbedding(client, definition(Sgd(learning_rate=1.0))))
    optimizer.param_groups[0]["lr"] = 0.0
    with pytest.raises(ConfigurationError, match=r"learning rate 0\.0"):
        optimizer.step()


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
