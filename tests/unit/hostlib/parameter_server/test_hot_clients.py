# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Clients and a server with hot rows, by UDP and TCP on loopback, and the reference switch."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hot_world_server import gradients_of
from live_hot_server import LiveHotServer
from row_switch import RowSwitch
from switchfold.hostlib.errors import ConfigurationError, PeerClosedError
from switchfold.hostlib.parameter_server import ClientOptions, HotRowUse
from switchfold.hostlib.parameter_server.hot_server import hot_row_server
from switchfold.hostlib.parameter_server.hot_worker import UNKNOWN_UPDATES, key_samples, reads
from switchfold.hostlib.parameter_server.tables import SparseTable, TableClient, TableDefinition
from table_cluster import open_client
from time_bound import wait_until

WAIT_S = 60.0
WIDTH, NUM_KEYS = 8, 60
DEFINITION = TableDefinition(name="hot", width=WIDTH, hot_keys=40)
HOT = np.arange(20, 40)
Lanes = NDArray[np.int64]


@pytest.fixture(autouse=True)
def _sketches_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_samples, "SAMPLE_S", 0.02)
    monkeypatch.setattr(hot_row_server, "SILENT_S", WAIT_S)  # a busy machine is no silent switch


@contextlib.contextmanager
def live(
    num_workers: int, log: Path | None = None, **switch: Any
) -> Iterator[tuple[RowSwitch, LiveHotServer, list[TableClient]]]:
    """Run a switch, a server and clients with their own sockets."""
    with (
        RowSwitch(num_workers, num_rows=32, **switch) as made,
        LiveHotServer(made, num_workers, log=log) as server,
        contextlib.ExitStack() as stack,
    ):
        clients = [
            stack.enter_context(open_client([server.address], worker_id, hot_sample=1.0))
            for worker_id in range(num_workers)
        ]
        yield made, server, clients


def heat(client: TableClient, server: LiveHotServer) -> tuple[SparseTable, int]:
    """Push a lane to all values of HOT until the switch gets it; return how often that was."""
    table = client.define(DEFINITION)
    for count in itertools.count(1):
        table.push(HOT, gradients_of(np.ones((HOT.size, WIDTH)))).result(WAIT_S)
        if server.switch.passed["aggregate_add"]:
            return table, count
    raise AssertionError


def sums_of(server: LiveHotServer, worker_id: int = 0) -> Lanes:
    """Return what the server has, in lanes."""
    with open_client([server.address], worker_id, use_hot_rows=HotRowUse.NEVER) as client:
        rows = client.define(DEFINITION).pull(np.arange(NUM_KEYS)).result(WAIT_S)
    return (16 * rows.values).astype(np.int64)


class Work:
    """What some workers push: random keys, of which the higher half comes more often."""

    def __init__(self, seed: int, num_phases: int) -> None:
        self.sums = np.zeros((NUM_KEYS, WIDTH), np.int64)
        self._seed = seed
        self._num_phases = num_phases
        self._lock = threading.Lock()
        self._go_on = [threading.Event() for _ in range(num_phases)]
        self._begun = [threading.Semaphore(0) for _ in range(num_phases)]

    def run(self, client: TableClient) -> None:
        """Push in phases until the last; all futures are done then."""
        worker_id = client.options.worker_id
        rng = np.random.default_rng(100 * self._seed + worker_id)
        table = client.define(DEFINITION)
        pushes: list[Future[None]] = []
        for phase in range(self._num_phases):
            self._begun[phase].release()
            number = 0
            while number < 15 or not self._go_on[phase].is_set():
                number += 1
                keys = rng.integers(0, NUM_KEYS // 2, 12) + rng.integers(0, 2, 12) * 30
                lanes = rng.integers(-99, 100, (keys.size, WIDTH))
                with self._lock:
                    np.add.at(self.sums, keys, lanes)
                pushes.append(table.push(keys, gradients_of(lanes)))
                if number % 4 == 3:
                    pushes[-3].result(WAIT_S)
                    assert table.pull(keys).result(WAIT_S).values.shape == lanes.shape
        for push in pushes:
            push.result(WAIT_S)

    def wait_for(self, phase: int, num_workers: int) -> None:
        """Wait until all workers have begun a phase."""
        for _ in range(num_workers):
            assert self._begun[phase].acquire(timeout=WAIT_S)

    def end(self, phase: int) -> None:
        """Let the workers go on with the next phase."""
        self._go_on[phase].set()


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("has_log", [False, True])
def test_sums_are_exact_under_loss_and_failures(tmp_path: Path, seed: int, has_log: bool) -> None:
    """Loss, copies and another order; switch and server restart, evictions, views, cuts."""
    num_workers, num_phases = 3, 5
    impairments = {"loss": 0.03, "duplication": 0.03, "reordering": 0.1, "seed": seed}
    work = Work(seed, num_phases)
    log = tmp_path / "log" if has_log else None
    with (
        live(num_workers, log, **impairments) as (switch, server, clients),
        ThreadPoolExecutor(num_workers) as pool,
    ):
        workers = [pool.submit(work.run, client) for client in clients]

        def restart_server() -> None:
            if has_log:
                server.restart()

        faults = (
            switch.restart,
            lambda: switch.delete_rows([2, 3]),
            lambda: server.cut(1),
            server.begin_view,
            restart_server,
        )
        try:
            for phase, fault in enumerate(faults):
                work.wait_for(phase, num_workers)
                server.wait_for_rows()
                fault()
                work.end(phase)
        finally:
            for phase in range(num_phases):
                work.end(phase)
        for worker in workers:
            worker.result(WAIT_S)
        for client in clients:
            client.close()
        assert switch.passed["lost"]
        assert switch.passed["aggregate_add"]
        np.testing.assert_array_equal(sums_of(server), work.sums)


def test_two_tables_have_hot_rows() -> None:
    """Of other widths; the switch loses its registers again and again."""
    definitions = [
        TableDefinition(name="narrow", width=3, hot_keys=20),
        TableDefinition(name="wide", width=40, hot_keys=3),
    ]
    num_keys = 30
    sums = [np.zeros((num_keys, each.width), np.int64) for each in definitions]
    rng = np.random.default_rng(1)
    with live(2, loss=0.05) as (switch, server, clients):
        tables = [[client.define(each) for each in definitions] for client in clients]
        pushes: list[Future[None]] = []

        def push() -> None:
            for own in tables:
                for table, total in zip(own, sums, strict=True):
                    keys = rng.integers(0, rng.integers(2, num_keys), 10)
                    lanes = rng.integers(-9, 10, (10, table.definition.width))
                    np.add.at(total, keys, lanes)
                    pushes.append(table.push(keys, gradients_of(lanes)))
            pushes[-4].result(WAIT_S)

        def num_tables() -> int:
            return len(server.tables.tables.hot_state.served.parts)

        while num_tables() < 2:
            push()
        for _ in range(5):
            switch.restart()
            for _ in range(5):
                push()
        for each in pushes:
            each.result(WAIT_S)
        assert num_tables() == 2
        for client in clients:
            client.close()
        with open_client([server.address], 0, use_hot_rows=HotRowUse.NEVER) as client:
            for definition, total in zip(definitions, sums, strict=True):
                rows = client.define(definition).pull(np.arange(num_keys)).result(WAIT_S)
                np.testing.assert_array_equal(16 * rows.values, total)


def test_pulls_come_from_switch_and_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "TRY_S", WAIT_S)
    with live(1) as (_, server, clients):
        table, count = heat(clients[0], server)
        keys = np.array([50, 21, 39])

        def pull() -> list[tuple[float, int]]:
            rows = table.pull(keys).result(WAIT_S)
            assert not (rows.versions[0] and UNKNOWN_UPDATES in rows.updates)
            return list(zip((16 * rows.values[:, 0]).tolist(), rows.updates.tolist(), strict=True))

        expected = [(0, 0), (count, UNKNOWN_UPDATES), (count, UNKNOWN_UPDATES)]
        end_s = time.monotonic() + WAIT_S
        while (found := pull()) != expected:  # until the server has written all values
            assert time.monotonic() < end_s, found


def test_clients_that_may_not_use_hot_rows_push_by_tcp() -> None:
    with live(1) as (switch, server, clients):
        _, count = heat(clients[0], server)
        clients[0].close()
        switch.drain()
        pushed = switch.passed["aggregate_add"]
        with open_client([server.address], 0, use_hot_rows=HotRowUse.NEVER) as client:
            table = client.define(DEFINITION)
            table.push(HOT, gradients_of(np.ones((HOT.size, WIDTH)))).result(WAIT_S)
            rows = table.pull(HOT).result(WAIT_S)
        assert (16 * rows.values == count + 1).all()
        switch.drain()
        assert switch.passed["aggregate_add"] == pushed


def test_a_switch_that_does_not_answer_costs_time_but_no_gradient(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hot_row_server, "SILENT_S", 1.0)
    with live(1) as (switch, server, clients):
        table, count = heat(clients[0], server)
        switch.stop()
        pushes = [
            table.push(np.arange(30, 60), gradients_of(np.ones((30, WIDTH)))) for _ in range(5)
        ]
        for push in pushes:
            push.result(WAIT_S)
        clients[0].close()
        expected = [0] * 20 + [count] * 10 + [count + 5] * 10 + [5] * 20
        assert sums_of(server)[:, 0].tolist() == expected


def test_an_address_that_is_not_this_hosts_leaves_tcp(caplog: pytest.LogCaptureFixture) -> None:
    with live(1) as (switch, server, clients):
        _, count = heat(clients[0], server)
        clients[0].close()
        switch.drain()
        pushed = switch.passed["aggregate_add"]
        with open_client([server.address], 0, hot_address="192.0.2.1") as client:
            table = client.define(DEFINITION)
            wait_until(lambda: "192.0.2.1" in caplog.text, "no word of the address")
            table.push(HOT, gradients_of(np.ones((HOT.size, WIDTH)))).result(WAIT_S)
        switch.drain()
        assert switch.passed["aggregate_add"] == pushed
        assert (sums_of(server)[HOT] == count + 1).all()


def test_closing_a_client_fails_pushes_to_hot_rows() -> None:
    with live(1) as (switch, server, clients):
        table, _ = heat(clients[0], server)
        switch.stop()
        push = table.push(HOT, gradients_of(np.ones((HOT.size, WIDTH))))
        clients[0].close()
        with pytest.raises(PeerClosedError):
            push.result(WAIT_S)


@pytest.mark.parametrize(
    "fields",
    [
        {"hot_keys": -1},
        {"hot_keys": 1 << 24},
        {"hot_keys": 1, "staleness": 0},
        {"hot_keys": 1, "staleness": 3},
    ],
)
def test_definitions_that_cannot_be_hot(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="hot keys"):
        TableDefinition(name="w", width=4, **fields)


@pytest.mark.parametrize("share", [0.0, -0.5, 1.5])
def test_shares_that_cannot_be_counted(share: float) -> None:
    with pytest.raises(ConfigurationError, match="counted"):
        ClientOptions(worker_id=0, hot_sample=share)
