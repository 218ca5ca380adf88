# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A testbed's controller forms groups at an idle worker; it or a member is killed meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabric_job import job_report
from fabric_process import FabricProcess, settle_update, update_of
from switchfold.bmv2_topos import Testbed, single_switch, state
from switchfold.hostlib.parameter_server.tables.dense import BLOCK_VALUES, Values
from switchfold.hostlib.parameter_server.transfers import PushOutcome
from testbed_training import JOB, TestbedTraining
from time_bound import wait_until

NUM_PUSHERS = 5
AGGREGATOR = NUM_PUSHERS
MEMBER = NUM_PUSHERS + 1
"""Pushes in a process of its own, in the tests that kill it."""
SERVER = NUM_PUSHERS + 2
NUM_VALUES = 1 << 18
UPDATE_BYTES = 4 * NUM_VALUES
RATE = 100_000_000
SLOW_RATE = 20_000_000
"""An update is on its path for 0.4 s, so that its worker can be killed meanwhile."""
LIMIT_S = 180.0

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
pytestmark = [pytest.mark.root, needs_root]


@pytest.fixture
def rate() -> int:
    return RATE


@pytest.fixture
def testbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rate: int) -> Generator[Testbed]:
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path)
    topology = single_switch(SERVER + 1, rate_bits_per_s=rate)
    with Testbed(topology, name=f"test-groups-{os.getpid()}") as testbed:
        yield testbed


class GroupTraining(TestbedTraining):
    """A server with a log on the last host, an aggregator, and workers on the first ones."""

    def __init__(self, testbed: Testbed, log: Path, *, is_sparse: bool = False) -> None:
        """`is_sparse`: updates of this process's workers are of a random half of all blocks."""
        super().__init__(testbed, NUM_PUSHERS, NUM_VALUES, log)
        self._is_sparse = is_sparse
        self._seed = self._num_updates = 0
        self.aggregator: FabricProcess
        try:
            self.start_aggregator()
        except BaseException:
            self.stack.close()
            raise

    def start_aggregator(self) -> None:
        """Start the process that gathers, or another one after its end."""
        self.aggregator = self.start_process(AGGREGATOR, aggregate=True)

    def start_process(self, number: int, *, aggregate: bool = False) -> FabricProcess:
        """Start a worker in a process of its own."""
        namespace = self.testbed.namespace_of(self.testbed.topology.hosts[number])
        assert namespace is not None
        process = FabricProcess(
            namespace,
            worker_id=number,
            source=self.fabric.addresses[number],
            servers=[(self.server.address, self.server.port)],
            num_values=NUM_VALUES,
            credentials=str(self.folder(number)),
            transfers={
                "controller": self.testbed.controller_address,
                "job": JOB,
                "host": self.host(number),
                "token": self.testbed.endpoint(0).token,
                "aggregate": aggregate,
            },
        )
        self.stack.enter_context(process)
        process.await_ready()
        return process

    def count(self, name: str) -> int:
        """Return a counter of all workers together."""
        return sum(worker.counters[name] for worker in self.workers)

    def push_all(self, meanwhile: Callable[[], None] | None = None) -> list[bool]:
        """Push an update of each worker; return which came in sums.

        `meanwhile` is called when a member's update goes to the aggregator, if one does.
        """
        before = self.count("grouped_updates")
        futures = self._push()
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
        return self._await_commits(futures)

    def _push(self, num_workers: int = NUM_PUSHERS) -> list[Future[PushOutcome]]:
        """Push an update of each of the first workers; it counts in `total`."""
        self._seed += 1
        futures: list[Future[PushOutcome]] = []
        for number, worker in enumerate(self.workers[:num_workers]):
            update = update_of(self._seed, number, NUM_VALUES)
            if self._is_sparse:
                rng = np.random.default_rng((self._seed, number))
                rows = update.reshape(-1, BLOCK_VALUES)
                rows[rng.permutation(len(rows))[len(rows) // 2 :]] = 0.0
                blocks = np.flatnonzero(rows.any(axis=1))
                futures.append(worker.push_blocks(blocks, rows[blocks]))
            else:
                futures.append(worker.push(update))
            self.total += update
        self._num_updates += num_workers
        return futures

    def _await_commits(self, futures: list[Future[PushOutcome]]) -> list[bool]:
        """Wait until all are applied; return which came in sums."""
        outcomes = [future.result(LIMIT_S) for future in futures]
        assert all(outcome.is_committed for outcome in outcomes), outcomes
        return [outcome.parts[0].is_summed for outcome in outcomes]

    def sent(self, number: int) -> int:
        """Return how many bytes a worker's interface has sent."""
        return self.fabric.carried()[number][0]

    def push_and_kill(self, member: FabricProcess) -> bool:
        """Kill a member while its update is on its path to an aggregator, and others push.

        The first of five equal updates travels alone, and the last two of the other four may have
        a group: those of the worker before, and of the member, which is the last one by name.
        Return whether that was so; if not, it lives. Its update then counts once, and else never.
        """
        before = self.sent(MEMBER)
        futures = self._push(NUM_PUSHERS - 1)
        member.push(self._seed)
        wait_until(
            lambda: self.sent(MEMBER) - before > UPDATE_BYTES // 8,
            *("bytes of the member", LIMIT_S),
            interval_s=0.005,
        )
        member.freeze()
        is_halfway = self.sent(MEMBER) - before < UPDATE_BYTES // 2
        if is_halfway and any(group["is_open"] for group in self._groups_of_member()):
            member.kill()
        else:
            member.thaw()
        self._await_commits(futures)
        wait_until(lambda: not job_report(self.testbed)["open"], "ends of all transfers", LIMIT_S)
        is_killed = member.process.returncode is not None
        update = update_of(self._seed, MEMBER, NUM_VALUES)
        settle_update(self.workers[0], self.total, self._num_updates, update, is_killed=is_killed)
        if is_killed:
            assert self._groups_of_member()[-1]["missing"] == 1
            return True
        self.total += update
        self._num_updates += 1
        return False

    def _groups_of_member(self) -> list[dict[str, Any]]:
        groups = job_report(self.testbed)["groups"]
        return [group for group in groups if MEMBER in group["worker_ids"]]

    def check(self) -> Values:
        """Compare the model, and the number of its updates, with what was pushed."""
        got = self.workers[0].get().result(LIMIT_S)
        assert np.array_equal(got, self.total)
        assert self.workers[0].commits.tolist() == [self._num_updates]
        return got


@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
def test_groups_are_exact_also_without_their_aggregator_or_the_controller(
    testbed: Testbed, tmp_path: Path, is_sparse: bool
) -> None:
    with GroupTraining(testbed, tmp_path / "log", is_sparse=is_sparse) as training:
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


@pytest.mark.parametrize("rate", [SLOW_RATE])
def test_a_group_goes_on_when_a_member_is_killed(testbed: Testbed, tmp_path: Path) -> None:
    with GroupTraining(testbed, tmp_path / "log") as training:
        member = training.start_process(MEMBER)
        wait_until(lambda: training.push_and_kill(member), "a group that loses a member", LIMIT_S)
        training.check()
        wait_until(lambda: any(training.push_all()), "a group without it", LIMIT_S)
        training.check()
