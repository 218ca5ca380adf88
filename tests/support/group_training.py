# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Workers on a testbed that push updates as granted, and the process of their server."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fabric_process import FabricProcess, update_of
from scheme_fabric import Fabric
from switchfold.bmv2_topos import Testbed
from switchfold.bmv2_topos.network.namespaces import namespace_path
from switchfold.hostlib import Session
from switchfold.hostlib.config import join_from_environment
from switchfold.hostlib.credentials import Credentials
from switchfold.hostlib.options import SessionOptions
from switchfold.hostlib.parameter_server import ClientOptions, HotRowUse
from switchfold.hostlib.parameter_server.tables import DenseTensor, TableClient, TensorDefinition
from switchfold.hostlib.parameter_server.transfers import (
    FabricWorker,
    PushOutcome,
    TransferOptions,
)

LIMIT_S = 120.0


@dataclass(frozen=True, kw_only=True)
class TrainingJob:
    """What trainings on one testbed differ in."""

    name: str = "train"
    port: int = 7000
    """Of the server."""
    is_switched: bool = True
    """Whether workers have sessions, and the server leases rows of the switch."""
    has_log: bool = True
    """Whether the server can be killed and come back."""


class GroupTraining:
    """A server's process on the last host, and workers on the first ones."""

    def __init__(
        self,
        testbed: Testbed,
        folder: Path,
        num_values: int,
        *,
        num_idle: int = 0,
        job: TrainingJob = TrainingJob(),
        has_process: bool = False,
    ) -> None:
        """`testbed` has a host for each worker, `num_idle` others, then one for the server.

        With `has_process`, the last worker has a process of its own, and is not in `workers`.
        """
        self._testbed, self._folder, self._fabric = testbed, folder, Fabric(testbed)
        self._num_values, self.job = num_values, job
        self._place = len(testbed.topology.hosts) - 1
        """The server's host."""
        self._num_workers = self._place - num_idle
        self.num_updates = 0
        """How many were pushed."""
        self._stack = contextlib.ExitStack()
        self.total = np.zeros(num_values, np.float32)
        """The sum of all updates that were pushed."""
        try:
            self._serve()
            here = range(self._num_workers - has_process)
            self.process = self.start_process(here.stop) if has_process else None
            if job.is_switched:
                with ThreadPoolExecutor(self._num_workers) as pool:
                    for session in list(pool.map(self._join, here)):
                        self._stack.callback(session.close)
            self.workers = [self._worker(number) for number in here]
            if self.process is not None:
                self.process.await_ready()
        except BaseException:
            self._stack.close()
            raise

    def __enter__(self) -> GroupTraining:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def server_pid(self) -> int:
        """Process id of the server."""
        return self._server.pid

    @property
    def server_address(self) -> tuple[str, int]:
        """Where workers reach the server."""
        return self._fabric.addresses[self._place], self.job.port

    def _serve(self) -> None:
        self._server = self._start_server()
        self._stack.callback(lambda: _kill(self._server))

    def _start_server(self) -> subprocess.Popen[str]:
        host = self._testbed.topology.hosts[self._place]
        namespace = self._testbed.namespace_of(host)
        assert namespace is not None
        endpoint = self._testbed.endpoint(self._place)
        options = {
            "--address": host.address,
            "--port": str(self.job.port),
            "--num-workers": str(self._place),
            "--shard": "0",
            "--controller": self._testbed.controller_address,
            "--transfer-job": self.job.name,
            "--transfer-host": host.name,
            "--credentials": str(self._testbed.server_credentials.folder),
        }
        if self.job.is_switched:
            options["--group-job"] = self.job.name
        if self.job.has_log:
            options["--log"] = str(self._folder / "log")
        words = [word for option in options.items() for word in option]
        process = subprocess.Popen(
            [
                *("nsenter", f"--net={namespace_path(namespace)}", sys.executable),
                *("-m", "switchfold.controller", "ps", "run", *words),
            ],
            env={**os.environ, **endpoint.environment(self.job.name)},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("listening on "), line
        return process

    def kill_server(self) -> None:
        """Kill the server, and start another one with its log."""
        _kill(self._server)
        self._server = self._start_server()

    def _variables(self, number: int) -> dict[str, str]:
        variables = self._testbed.endpoint(number).environment(self.job.name)
        return {**variables, "SWITCHFOLD_NUM_WORKERS": str(self._num_workers)}

    def _join(self, number: int) -> Session:
        variables = self._variables(number)
        options = SessionOptions(join_timeout_s=LIMIT_S, timeout_s=LIMIT_S, lease_s=60.0)
        return self._fabric.at(
            number, lambda: join_from_environment(options, variables={**os.environ, **variables})
        )

    def _worker(self, number: int) -> FabricWorker:
        folder = self._testbed.endpoint(number).credentials
        assert folder is not None
        credentials = Credentials(folder)

        def make() -> FabricWorker:
            options = ClientOptions(
                worker_id=number,
                source=self._fabric.addresses[number],
                token=self._testbed.endpoint(number).token,
                credentials=credentials,
                use_hot_rows=HotRowUse.NEVER,
                reconnect_s=LIMIT_S,
            )
            client = TableClient([self.server_address], options)
            self._stack.callback(client.close)
            tensor = DenseTensor(client, TensorDefinition(name="w", num_values=self._num_values))
            return FabricWorker(tensor, self._transfers(number))

        made = self._fabric.at(number, make)
        self._stack.callback(made.close)
        return made

    def _transfers(self, number: int) -> TransferOptions:
        endpoint = self._testbed.endpoint(number)
        return TransferOptions(
            controller=self._testbed.controller_address,
            job=self.job.name,
            host=endpoint.host.name,
            token=endpoint.token,
            credentials=str(endpoint.credentials),
        )

    def start_process(self, number: int, *, aggregate: bool = False) -> FabricProcess:
        """Start a worker, or an aggregator, in a process of its own on a host, by number."""
        host, endpoint = self._testbed.topology.hosts[number], self._testbed.endpoint(number)
        namespace = self._testbed.namespace_of(host)
        assert namespace is not None
        has_session = self.job.is_switched and not aggregate
        process = FabricProcess(
            namespace,
            worker_id=number,
            source=host.address,
            servers=[self.server_address],
            num_values=self._num_values,
            credentials=str(endpoint.credentials),
            client={"token": endpoint.token},
            transfers={
                "controller": self._testbed.controller_address,
                "job": self.job.name,
                "host": host.name,
                "token": endpoint.token,
                "aggregate": aggregate,
            },
            **({"session": self._variables(number)} if has_session else {}),
        )
        return self._stack.enter_context(process)

    def updates(self, seed: int) -> list[NDArray[np.float32]]:
        """Return an update for each worker, of whole numbers, and note that they are pushed."""
        found = [update_of(seed, n, self._num_values) for n in range(len(self.workers))]
        for update in found:
            self.total += update
        self.num_updates += len(found)
        return found

    def push(self, seed: int) -> list[Future[PushOutcome]]:
        """Push an update of each worker."""
        updates = self.updates(seed)
        return [worker.push(update) for worker, update in zip(self.workers, updates, strict=True)]

    def push_all(self, seed: int) -> list[bool]:
        """Push an update of each worker; return which came in a sum of the switch."""
        outcomes = [future.result(LIMIT_S) for future in self.push(seed)]
        assert all(outcome.is_committed for outcome in outcomes), outcomes
        return [outcome.parts[0].is_summed for outcome in outcomes]

    def sent(self, number: int) -> int:
        """Return how many bytes a worker's interface has sent."""
        return self._fabric.carried()[number][0]

    def received(self) -> int:
        """Return how many bytes the server's interface has received."""
        return self._fabric.carried()[self._place][1]

    def check(self) -> None:
        """Check that the model has each update once."""
        assert np.array_equal(self.workers[0].get().result(LIMIT_S), self.total)


def _kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate(timeout=LIMIT_S)
