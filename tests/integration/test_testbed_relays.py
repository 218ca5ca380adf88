# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A testbed's controller has workers send models on, also while one of them does not."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest

from switchfold.bmv2_topos import Testbed, single_switch, state
from switchfold.bmv2_topos.processes import daemons
from switchfold.bmv2_topos.processes.tokens import controller_environment
from testbed_training import TestbedTraining
from time_bound import wait_until

NUM_WORKERS = 4
NUM_VALUES = 1 << 18
RATE = 100_000_000
LIMIT_S = 180.0

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
pytestmark = [pytest.mark.root, needs_root]


@pytest.fixture
def testbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Testbed]:
    """A testbed whose controller has workers relay models."""
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path)
    topology = single_switch(NUM_WORKERS + 1, rate_bits_per_s=RATE)
    with Testbed(topology, name=f"test-relays-{os.getpid()}") as testbed:
        testbed.stop_controller()
        config = testbed.run_directory / "controller.toml"
        options = f"[transfers]\nrelay_max = {NUM_WORKERS}\n"
        config.write_text(f"{config.read_text()}\n{options}")
        testbed.start(
            "controller",
            daemons.controller_command(config),
            environment=controller_environment(testbed.run_directory),
            ready_timeout_s=LIMIT_S,
        )
        yield testbed


class RelayTraining(TestbedTraining):
    """A server on the last host, and workers that relay models."""

    def __init__(self, testbed: Testbed) -> None:
        super().__init__(testbed, NUM_WORKERS, NUM_VALUES, relay_models=True)

    def count(self, name: str) -> int:
        """Return a counter of the server's models."""
        return self.server.updates.counters[name]

    def step(self) -> None:
        """Push an update of one worker; have all workers get the model, which must have it."""
        drawn = np.random.default_rng(self.workers[0].counters["pushes"])
        update = drawn.integers(-9, 10, NUM_VALUES)
        self.total += update
        outcome = self.workers[0].push(update.astype(np.float32)).result(LIMIT_S)
        assert outcome.is_committed
        for future in [worker.get() for worker in self.workers]:
            assert np.array_equal(future.result(LIMIT_S), self.total)

    def step_until(self, name: str, count: int) -> None:
        def is_counted() -> bool:
            self.step()
            return self.count(name) >= count

        wait_until(is_counted, lambda: f"{count} {name}: {self.server.updates.counters}", LIMIT_S)


def test_models_go_from_worker_to_worker_also_while_one_cannot_be_reached(
    testbed: Testbed,
) -> None:
    with RelayTraining(testbed) as training:
        training.step_until("relayed_models", NUM_WORKERS)
        # Each is counted before the next one.
        relayed = training.count("relayed_models")
        taken = sum(worker.counters["taken_models"] for worker in training.workers)
        sent_on = sum(worker.counters["sent_on_models"] for worker in training.workers)
        assert sent_on >= taken >= relayed >= NUM_WORKERS
        relay = training.workers[1]._relay
        assert relay is not None
        relay._receiver.close()
        training.step_until("failed_relays", training.count("failed_relays") + 1)
        for _ in range(3):
            training.step()
