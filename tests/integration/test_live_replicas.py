# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A testbed's server has a replica, is killed, and workers go on with the replica."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import os
import re
import shutil
import sys
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frames_to import FramesTo
from scheme_fabric import Fabric
from switchfold.bmv2_topos import Testbed, Topology, single_switch, state
from switchfold.bmv2_topos.processes.processes import ManagedProcess
from switchfold.hostlib.credentials import Credentials
from switchfold.hostlib.parameter_server import ClientOptions, HotRowUse
from switchfold.hostlib.parameter_server.tables import DenseTensor, TableClient, TensorDefinition
from switchfold.hostlib.parameter_server.tables.dense import Values
from switchfold.hostlib.parameter_server.transfers import FabricWorker, TransferOptions
from time_bound import wait_until

NUM_WORKERS = 2
SERVER, REPLICA = NUM_WORKERS, NUM_WORKERS + 1
NUM_VALUES = 1 << 16
UPDATE_BYTES = 4 * NUM_VALUES
RATE = 100_000_000
LIMIT_S = 120.0
JOB = "train"

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
pytestmark = [pytest.mark.root, needs_root]


def topology(replica_rate: int = RATE) -> Topology:
    made = single_switch(NUM_WORKERS + 2, rate_bits_per_s=RATE)
    links = list(made.links)
    links[REPLICA] = dataclasses.replace(links[REPLICA], rate_bits_per_s=replica_rate)
    return dataclasses.replace(made, links=tuple(links))


@contextmanager
def running_testbed(made: Topology, folder: Path) -> Generator[Testbed]:
    name = f"test-replicas-{os.getpid()}"
    log = ("--transfer-log", str(folder / "transfers.jsonl"))
    with Testbed(made, name=name, controller_options=log) as testbed:
        yield testbed


class ReplicatedTraining:
    """A server and its replica on the last hosts, workers on the others; all by TLS."""

    def __init__(
        self, testbed: Testbed, folder: Path, div_max: float, *, log: Path | None = None
    ) -> None:
        """`log`: the server keeps its log there, and `join_late` starts the replica."""
        self.testbed, self._div_max = testbed, div_max
        self.timeline = folder / "transfers.jsonl"
        self.fabric = Fabric(testbed)
        self._stack = contextlib.ExitStack()
        self.total = np.zeros(NUM_VALUES, np.float32)
        """The sum of all updates that were pushed."""
        self.processes: list[ManagedProcess] = []
        """The server, and its replica."""
        try:
            keeps = () if log is None else ("--log", str(log))
            self._server = self._serve(SERVER, "--shard", "0", *keeps)
            if log is None:
                self._serve(REPLICA, "--replica-of", "0")
            self.workers = [self._worker(number) for number in range(NUM_WORKERS)]
        except BaseException:
            self._stack.close()
            raise

    def __enter__(self) -> ReplicatedTraining:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def join_late(self, log: Path, copy: Path) -> None:
        """Start a replica with a copy of its server's log."""
        self._serve(REPLICA, "--replica-of", "0", "--log", str(copy), "--server-log", str(log))

    def _serve(self, position: int, *options: str) -> tuple[str, int]:
        host = self.testbed.topology.hosts[position]
        process = self.testbed.start(
            f"ps-{host.name}",
            [
                *(sys.executable, "-m", "switchfold.hostlib.parameter_server"),
                *("--address", host.address, "--num-workers", str(NUM_WORKERS), *options),
                *("--controller", self.testbed.controller_address, "--transfer-job", JOB),
                *("--transfer-host", host.name, "--div-max", str(self._div_max)),
                *("--credentials", str(self.testbed.server_credentials.folder)),
            ],
            node=host,
            environment={"SWITCHFOLD_TOKEN": self.testbed.endpoint(0).token},
        )
        self.processes.append(process)

        def said() -> re.Match[str] | None:
            return re.search(r"listening on ([\d.]+):(\d+)", process.log.read_text())

        wait_until(said, process.log.read_text, LIMIT_S)
        found = said()
        assert found is not None
        return found[1], int(found[2])

    def _worker(self, number: int) -> FabricWorker:
        endpoint = self.testbed.endpoint(number)
        assert endpoint.credentials is not None
        credentials = Credentials(endpoint.credentials)

        def join() -> FabricWorker:
            options = ClientOptions(
                worker_id=number,
                source=self.fabric.addresses[number],
                credentials=credentials,
                token=endpoint.token,
                use_hot_rows=HotRowUse.NEVER,
            )
            client = TableClient([self._server], options)
            self._stack.callback(client.close)
            tensor = DenseTensor(client, TensorDefinition(name="w", num_values=NUM_VALUES))
            transfers = TransferOptions(
                controller=self.testbed.controller_address,
                job=JOB,
                host=endpoint.host.name,
                div_max=self._div_max,
                token=endpoint.token,
                credentials=str(credentials.folder),
            )
            return FabricWorker(tensor, transfers)

        made = self.fabric.at(number, join)
        self._stack.callback(made.close)
        return made

    def frames_from(self, position: int, to: int) -> FramesTo:
        """Count what a host sends to another one from now on."""
        interface = self.testbed.topology.hosts[position].interface
        made = self.fabric.at(position, lambda: FramesTo(interface, self.fabric.addresses[to]))
        self._stack.callback(made.close)
        return made

    def events(self, kind: str) -> list[dict[str, Any]]:
        lines = self.timeline.read_text(encoding="utf-8").splitlines()
        return [event for event in map(json.loads, lines) if event["event"] == kind]

    def push_all(self, seed: int, *, may_drop: bool = False) -> None:
        """Push an update of each worker, and wait until both are applied, or may be dropped."""
        updates = [
            np.random.default_rng((seed, number)).integers(-9, 10, NUM_VALUES).astype(np.float32)
            for number in range(NUM_WORKERS)
        ]
        pairs = zip(self.workers, updates, strict=True)
        futures = [worker.push(update) for worker, update in pairs]
        for update, future in zip(updates, futures, strict=True):
            outcome = future.result(LIMIT_S)
            assert outcome.is_committed or may_drop, outcome
            if outcome.is_committed:
                self.total += update

    def await_replica(self) -> None:
        wait_until(lambda: self.events("replicated"), "no replica is in place", LIMIT_S)

    def model(self) -> Values:
        return self.workers[0].get().result(LIMIT_S)


def test_workers_go_on_with_the_replica_of_a_killed_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server has sent its replica nothing; nothing is lost with a Div_max of 0."""
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path)
    with (
        running_testbed(topology(), tmp_path) as testbed,
        ReplicatedTraining(testbed, tmp_path, 0.0) as training,
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


def test_a_replica_joins_while_workers_push_and_takes_its_servers_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its copy of the log lacks comes from the log: the server sends it nothing."""
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path)
    log, copy = tmp_path / "log", tmp_path / "copy"
    with (
        running_testbed(topology(), tmp_path) as testbed,
        ReplicatedTraining(testbed, tmp_path, 0.0, log=log) as training,
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
        running_testbed(topology(RATE // 50), tmp_path) as testbed,
        ReplicatedTraining(testbed, tmp_path, div_max) as training,
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
