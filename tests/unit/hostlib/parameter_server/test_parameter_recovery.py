# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportPrivateUsage=false
"""Parameter servers that are killed, and their checkpoints."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from loopback import LOOPBACK
from parameter_cluster import WAIT_S, Floats, gradients, sum_in_order
from switchfold.hostlib.errors import ConfigurationError, ExchangeTimeoutError, ServerRestartedError
from switchfold.hostlib.parameter_server import (
    CheckpointPlan,
    ClientOptions,
    ParameterClient,
    ParameterServer,
    RuleKind,
    ServerOptions,
    UpdateRule,
)
from switchfold.hostlib.parameter_server.checkpoint import CheckpointStore
from switchfold.hostlib.parameter_server.recovery import NOTHING, Recovery
from time_bound import wait_until

WORKERS, VALUES, ITERATIONS = 2, 3000, 12
PATIENT_S = 10 * WAIT_S
"""For a server process to come back, which takes long on a busy machine. A worker that gave it up
would leave the other one waiting for it."""
SGD = UpdateRule(kind=RuleKind.SGD, learning_rate=0.1, momentum=0.9)


class KilledServer:
    """A server process that can be killed and started again at its port."""

    def __init__(self, *arguments: str) -> None:
        self._arguments = arguments
        self.port = 0
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [
                *(
                    sys.executable,
                    "-m",
                    "switchfold.hostlib.parameter_server",
                    "--address",
                    LOOPBACK,
                ),
                *("--num-workers", str(WORKERS), "--port", str(self.port), *self._arguments),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        self.port = int(said.rpartition(":")[2])

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=WAIT_S)

    def __enter__(self) -> KilledServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


def test_updates_reach_a_killed_server_that_comes_back() -> None:
    arrays = gradients(WORKERS, 400_000)
    expected = sum_in_order(arrays).tobytes()
    with KilledServer() as server:
        addresses = [(LOOPBACK, server.port)]
        options = [ClientOptions(worker_id=w, reconnect_s=PATIENT_S) for w in range(WORKERS)]
        clients = [ParameterClient(addresses, each) for each in options]
        with clients[0], clients[1]:
            for iteration in range(2):
                # In place: an answer that was half here must not be sent as an update.
                first = clients[0].push_pull("w", copy := arrays[0].copy(), iteration, copy)
                if iteration:
                    wait_until(
                        lambda: clients[0].counters["sent_floats"] == 2 * 400_000, "the update"
                    )
                    server.kill()
                    server.start()
                second = clients[1].push_pull("w", arrays[1], iteration)
                for future in (first, second):
                    assert future.result(WAIT_S).tobytes() == expected
            assert clients[0].counters["reconnections"] == 1


def train(
    client: ParameterClient, on_iteration: Callable[[int], None], target: Floats
) -> tuple[Floats, list[float], int]:
    """Descend to `target`; return parameters, losses by iteration, and restorations."""
    losses = [0.0] * ITERATIONS
    weights = client.initialise("w", np.zeros(VALUES, np.float32)).result(WAIT_S)
    iteration = restorations = 0
    while iteration < ITERATIONS:
        on_iteration(iteration)
        losses[iteration] = float(np.square(weights - target).mean())
        try:
            weights = client.push_pull("w", weights - target, iteration).result(WAIT_S)
            iteration += 1
        except ServerRestartedError:
            restorations += 1
            iteration = client.restore().result(WAIT_S) + 1
            weights = client.initialise("w", np.zeros(VALUES, np.float32)).result(WAIT_S)
    return weights, losses, restorations


def test_training_goes_on_from_the_last_checkpoint(tmp_path: Path) -> None:
    target = np.linspace(-1, 1, VALUES, dtype=np.float32)

    def clients(addresses: list[tuple[str, int]]) -> list[ParameterClient]:
        return [
            ParameterClient(
                addresses, ClientOptions(worker_id=w, pair_bytes=2048, reconnect_s=PATIENT_S)
            )
            for w in range(WORKERS)
        ]

    def run(
        addresses: list[tuple[str, int]], on_iteration: Callable[[int], None]
    ) -> list[tuple[Floats, list[float], int]]:
        workers = clients(addresses)
        with workers[0], workers[1], ThreadPoolExecutor(WORKERS) as pool:
            runs = [
                pool.submit(train, worker, on_iteration if w == 0 else _nothing, target)
                for w, worker in enumerate(workers)
            ]
            return [one.result(4 * WAIT_S) for one in runs]

    plan = CheckpointPlan(directory=tmp_path / "shards", every=4)
    options = ServerOptions(num_workers=WORKERS, rule=SGD)
    with ParameterServer(options) as one:
        whole = run([(one.address, one.port)], _nothing)
    assert whole[0][2] == 0
    sgd = ("--rule", "sgd", "--learning-rate", "0.1", "--momentum", "0.9")
    saved = ("--checkpoints", str(tmp_path / "shards"), "--every", "4")
    with (
        KilledServer("--shard", "1", *sgd, *saved) as killed,
        ParameterServer(replace(options, checkpoints=plan)) as first,
    ):
        has_killed: list[int] = []

        def kill_once(iteration: int) -> None:
            if iteration == 7 and not has_killed:
                has_killed.append(iteration)
                killed.kill()
                killed.start()

        runs = run([(first.address, first.port), (LOOPBACK, killed.port)], kill_once)
    assert has_killed
    for weights, losses, restorations in runs:
        assert weights.tobytes() == whole[0][0].tobytes()
        assert losses == pytest.approx(whole[0][1], rel=1e-5)
        assert restorations == 1
    names = sorted(path.name for path in (tmp_path / "shards").glob("shard0*"))
    assert names == ["shard0-11.npz", "shard0-7.npz"]


def _nothing(_: int) -> None:
    pass


def one_client(server: ParameterServer) -> ParameterClient:
    return ParameterClient([(server.address, server.port)], ClientOptions(worker_id=0))


def test_damaged_checkpoint_is_left_out(tmp_path: Path) -> None:
    options = ServerOptions(num_workers=1, rule=SGD, checkpoints=CheckpointPlan(directory=tmp_path))
    array = np.ones(100, np.float32)
    with ParameterServer(options) as server, one_client(server) as client:
        client.initialise("w", array).result(WAIT_S)
        results = [client.push_pull("w", array, i).result(WAIT_S) for i in range(2)]
    newest = tmp_path / "shard0-1.npz"
    newest.write_bytes(newest.read_bytes()[:-200])
    (tmp_path / "shard0-2.tmp").write_bytes(b"half")
    with ParameterServer(options) as server, one_client(server) as client:
        found = client.initialise("w", array)
        assert found.result(WAIT_S).tobytes() == results[0].tobytes()
        assert found.applied == 0
        with pytest.raises(ServerRestartedError, match=r"checkpoint of iteration 0.* of 2"):
            client.push_pull("w", array, 2).result(WAIT_S)
        (tmp_path / "shard0-1.npz").unlink()
        assert client.restore().result(WAIT_S) == 0
        assert client.push_pull("w", array, 1).result(WAIT_S).tobytes() == results[1].tobytes()


def test_a_worker_that_asks_again_gets_the_same_offer() -> None:
    offers: list[tuple[list[int], int | None]] = []
    resets: list[int] = []

    def offer(iterations: list[int], to_worker: int | None) -> None:
        offers.append((iterations, to_worker))

    recovery = Recovery(2, None, post=lambda call: call(), offer=offer, reset=resets.append)
    recovery.ask(0)
    recovery.ask(1)
    recovery.ask(1)  # its connection broke
    assert offers == [([NOTHING], None), ([NOTHING], 1)]
    assert not recovery.is_asked  # updates of the others are taken
    recovery.go_back(0, NOTHING)
    recovery.go_back(1, NOTHING)
    assert resets == [NOTHING]
    recovery.ask(1)  # once more, after a choice: all must
    assert recovery.is_asked
    recovery.ask(0)
    assert offers[2:] == [([NOTHING], None)]


def test_a_new_run_that_counts_from_the_start_gets_an_error() -> None:
    array = np.ones(4, np.float32)
    with ParameterServer(ServerOptions(num_workers=1)) as server:
        with one_client(server) as client:
            for iteration in range(3):
                client.push_pull("w", array, iteration).result(WAIT_S)
        with one_client(server) as client:
            with pytest.raises(ExchangeTimeoutError, match="counts on from 3"):
                client.push_pull("w", array, 0).result(WAIT_S)
            client.push_pull("w", array, 3).result(WAIT_S)


def test_a_deadline_of_a_sum_that_was_forgotten_means_nothing() -> None:
    with ParameterServer(ServerOptions(num_workers=1)) as server:
        server.loop.run(lambda: server._close_if_complete(0, 0, 7))


def test_a_lost_checkpoint_directory_is_no_checkpoint(tmp_path: Path) -> None:
    store = CheckpointStore(CheckpointPlan(directory=tmp_path / "shards"), 0)
    (tmp_path / "shards").rmdir()
    found: list[list[int]] = []
    store.list_iterations(found.append)
    store.close()
    assert found == [[]]


def test_servers_without_a_place_or_parameters_refuse_checkpoints(tmp_path: Path) -> None:
    plan = CheckpointPlan(directory=tmp_path)
    with pytest.raises(ConfigurationError, match="keeps nothing to checkpoint"):
        ServerOptions(num_workers=1, checkpoints=plan)
    with pytest.raises(ConfigurationError, match="every 0 iterations"):
        CheckpointPlan(directory=tmp_path, every=0)
    (tmp_path / "file").touch()
    taken = ServerOptions(
        num_workers=1, rule=SGD, checkpoints=CheckpointPlan(directory=tmp_path / "file")
    )
    with pytest.raises(ConfigurationError, match="choose another directory"):
        ParameterServer(taken)
    assert os.listdir(tmp_path) == ["file"]
