# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A testbed's controller plans updates and models of workers, is killed, and plans again."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest

from switchfold.bmv2_topos import Testbed, single_switch, state
from testbed_training import TestbedTraining
from time_bound import wait_until

NUM_WORKERS = 2
NUM_VALUES = 1 << 16
RATE = 100_000_000
LIMIT_S = 120.0
FATES = ("granted_models", "ungranted_models", "refused_models")

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
pytestmark = [pytest.mark.root, needs_root]


@pytest.fixture
def testbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Testbed]:
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path)
    topology = single_switch(NUM_WORKERS + 1, rate_bits_per_s=RATE)
    with Testbed(topology, name=f"test-transfers-{os.getpid()}") as testbed:
        yield testbed


class Training(TestbedTraining):
    """A server with a log on the last host, and workers on the others."""

    def __init__(self, testbed: Testbed, log: Path) -> None:
        super().__init__(testbed, NUM_WORKERS, NUM_VALUES, log)

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
