# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A testbed's server has a replica, is killed, and workers go on with the replica."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import threading
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path

import numpy as np
import pytest

from replicated_training import (
    LIMIT_S,
    ReplicatedTraining,
    replicated_testbed,
    replicated_topology,
)
from switchfold.bmv2_topos import Testbed, Topology, state
from switchfold.hostlib.parameter_server.tables.dense import Values
from time_bound import wait_until

NUM_WORKERS = 2
SERVER, REPLICA = NUM_WORKERS, NUM_WORKERS + 1
NUM_VALUES = 1 << 16
UPDATE_BYTES = 4 * NUM_VALUES
RATE = 100_000_000

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
pytestmark = [pytest.mark.root, needs_root]


def topology(replica_rate: int = RATE) -> Topology:
    return replicated_topology(NUM_WORKERS, RATE, replica_rate)


def train(
    testbed: Testbed, folder: Path, div_max: float, log: Path | None = None
) -> ReplicatedTraining:
    return ReplicatedTraining(testbed, folder, div_max, num_values=NUM_VALUES, log=log)


def test_workers_go_on_with_the_replica_of_a_killed_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server has sent its replica nothing; nothing is lost with a Div_max of 0."""
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path)
    with (
        replicated_testbed(topology(), tmp_path) as testbed,
        train(testbed, tmp_path, 0.0) as training,
    ):
        training.await_replica()
        from_server = training.frames_from(SERVER, REPLICA)
        from_worker = training.frames_from(0, REPLICA)
        at_replica = training.fabric.carried()[REPLICA][1]
        for seed in range(5):
            training.push_all(seed)
        wait_until(
            lambda: (
                training.fabric.carried()[REPLICA][1] - at_replica >= 5 * NUM_WORKERS * UPDATE_BYTES
            ),
            "the replica has not got all updates",
            LIMIT_S,
        )
        assert np.array_equal(training.model(), training.total)
        assert from_worker.num_bytes > 0, "the counter counts"
        assert from_server.num_bytes == 0

        training.processes[0].kill()
        for seed in range(5, 10):
            for worker in training.workers:
                worker.get().result(LIMIT_S)
            training.push_all(seed)
        assert np.array_equal(training.model(), training.total)
        (promoted,) = training.events("promoted")
        assert (promoted["lost"], promoted["distance"]) == (0, 0)
        assert [worker.counters["moved_servers"] for worker in training.workers] == [1, 1]


def lost_of(updates: list[Values], applied: Values) -> list[Values]:
    """Return which of the updates lack in the sum of the others, each of which counts once."""
    for count in range(len(updates) + 1):
        for lost in itertools.combinations(updates, count):
            if np.array_equal(sum(updates, -sum(lost, np.zeros_like(applied))), applied):
                return list(lost)
    raise AssertionError("the model is not the sum of some of the updates")


def test_a_kill_loses_at_most_div_max_and_training_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The replica stands still while the server goes ahead."""
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path)
    div_max = 3.5 * 9 * NUM_VALUES**0.5  # of three updates at the least
    with (
        # The replica stands still for as long as the server takes to go ahead.
        replicated_testbed(topology(), tmp_path, lease_s=str(LIMIT_S)) as testbed,
        train(testbed, tmp_path, div_max) as training,
    ):
        training.await_replica()
        training.push_all(0)
        wait_until(
            lambda: training.events("replicated")[-1]["replica_version"] == NUM_WORKERS,
            *("the replica has all updates", LIMIT_S),
        )
        training.signal_replica(signal.SIGSTOP)
        pushed = [
            (update, worker.push(update))
            for seed in range(1, 5)  # as many as a worker may have open: none waits for an outcome
            for number, worker in enumerate(training.workers)
            for update in [training.update(seed, number)]
        ]
        first_done, _ = wait([future for _, future in pushed], LIMIT_S, FIRST_COMPLETED)
        assert all(future.result().is_committed for future in first_done)
        assert not all(future.done() for _, future in pushed), "updates are under way"
        wait_until(
            lambda: len(training.events("committed")) > NUM_WORKERS,
            *("the controller hears of a commit that the replica lacks", LIMIT_S),
        )

        training.processes[0].kill()
        wait_until(lambda: training.events("promoted"), "the replica is promoted", LIMIT_S)
        training.signal_replica(signal.SIGCONT)
        committed = [update for update, future in pushed if future.result(LIMIT_S).is_committed]
        model = training.model()
        lost = lost_of(committed, model - training.total)
        (promoted,) = training.events("promoted")
        # The replica may have applied later what came to it while it stood still.
        assert np.linalg.norm(sum(lost, np.zeros(NUM_VALUES, np.float32))) <= div_max
        assert promoted["lost"] > 0
        assert 0 < promoted["distance"] <= div_max

        before = training.total.copy()
        for seed in range(5, 8):
            for worker in training.workers:
                worker.get().result(LIMIT_S)
            training.push_all(seed)
        assert np.array_equal(training.model(), model + (training.total - before))


def test_a_replica_joins_while_workers_push_and_takes_its_servers_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its copy of the log lacks comes from the log: the server sends it nothing."""
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path)
    log, copy = tmp_path / "log", tmp_path / "copy"
    with (
        replicated_testbed(topology(), tmp_path) as testbed,
        train(testbed, tmp_path, 0.0, log=log) as training,
        ThreadPoolExecutor(1) as executor,
    ):
        from_server = training.frames_from(SERVER, REPLICA)
        training.push_all(0)
        shutil.copytree(log, copy)
        training.push_all(1)
        has_joined = threading.Event()

        def push_on() -> int:
            seed = 2
            while not has_joined.is_set():
                # Without a grant, one that comes when the replica does is refused.
                training.push_all(seed, may_drop=True)
                seed += 1
            return seed

        pushed = executor.submit(push_on)
        try:
            training.join_late(log, copy)
            training.await_replica()
        finally:
            has_joined.set()
        seed = pushed.result(LIMIT_S)
        training.push_all(seed)
        assert from_server.num_bytes == 0
        training.processes[0].kill()
        for later in range(seed + 1, seed + 4):
            for worker in training.workers:
                worker.get().result(LIMIT_S)
            training.push_all(later)
        assert np.array_equal(training.model(), training.total)
        (promoted,) = training.events("promoted")
        assert (promoted["lost"], promoted["distance"]) == (0, 0)


def test_commits_wait_for_a_replica_behind_a_narrow_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path)
    div_max = 2.5 * 9 * NUM_VALUES**0.5  # of two updates at the least
    with (
        # An update takes the link a second, longer than a busy machine takes for a push.
        replicated_testbed(topology(RATE // 50), tmp_path) as testbed,
        train(testbed, tmp_path, div_max) as training,
    ):
        training.await_replica()
        seeds = itertools.count()

        def has_waited() -> bool:
            training.push_all(next(seeds))
            return bool(waited_for_replica(training))

        wait_until(has_waited, "a commit that waits for the replica", LIMIT_S)
        assert np.array_equal(training.model(), training.total)
        distances = [event["distance"] for event in training.events("replicated")]
        assert 0 < max(distances) <= div_max


def waited_for_replica(training: ReplicatedTraining) -> list[int]:
    """Return places that were applied when the replica had got something, not when it was there."""
    lines = training.timeline.read_text(encoding="utf-8").splitlines()
    found: list[int] = []
    before = ""
    for event in map(json.loads, lines):
        if event["event"] == "committed" and before not in ("delivered", "committed", "withdrawn"):
            found.append(event["sequence"])
        before = event["event"]
    return found
