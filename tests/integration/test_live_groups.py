# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A testbed's controller forms groups at an idle worker, which is killed while it gathers."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from pathlib import Path

import numpy as np
import pytest

from aggregator_process import AggregatorProcess
from switchfold.bmv2_topos import Testbed, single_switch, state
from switchfold.hostlib.parameter_server.tables.dense import Values
from testbed_training import JOB, TestbedTraining
from time_bound import wait_until

NUM_PUSHERS = 5
AGGREGATOR = NUM_PUSHERS
SERVER = NUM_PUSHERS + 1
NUM_VALUES = 1 << 18
RATE = 100_000_000
LIMIT_S = 180.0

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
pytestmark = [pytest.mark.root, needs_root]


@pytest.fixture
def testbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Testbed]:
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path)
    topology = single_switch(SERVER + 1, rate_bits_per_s=RATE)
    with Testbed(topology, name=f"test-groups-{os.getpid()}") as testbed:
        yield testbed


class GroupTraining(TestbedTraining):
    """A server with a log on the last host, an aggregator before it, and workers."""

    def __init__(self, testbed: Testbed, log: Path) -> None:
        super().__init__(testbed, NUM_PUSHERS, NUM_VALUES, log)
        self._seed = 0
        self.aggregator: AggregatorProcess
        try:
            self.start_aggregator()
        except BaseException:
            self.stack.close()
            raise

    def start_aggregator(self) -> None:
        """Start the process that gathers, or another one after its end."""
        self.aggregator = self.stack.enter_context(self._aggregator())

    def _aggregator(self) -> AggregatorProcess:
        namespace = self.testbed.namespace_of(self.testbed.topology.hosts[AGGREGATOR])
        assert namespace is not None
        return AggregatorProcess(
            namespace,
            worker_id=AGGREGATOR,
            source=self.fabric.addresses[AGGREGATOR],
            servers=[(self.server.address, self.server.port)],
            num_values=NUM_VALUES,
            credentials=str(self.folder(AGGREGATOR)),
            transfers={
                "controller": self.testbed.controller_address,
                "job": JOB,
                "host": self.host(AGGREGATOR),
                "token": self.testbed.endpoint(0).token,
            },
        )

    def count(self, name: str) -> int:
        """Return a counter of all workers together."""
        return sum(worker.counters[name] for worker in self.workers)

    def push_all(self, meanwhile: Callable[[], None] | None = None) -> list[bool]:
        """Push an update of each worker; return which came in sums.

        `meanwhile` is called when a member's update goes to the aggregator, if one does.
        """
        self._seed += 1
        updates = [
            np.random.default_rng((self._seed, number))
            .integers(-9, 10, NUM_VALUES)
            .astype(np.float32)
            for number in range(NUM_PUSHERS)
        ]
        before = self.count("grouped_updates")
        futures = [
            worker.push(update) for worker, update in zip(self.workers, updates, strict=True)
        ]
        if meanwhile is not None:
            wait_until(
                lambda: (
                    self.count("grouped_updates") > before
                    or all(future.done() for future in futures)
                ),
                "a group, or the end",
                LIMIT_S,
            )
            if self.count("grouped_updates") > before:
                meanwhile()
        outcomes = [future.result(LIMIT_S) for future in futures]
        assert all(outcome.is_committed for outcome in outcomes), outcomes
        for update in updates:
            self.total += update
        return [outcome.parts[0].is_summed for outcome in outcomes]

    def check(self) -> Values:
        """Compare the model, and the number of its updates, with what was pushed."""
        got = self.workers[0].get().result(LIMIT_S)
        assert np.array_equal(got, self.total)
        assert self.workers[0].commits.tolist() == [self._seed * NUM_PUSHERS]
        return got


def test_groups_are_exact_also_without_their_aggregator_or_the_controller(
    testbed: Testbed, tmp_path: Path
) -> None:
    with GroupTraining(testbed, tmp_path / "log") as training:
        wait_until(lambda: any(training.push_all()), "a group", LIMIT_S)
        training.check()
        assert training.server.tables.counters["sums"] > 0

        def kill_while_it_gathers() -> bool:
            training.aggregator.freeze()
            training.push_all(training.aggregator.kill)
            if training.aggregator.process.returncode is None:
                training.aggregator.thaw()
                return False
            return True

        wait_until(kill_while_it_gathers, "a group that loses its aggregator", LIMIT_S)
        training.check()
        assert training.count("left_updates") > 0

        def pushes_without_groups() -> bool:
            before = training.count("grouped_updates")
            training.push_all()
            return training.count("grouped_updates") == before

        wait_until(pushes_without_groups, "a batch that avoids it", LIMIT_S)
        training.check()
        testbed.stop_controller()
        assert not any(training.push_all())
        training.check()


def test_a_group_goes_on_when_the_controller_is_killed(testbed: Testbed, tmp_path: Path) -> None:
    """Updates may come in the sum and by themselves; the next controller forms groups again."""
    with GroupTraining(testbed, tmp_path / "log") as training:

        def kill_while_a_group_gathers() -> bool:
            killed: list[bool] = []

            def kill() -> None:
                testbed.stop_controller()
                killed.append(True)
                training.aggregator.thaw()

            training.aggregator.freeze()
            training.push_all(kill)
            if not killed:
                training.aggregator.thaw()
            return bool(killed)

        wait_until(kill_while_a_group_gathers, "a group that loses the controller", LIMIT_S)
        training.check()
        testbed.start_controller()
        wait_until(lambda: any(training.push_all()), "a group of the next controller", LIMIT_S)
        training.check()
        training.aggregator.kill()
        training.start_aggregator()
        wait_until(lambda: any(training.push_all()), "a group at the next process", LIMIT_S)
        training.check()
