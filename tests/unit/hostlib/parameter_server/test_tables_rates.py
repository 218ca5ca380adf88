# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Learning rates that change while workers push: which pushes have them, and that they stay."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from switchfold.hostlib.errors import ConfigurationError, PeerProtocolError
from switchfold.hostlib.parameter_server.rows import (
    Adagrad,
    Adam,
    Ftrl,
    GradientSum,
    Optimiser,
    RowTable,
    Sgd,
)
from switchfold.hostlib.parameter_server.tables import (
    DenseTensor,
    SparseTable,
    TableDefinition,
    TensorDefinition,
)
from switchfold.hostlib.parameter_server.tables.change import pack_rate
from switchfold.hostlib.peers.frames import FrameKind
from table_cases import ServiceBench
from table_cluster import WAIT_S, Floats, TableCluster, keys_of, open_client
from table_server import ServerProcess

RATES = (0.5, 0.25, 1.0, 0.125)
LOOSE = TableDefinition(name="loose", width=1, optimiser=Sgd(learning_rate=1.0))
SYNC = TableDefinition(name="sync", width=1, optimiser=Sgd(learning_rate=1.0), staleness=0)
KEY = keys_of(7)
ONE = np.ones((1, 1), np.float32)


def value(table: SparseTable) -> float:
    return table.pull(KEY).result(WAIT_S).values.item()


@pytest.mark.parametrize(
    "optimiser",
    [
        Sgd(learning_rate=1.0),
        Sgd(learning_rate=1.0, momentum=0.5),
        Adagrad(learning_rate=1.0),
        Adam(learning_rate=1.0),
        Ftrl(alpha=1.0),
    ],
    ids=lambda each: each.name,
)
@pytest.mark.parametrize("num_servers", [1, 3])
def test_pushes_have_the_rate_that_was_set_before(optimiser: Optimiser, num_servers: int) -> None:
    """All of a worker's calls go out at once, and none waits for another."""
    definition = TableDefinition(name="w", width=3, optimiser=optimiser)
    alone = RowTable(width=3, max_rows=100, optimiser=optimiser)
    rng = np.random.default_rng(5)
    keys = np.arange(20)
    with TableCluster(1, num_servers) as cluster:
        table = cluster.client(0).define(definition)
        for rate in RATES:
            gradients: Floats = rng.standard_normal((20, 3), np.float32)
            alone.push(keys, gradients)
            table.push(keys, gradients)
            alone.optimiser = optimiser.with_rate(rate)
            table.set_learning_rate(rate)
        found = table.pull(keys).result(WAIT_S).values
        for server in cluster.servers:
            rows = server.tables.state.tables[definition.number].rows
            assert rows.optimiser == optimiser.with_rate(RATES[-1])
    assert found.tobytes() == alone.pull(keys).values.tobytes()


@pytest.mark.parametrize("rate", [0, -0.5, math.nan, math.inf, 1e-50, 1e50, "fast", None])
def test_rates_out_of_range_are_refused(rate: float) -> None:
    with TableCluster(1) as cluster:
        table = cluster.client(0).define(LOOSE)
        with pytest.raises(ConfigurationError, match="rate"):
            table.set_learning_rate(rate)
        table.push(KEY, ONE)
        assert value(table) == -1


def test_an_optimiser_without_a_rate_is_refused() -> None:
    with TableCluster(1) as cluster:
        table = cluster.client(0).define(TableDefinition(name="w", width=1))
        with pytest.raises(ConfigurationError, match="GradientSum has no learning rate to set"):
            table.set_learning_rate(0.5)
    with pytest.raises(ConfigurationError, match="keeps the same state"):
        RowTable(width=1, max_rows=1).optimiser = Sgd(learning_rate=1.0)


def test_a_server_checks_rates_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    sums = TableDefinition(name="w", width=1, optimiser=GradientSum())
    with ServiceBench(monkeypatch) as bench:
        client = bench.entered(0, 11)
        client.define(1, LOOSE)
        client.define(2, sums)
        for number, (payload, table) in enumerate(
            [(b"", LOOSE), (pack_rate(-1), LOOSE), (pack_rate(1), sums), (pack_rate(1), SYNC)], 3
        ):
            client.submit(FrameKind.RATE, number, payload, table.number)
        errors = [client.denied[number] for number in range(3, 7)]
        assert [type(error) for error in errors] == [PeerProtocolError] + 3 * [ConfigurationError]
        assert [str(error).split(";")[0] for error in errors[2:]] == [
            "GradientSum has no learning rate to set",
            f"table {SYNC.number:#010x} has not been defined on this server",
        ]


@pytest.mark.parametrize("has_log", [False, True])
def test_a_rate_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_log: bool
) -> None:
    """A request that comes again, after later ones, sets nothing back."""
    with ServiceBench(monkeypatch, tmp_path if has_log else None, 1) as bench:
        client = bench.entered(0, 11)
        client.define(1, LOOSE)
        bench.wait(lambda: client.applied == [1])
        for number, rate in ((2, 0.5), (3, 0.25), (2, 0.5)):
            client.submit(FrameKind.RATE, number, pack_rate(rate), LOOSE.number)
        client.push(4, LOOSE, [7])
        bench.wait(lambda: client.applied == [1, 2, 3, 4])
        assert bench.service.state.tables[LOOSE.number].rows.optimiser.rate == 0.25
        again = bench.entered(0, 11)
        again.submit(FrameKind.RATE, 2, pack_rate(0.5), LOOSE.number)
        again.push(5, LOOSE, [7])
        again.pull(1, LOOSE, [7], 0)
        bench.wait(lambda: 1 in again.rows)
        assert again.rows[1].values.item() == -0.5


def test_a_killed_server_comes_back_with_its_rate(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "log", 1) as server:
        with open_client([server.address], 0, reconnect_s=WAIT_S) as client:
            table = client.define(LOOSE)
            table.push(KEY, ONE).result(WAIT_S)
            table.set_learning_rate(0.5).result(WAIT_S)
            server.kill()
            server.restart()
            table.push(KEY, ONE).result(WAIT_S)
            assert value(table) == -1.5
        with open_client([server.address], 0) as client:
            table = client.define(LOOSE)  # still as it was defined
            table.push(KEY, ONE).result(WAIT_S)
            assert value(table) == -2


def test_a_synchronous_table_has_a_rate_for_each_iteration() -> None:
    with TableCluster(2) as cluster:
        workers = [cluster.client(worker) for worker in range(2)]
        tables = [worker.define(SYNC) for worker in workers]
        for table in tables:
            table.push(KEY, ONE)
        tables[1].set_learning_rate(0.5).result(WAIT_S)
        tables[0].set_learning_rate(0.25).result(WAIT_S)
        workers[1].advance().result(WAIT_S)
        tables[1].set_learning_rate(0.125).result(WAIT_S)  # of its next iteration
        workers[0].advance().result(WAIT_S)
        assert value(tables[0]) == -2 * 0.5  # that of the highest worker
        for worker, table in zip(workers, tables, strict=True):
            table.push(KEY, ONE)
            worker.advance()
        assert value(tables[1]) == -2 * 0.5 - 2 * 0.125


def test_a_new_process_forgets_the_rate_of_an_iteration_that_did_not_end() -> None:
    with TableCluster(1) as cluster:
        with open_client(cluster.addresses, 0) as older:
            table = older.define(SYNC)
            table.set_learning_rate(0.5).result(WAIT_S)
            older.advance().result(WAIT_S)
            table.set_learning_rate(0.25).result(WAIT_S)
        newer = cluster.client(0)
        table = newer.define(SYNC)
        table.push(KEY, ONE)
        newer.advance()
        assert value(table) == -0.5


def test_dense_tensors_have_rates() -> None:
    definition = TensorDefinition(
        name="t", num_values=10, optimiser=Sgd(learning_rate=1.0), block_values=4
    )
    with TableCluster(1, 2) as cluster:
        tensor = DenseTensor(cluster.client(0), definition)
        tensor.set_learning_rate(0.5)
        tensor.push(np.ones(10, np.float32))
        assert tensor.pull().result(WAIT_S).tolist() == [-0.5] * 10
