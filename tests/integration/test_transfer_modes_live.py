# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Synchronous and stale synchronous jobs on a testbed, whose updates the controller plans."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fabric_job import LIMIT_S, FabricJob
from switchfold.bmv2_topos import Testbed, single_switch, state
from switchfold.hostlib.parameter_server.rows import Sgd
from switchfold.hostlib.parameter_server.tables import TensorDefinition
from switchfold.hostlib.parameter_server.transfers import FabricWorker
from time_bound import wait_until

NUM_WORKERS = 8
NUM_VALUES = 4096
RATE, MOMENTUM = 0.1, 0.9
STALENESS = 2

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
pytestmark = [pytest.mark.root, needs_root, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def testbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Testbed]:
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path)
    topology = single_switch(NUM_WORKERS + 1, rate_bits_per_s=20_000_000)
    with Testbed(
        topology,
        name=f"test-modes-{os.getpid()}",
        controller_options=("--transfer-log", str(tmp_path / "transfers.jsonl")),
    ) as testbed:
        testbed.link_rates.set(topology.links[0], 5_000_000)  # one slow link
        yield testbed


def aim(worker: int, iteration: int) -> NDArray[np.float64]:
    return np.random.default_rng((worker, iteration)).normal(size=NUM_VALUES)


def test_synchronous_training_is_that_of_one_process(testbed: Testbed) -> None:
    definition = TensorDefinition(
        name="w",
        num_values=NUM_VALUES,
        staleness=0,
        is_mean=True,
        optimiser=Sgd(learning_rate=RATE, momentum=MOMENTUM),
    )
    iterations = 5

    def train(number: int, fabric: FabricWorker) -> NDArray[np.float32]:
        for iteration in range(iterations):
            weights = fabric.get().result(LIMIT_S)
            gradient = (weights - aim(number, iteration)).astype(np.float32)
            fabric.push(gradient).result(LIMIT_S)
        return fabric.get().result(LIMIT_S)

    with FabricJob(testbed, definition, staleness=0) as job, ThreadPoolExecutor(8) as pool:
        models = [
            future.result(LIMIT_S)
            for future in [
                pool.submit(train, number, fabric) for number, fabric in enumerate(job.workers)
            ]
        ]
        assert job.report()["staleness"] == 0
    weights, step = np.zeros(NUM_VALUES), np.zeros(NUM_VALUES)
    for iteration in range(iterations):
        gradients = [weights - aim(number, iteration) for number in range(NUM_WORKERS)]
        step = MOMENTUM * step + np.mean(gradients, axis=0)
        weights -= RATE * step
    for model in models:
        np.testing.assert_array_equal(model, models[0])
        np.testing.assert_allclose(model, weights, rtol=1e-4, atol=1e-4)


def test_no_worker_is_further_ahead_than_the_staleness(testbed: Testbed, tmp_path: Path) -> None:
    definition = TensorDefinition(name="w", num_values=NUM_VALUES, staleness=STALENESS)
    iterations = 6
    ahead: list[int] = []

    # What is pushed before its worker is registered waits, and goes on without a request else.
    options = {"staleness": STALENESS, "grant_wait_s": LIMIT_S}
    with FabricJob(testbed, definition, **options) as job:
        progress = job.server.tables.state

        def train(fabric: FabricWorker) -> None:
            ones = np.ones(NUM_VALUES, np.float32)
            for iteration in range(iterations):
                seen = fabric.get().result(LIMIT_S)
                # The slowest worker has ended at least so many iterations by now: clocks only grow.
                ahead.append(iteration - progress.clock)
                assert seen[0] >= iteration + (NUM_WORKERS - 1) * max(0, iteration - STALENESS)
                fabric.push(ones).result(LIMIT_S)

        with ThreadPoolExecutor(NUM_WORKERS) as pool:
            for future in [pool.submit(train, fabric) for fabric in job.workers]:
                future.result(LIMIT_S)
        model = job.workers[0].get().result(LIMIT_S)
        assert (model == NUM_WORKERS * iterations).all()
        log = tmp_path / "transfers.jsonl"
        wait_until(
            lambda: commits_of(log) == NUM_WORKERS * iterations, "the last line of the timeline"
        )
    assert max(ahead) <= STALENESS
    asked = Counter(line["clock"] for line in lines_of(log) if line["event"] == "requested")
    assert asked == dict.fromkeys(range(iterations), NUM_WORKERS)


def lines_of(log: Path) -> list[dict[str, Any]]:
    *whole, _ = log.read_text("utf-8").split("\n")  # the last one may be unfinished
    return [json.loads(line) for line in whole]


def commits_of(log: Path) -> int:
    return sum(line["event"] in ("committed", "ungranted") for line in lines_of(log))
