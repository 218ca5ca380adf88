# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A testbed's controller plans updates and models of workers, is killed, and plans again."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest

from scheme_fabric import Fabric
from switchfold.bmv2_topos import Testbed, single_switch, state
from switchfold.hostlib.credentials import Credentials
from switchfold.hostlib.parameter_server import (
    ClientOptions,
    HotRowUse,
    ParameterServer,
    ServerOptions,
)
from switchfold.hostlib.parameter_server.tables import DenseTensor, TableClient, TensorDefinition
from switchfold.hostlib.parameter_server.transfers import FabricWorker, TransferOptions
from time_bound import wait_until

NUM_WORKERS = 2
NUM_VALUES = 1 << 16
RATE = 100_000_000
LIMIT_S = 120.0
JOB = "train"
FATES = ("granted_models", "ungranted_models", "refused_models")

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
pytestmark = [pytest.mark.root, needs_root]


@pytest.fixture
def testbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Testbed]:
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path)
    topology = single_switch(NUM_WORKERS + 1, rate_bits_per_s=RATE)
    with Testbed(topology, name=f"test-transfers-{os.getpid()}") as testbed:
        yield testbed


class Training:
    """A server with a log on the last host, and workers on the others, all by TLS."""

    def __init__(self, testbed: Testbed, log: Path) -> None:
        self._testbed, self._log, self._fabric = testbed, log, Fabric(testbed)
        self._stack = contextlib.ExitStack()
        self.total = np.zeros(NUM_VALUES, np.float32)
        """The sum of all updates that were pushed."""
        try:
            self.server = self._stack.enter_context(self._fabric.at(NUM_WORKERS, self._serve))
            self.workers = [self._worker(number) for number in range(NUM_WORKERS)]
        except BaseException:
            self._stack.close()
            raise

    def __enter__(self) -> Training:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _options(self, number: int, credentials: Credentials) -> TransferOptions:
        return TransferOptions(
            controller=self._testbed.controller_address,
            job=JOB,
            host=self._testbed.topology.hosts[number].name,
            token=self._testbed.endpoint(0).token,
            credentials=str(credentials.folder),
        )

    def _serve(self) -> ParameterServer:
        credentials = self._testbed.server_credentials
        transfers = self._options(NUM_WORKERS, credentials)
        options = ServerOptions(num_workers=NUM_WORKERS, log=self._log, transfers=transfers)
        address = self._fabric.addresses[NUM_WORKERS]
        return ParameterServer(options, address=address, credentials=credentials)

    def _worker(self, number: int) -> FabricWorker:
        folder = self._testbed.endpoint(number).credentials
        assert folder is not None
        credentials = Credentials(folder)

        def join() -> FabricWorker:
            options = ClientOptions(
                worker_id=number,
                source=self._fabric.addresses[number],
                credentials=credentials,
                use_hot_rows=HotRowUse.NEVER,
            )
            client = TableClient([(self.server.address, self.server.port)], options)
            self._stack.callback(client.close)
            tensor = DenseTensor(client, TensorDefinition(name="w", num_values=NUM_VALUES))
            return FabricWorker(tensor, self._options(number, credentials))

        made = self._fabric.at(number, join)
        self._stack.callback(made.close)
        return made

    def push_all(self, seed: int) -> list[bool]:
        """Push an update of each worker; return which travelled by grants."""
        updates = [
            np.random.default_rng((seed, number)).integers(-9, 10, NUM_VALUES).astype(np.float32)
            for number in range(NUM_WORKERS)
        ]
        futures = [
            worker.push(update) for worker, update in zip(self.workers, updates, strict=True)
        ]
        outcomes = [future.result(LIMIT_S) for future in futures]
        assert all(outcome.is_committed for outcome in outcomes), outcomes
        for update in updates:
            self.total += update
        return [outcome.parts[0].is_granted for outcome in outcomes]

    def check_model(self) -> str:
        """Get the model, which must have all updates; return its fate: granted or ungranted."""
        counters = self.server.updates.counters
        before = Counter(counters)
        assert np.array_equal(self.workers[0].get().result(LIMIT_S), self.total)
        sent = [name for name in FATES for _ in range(counters[name] - before[name])]
        assert len(sent) == 1, sent
        return sent[0].removesuffix("_models")

    def await_granted_model(self) -> None:
        """Get models until one has travelled by a grant, which may come too late."""
        wait_until(lambda: self.check_model() == "granted", "a granted model", LIMIT_S)


def test_updates_travel_by_grants_and_go_on_without_the_controller(
    testbed: Testbed, tmp_path: Path
) -> None:
    with Training(testbed, tmp_path / "log") as training:
        seeds = iter(range(1000))
        wait_until(lambda: all(training.push_all(next(seeds))), "grants for all", LIMIT_S)
        training.await_granted_model()
        testbed.stop_controller()
        assert not any(training.push_all(next(seeds)))
        assert training.check_model() == "ungranted"
        testbed.start_controller()
        wait_until(lambda: all(training.push_all(next(seeds))), "grants again", LIMIT_S)
        training.await_granted_model()
