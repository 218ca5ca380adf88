# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Dense tensors on parameter servers, by ranges."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from loopback import LOOPBACK
from switchfold.hostlib.errors import ConfigurationError, RowShapeError
from switchfold.hostlib.parameter_server import ClientOptions, ParameterServer, ServerOptions
from switchfold.hostlib.parameter_server.rows import Sgd
from switchfold.hostlib.parameter_server.tables import DenseTensor, TableClient, TensorDefinition

NUM_WORKERS, NUM_SHARDS, NUM_VALUES, BLOCK, WAIT_S = 2, 3, 1000, 64, 60.0


@pytest.fixture
def clients() -> Iterator[list[TableClient]]:
    servers = [
        ParameterServer(ServerOptions(num_workers=NUM_WORKERS, shard=shard), address=LOOPBACK)
        for shard in range(NUM_SHARDS)
    ]
    addresses = [(server.address, server.port) for server in servers]
    made = [TableClient(addresses, ClientOptions(worker_id=w)) for w in range(NUM_WORKERS)]
    yield made
    for end in (*made, *servers):
        end.close()


def tensors(clients: list[TableClient], **options: object) -> list[DenseTensor]:
    definition = TensorDefinition(name="w", num_values=NUM_VALUES, block_values=BLOCK, **options)  # pyright: ignore
    return [DenseTensor(client, definition) for client in clients]


def test_synchronous_training_is_that_of_one_process(clients: list[TableClient]) -> None:
    rate, momentum = np.float32(0.5), np.float32(0.875)
    optimiser = Sgd(learning_rate=float(rate), momentum=float(momentum))
    workers = tensors(clients, optimiser=optimiser, staleness=0, is_mean=True)
    generator = np.random.default_rng(1)
    values = generator.normal(size=NUM_VALUES).astype(np.float32)
    workers[0].start(values).result(WAIT_S)
    workers[1].start(values + 1).result(WAIT_S)  # too late
    velocity = np.zeros_like(values)
    for _ in range(5):
        gradients = generator.normal(size=(NUM_WORKERS, NUM_VALUES)).astype(np.float32)
        middle = 5 * BLOCK
        for worker, gradient in zip(workers, gradients, strict=True):
            worker.push(gradient[middle:].copy(), middle)
            worker.push(gradient[:middle])
        for client in clients:
            client.advance()
        mean = gradients[0] / np.float32(2) + gradients[1] / np.float32(2)
        velocity = momentum * velocity + mean
        values -= rate * velocity
        for worker in workers:
            np.testing.assert_array_equal(worker.pull().result(WAIT_S), values)
    part = workers[0].pull(2 * BLOCK, 3 * BLOCK).result(WAIT_S)
    np.testing.assert_array_equal(part, values[2 * BLOCK : 5 * BLOCK])


def test_matrix_is_pushed_as_it_lies(clients: list[TableClient]) -> None:
    worker = tensors(clients)[0]
    gradient = np.arange(NUM_VALUES, dtype=np.float32).reshape(20, 50)
    worker.push(gradient[:, ::-1]).result(WAIT_S)
    pulled = worker.pull().result(WAIT_S)
    np.testing.assert_array_equal(pulled.reshape(20, 50), gradient[:, ::-1])


@pytest.mark.parametrize(
    ("first", "num_values"),
    [(1, BLOCK), (0, BLOCK - 1), (0, NUM_VALUES + 1), (-BLOCK, BLOCK), (0, 0), (BLOCK, NUM_VALUES)],
)
def test_ranges_that_are_no_blocks_are_refused(
    clients: list[TableClient], first: int, num_values: int
) -> None:
    worker = tensors(clients)[0]
    with pytest.raises(RowShapeError, match="give a range of whole blocks"):
        worker.pull(first, num_values)
    with pytest.raises(RowShapeError, match="give a range of whole blocks"):
        worker.push(np.ones(num_values, np.float32), first)


def test_bad_tensors_are_refused(clients: list[TableClient]) -> None:
    worker = tensors(clients)[0]
    with pytest.raises(RowShapeError, match="float64"):
        worker.push(np.ones(NUM_VALUES))  # pyright: ignore
    with pytest.raises(RowShapeError, match="1000 in blocks of 64"):
        worker.start(np.ones(BLOCK, np.float32))
    with pytest.raises(ConfigurationError, match="tensor 'x' of 0 values"):
        TensorDefinition(name="x", num_values=0)
