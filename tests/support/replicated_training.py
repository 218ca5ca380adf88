# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A server and its replica as processes on a testbed's hosts, and workers in this process."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support.transfers import restart_controller
from frames_to import FramesTo
from scheme_fabric import Fabric
from switchfold.bmv2_topos import Testbed, Topology, single_switch
from switchfold.bmv2_topos.processes.processes import ManagedProcess
from switchfold.hostlib.credentials import Credentials
from switchfold.hostlib.parameter_server import ClientOptions, HotRowUse
from switchfold.hostlib.parameter_server.tables import DenseTensor, TableClient, TensorDefinition
from switchfold.hostlib.parameter_server.tables.dense import Values
from switchfold.hostlib.parameter_server.transfers import FabricWorker, TransferOptions
from time_bound import wait_until

LIMIT_S = 120.0
JOB = "train"


def replicated_topology(num_workers: int, rate: int, replica_rate: int) -> Topology:
    """Return workers, a server and its replica around a switch; rates in bit/s."""
    made = single_switch(num_workers + 2, rate_bits_per_s=rate)
    links = list(made.links)
    links[-1] = dataclasses.replace(links[-1], rate_bits_per_s=replica_rate)
    return dataclasses.replace(made, links=tuple(links))


@contextmanager
def replicated_testbed(made: Topology, folder: Path, **transfers: str) -> Generator[Testbed]:
    """Yield a testbed whose controller writes the timeline that `ReplicatedTraining` reads.

    `transfers`: further TOML values of its table [transfers].
    """
    log = folder / "transfers.jsonl"
    options = ("--transfer-log", str(log))
    with Testbed(made, name=f"replicas-{os.getpid()}", controller_options=options) as testbed:
        if transfers:
            restart_controller(testbed, {**transfers, "log": json.dumps(str(log))})
        yield testbed


class ReplicatedTraining:
    """A server and its replica on the last hosts, workers on the others; all by TLS."""

    def __init__(
        self,
        testbed: Testbed,
        folder: Path,
        div_max: float,
        *,
        num_values: int,
        log: Path | None = None,
    ) -> None:
        """`log`: the server keeps its log there, and `join_late` starts the replica."""
        self.testbed, self._div_max, self._num_values = testbed, div_max, num_values
        self.num_workers = len(testbed.topology.hosts) - 2
        self.server_place, self.replica_place = self.num_workers, self.num_workers + 1
        self.timeline = folder / "transfers.jsonl"
        self.fabric = Fabric(testbed)
        self._stack = contextlib.ExitStack()
        self.total = np.zeros(num_values, np.float32)
        """The sum of all updates that `push_all` has pushed and servers have applied."""
        self.processes: list[ManagedProcess] = []
        """The server, and its replica."""
        try:
            keeps = () if log is None else ("--log", str(log))
            self._server = self._serve(self.server_place, "--shard", "0", *keeps)
            if log is None:
                self._serve(self.replica_place, "--replica-of", "0")
            self.workers = [self._worker(number) for number in range(self.num_workers)]
        except BaseException:
            self._stack.close()
            raise

    def __enter__(self) -> ReplicatedTraining:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def join_late(self, log: Path, copy: Path) -> None:
        """Start a replica with a copy of its server's log."""
        self._serve(
            self.replica_place, "--replica-of", "0", "--log", str(copy), "--server-log", str(log)
        )

    def _serve(self, position: int, *options: str) -> tuple[str, int]:
        host = self.testbed.topology.hosts[position]
        process = self.testbed.start(
            f"ps-{host.name}",
            [
                *(sys.executable, "-m", "switchfold.hostlib.parameter_server"),
                *("--address", host.address, "--num-workers", str(self.num_workers), *options),
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
            tensor = DenseTensor(client, TensorDefinition(name="w", num_values=self._num_values))
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

    def update(self, seed: int, worker: int) -> Values:
        """Return an update of whole numbers from -9 to 9, whose sums are exact in any order."""
        drawn = np.random.default_rng((seed, worker)).integers(-9, 10, self._num_values)
        return drawn.astype(np.float32)

    def push_all(self, seed: int, *, may_drop: bool = False) -> None:
        """Push an update of each worker, and wait until both are applied, or may be dropped."""
        updates = [self.update(seed, number) for number in range(self.num_workers)]
        pairs = zip(self.workers, updates, strict=True)
        futures = [worker.push(update) for worker, update in pairs]
        for update, future in zip(updates, futures, strict=True):
            outcome = future.result(LIMIT_S)
            assert outcome.is_committed or may_drop, outcome
            if outcome.is_committed:
                self.total += update

    def await_replica(self) -> None:
        wait_until(lambda: self.events("replicated"), "no replica is in place", LIMIT_S)

    def signal_replica(self, number: signal.Signals) -> None:
        """Stop its process by SIGSTOP, or let it go on by SIGCONT."""
        for pid in self.processes[1].record.living():
            os.kill(pid, number)

    def ahead(self) -> float:
        """Return the bound on how far the server is ahead of its replica, as last noted."""
        return self.events("replicated")[-1]["distance"]

    def model(self) -> Values:
        return self.workers[0].get().result(LIMIT_S)
