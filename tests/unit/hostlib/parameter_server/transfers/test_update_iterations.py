# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Scheduled updates of workers that wait for each other: synchronous, and with a staleness."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from fake_transfers import grant_everything, server, worker
from switchfold.hostlib.errors import ExchangeTimeoutError, PeerClosedError
from switchfold.hostlib.parameter_server.rows import Sgd
from switchfold.hostlib.parameter_server.tables import TensorDefinition
from switchfold.hostlib.parameter_server.tables.dense import Values
from switchfold.hostlib.parameter_server.transfers import FabricWorker
from switchfold.hostlib.peers.frames import FrameKind
from time_bound import wait_until
from transfer_scene import VALUES, WAIT_S, TransferScene, values

RATE, MOMENTUM = 0.1, 0.9


def definition(staleness: int) -> TensorDefinition:
    """A tensor whose values are sums, but for the synchronous one, which is trained."""
    if staleness:
        return TensorDefinition(name="w", num_values=VALUES, block_values=100, staleness=staleness)
    return TensorDefinition(
        name="w",
        num_values=VALUES,
        block_values=100,
        staleness=0,
        is_mean=True,
        optimiser=Sgd(learning_rate=RATE, momentum=MOMENTUM),
    )


def scene(
    staleness: int, num_workers: int, num_servers: int = 1, folder: Path | None = None
) -> TransferScene:
    return TransferScene(
        grant_everything(),
        num_workers,
        num_servers,
        folder,
        definition=definition(staleness),
        staleness=staleness,
        server={"timeout_s": WAIT_S},
    )


def gradient(weights: Values, seed: int) -> Values:
    """Return the gradient of half the squared distance to a point that the seed gives."""
    return weights - values(seed)


def reference(num_workers: int, iterations: int) -> np.ndarray:
    """Return what one process gets by SGD on the joint batch, in float64."""
    weights, step = np.zeros(VALUES), np.zeros(VALUES)
    for iteration in range(iterations):
        gradients = [weights - values(10 * iteration + w) for w in range(num_workers)]
        step = MOMENTUM * step + np.mean(gradients, axis=0)
        weights = weights - RATE * step
    return weights


def train(fabric: FabricWorker, number: int, iterations: range) -> Values:
    for iteration in iterations:
        weights = fabric.get().result(WAIT_S)
        assert fabric.push(gradient(weights, 10 * iteration + number)).result(WAIT_S).is_committed
    return fabric.get().result(WAIT_S)


def train_all(workers: list[FabricWorker], iterations: range) -> list[Values]:
    with ThreadPoolExecutor(len(workers)) as pool:
        runs = [pool.submit(train, each, n, iterations) for n, each in enumerate(workers)]
        return [run.result(WAIT_S) for run in runs]


@pytest.mark.parametrize("num_servers", [1, 2])
def test_synchronous_training_is_that_of_one_process(num_servers: int) -> None:
    with scene(0, 3, num_servers) as made:
        models = train_all([made.worker(number) for number in range(3)], range(6))
        for model in models:
            np.testing.assert_allclose(model, reference(3, 6), rtol=1e-5, atol=1e-5)
            assert np.array_equal(model, models[0]), "all workers have the same bits"
        clocks = [asked.clock for asked in made.fake.said(worker(1), "requested")]
        assert sorted(clocks) == sorted([*range(6)] * num_servers)
        assert {each.staleness for each in made.fake.said(server(), "register")} == {0}


def test_synchronous_training_goes_on_with_the_log_of_a_killed_server(tmp_path: Path) -> None:
    with scene(0, 2, folder=tmp_path) as made:
        workers = [made.worker(number) for number in range(2)]
        train_all(workers, range(3))
        # One update of the next iteration is there when the server ends.
        first = workers[0].get().result(WAIT_S)
        workers[0].push(gradient(first, 30)).result(WAIT_S)
        made.cluster.restart(0)
        workers[1].push(gradient(workers[1].get().result(WAIT_S), 31)).result(WAIT_S)
        model = workers[0].get().result(WAIT_S)
        np.testing.assert_allclose(model, reference(2, 4), rtol=1e-5, atol=1e-5)


def test_a_synchronous_get_waits_for_all_updates() -> None:
    with scene(0, 2) as made:
        fast, slow = made.worker(0), made.worker(1)
        start = fast.get().result(WAIT_S)
        fast.push(gradient(start, 0)).result(WAIT_S)
        waiting = fast.get()
        pulls = made.cluster.servers[0].tables
        wait_until(lambda: len(pulls._pulls) == 1, "the get is not there")
        assert not waiting.done()
        np.testing.assert_array_equal(slow.get().result(WAIT_S), start)
        slow.push(gradient(start, 1)).result(WAIT_S)
        np.testing.assert_allclose(waiting.result(WAIT_S), reference(2, 1), rtol=1e-5, atol=1e-5)


def test_a_get_waits_for_the_slowest_worker_beyond_the_staleness() -> None:
    with scene(2, 2) as made:
        fast, slow = made.worker(0), made.worker(1)
        total = np.zeros(VALUES, np.float32)
        for number in range(3):
            # A worker is at most two iterations ahead when it gets a model.
            np.testing.assert_array_equal(fast.get().result(WAIT_S), total)
            fast.push(values(number)).result(WAIT_S)
            total += values(number)
        waiting = fast.get()
        service = made.cluster.servers[0].tables
        wait_until(lambda: len(service._pulls) == 1, "the get is not there")
        assert [each.clock for each in service.state.workers] == [3, 0]
        assert not waiting.done()
        np.testing.assert_array_equal(slow.get().result(WAIT_S), total)
        slow.push(values(9)).result(WAIT_S)
        np.testing.assert_array_equal(waiting.result(WAIT_S), total + values(9))
        assert [asked.clock for asked in made.fake.said(worker(0), "requested")] == [0, 1, 2]


def test_an_iteration_that_a_killed_worker_had_not_ended_is_done_once_more() -> None:
    with scene(0, 2) as made:
        other, killed = made.worker(0), made.worker(1)
        start = killed.get().result(WAIT_S)
        other.push(gradient(start, 0)).result(WAIT_S)
        # Its update is at the server, but the process ends before its iteration.
        service = made.cluster.servers[0].tables
        ended = killed._tensor.client.end_iteration
        killed._tensor.client.end_iteration = lambda gathering: gathering.take(  # type: ignore[method-assign]
            PeerClosedError("killed")
        )
        with pytest.raises(PeerClosedError, match="killed"):
            killed.push(values(77)).result(WAIT_S)
        assert [each.clock for each in service.state.workers] == [1, 0]
        killed._tensor.client.end_iteration = ended  # type: ignore[method-assign]
        successor = made.worker(1)
        successor.push(gradient(start, 1)).result(WAIT_S)
        np.testing.assert_allclose(
            other.get().result(WAIT_S), reference(2, 1), rtol=1e-5, atol=1e-5
        )


def test_what_a_server_has_of_an_iteration_that_others_have_not_is_not_sent_again() -> None:
    with scene(1, 1, 2) as made:
        first = made.worker(0)
        client = first._tensor.client
        # The process ends its iteration at the first server alone.

        def end_at_first(_gathering: object) -> None:
            client.sessions[0].change(FrameKind.ADVANCE, memoryview(b""), lambda _: None)

        client.end_iteration = end_at_first  # type: ignore[method-assign, assignment]
        made.fake.wait_for(server(1), "register")
        first.push(values(1))
        tables = [each.tables for each in made.cluster.servers]
        wait_until(lambda: tables[0].state.workers[0].clock == 1, "the iteration has not ended")
        assert tables[1].state.workers[0].clock == 0
        first.close()
        client.close()
        second = made.worker(0)
        outcome = second.push(values(1)).result(WAIT_S)
        assert [part.shard for part in outcome.parts] == [0, 1]
        assert [each.state.workers[0].clock for each in tables] == [1, 1]
        before = tables[0].state.num_commits
        assert (before, tables[1].state.num_commits) == (1, 2)
        second.push(values(2)).result(WAIT_S)
        assert [each.state.num_commits for each in tables] == [2, 3]


def test_a_worker_that_stops_is_named_by_those_that_wait() -> None:
    with TransferScene(
        grant_everything(),
        2,
        definition=definition(0),
        staleness=0,
        server={"timeout_s": 0.2},
    ) as made:
        fabric = made.worker(0)
        fabric.push(gradient(fabric.get().result(WAIT_S), 0)).result(WAIT_S)
        with pytest.raises(ExchangeTimeoutError, match="worker 1 has ended 0 iterations"):
            fabric.get().result(WAIT_S)
