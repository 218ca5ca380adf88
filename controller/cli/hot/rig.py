# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A testbed for runs: workers and servers around one switch, whose sums are verified."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self, final

import numpy as np
from numpy.typing import NDArray

from ....bmv2_topos import Testbed, WorkerEndpoint, WorkerResult, single_switch
from ....bmv2_topos.errors import TestbedError
from ....bmv2_topos.processes.processes import ManagedProcess
from ....bmv2_topos.processes.tokens import job_environment
from ....bmv2_topos.processes.worker_runs import run_workers
from ..workloads.bag_classifier import Bag
from ..workloads.glosses import FOLDER, Glosses, load_glosses
from ..workloads.sparse_text import SparseSamples
from .errors import TableRunError
from .plan import Offload, TablePlan
from .server import ServerReading, port_of, read_rows, store_rows
from .steps import (
    expected_sums,
    hottest_keys,
    plain_table,
    steps_of,
    sums_table,
    weights_table,
    with_pulled,
    write_samples,
)
from .worker import WorkerTimes

Mode = Literal["veth", "udp"]
Variant = Literal["wide", "narrow"]
_READY_S: Final = 60.0
_TIMEOUT_S: Final = 600.0
_LOOPBACK: Final = "127.0.0.1"
_THREADS: Final = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@dataclass(frozen=True, kw_only=True)
class TableRun:
    """A run whose sums were right."""

    plan: TablePlan
    workers: list[WorkerTimes]
    servers: ServerReading
    """What all servers did during the measurement."""
    num_keys: int
    """Different keys of the whole run."""
    accuracy: float | None
    """Share of the held-out samples whose class was right, of a training."""


@final
class TableRig:
    """A testbed with hosts for workers and servers, for one run after another.

    In mode veth, the servers' connections cross the switch as ordinary traffic; in mode udp, they
    are on loopback.
    """

    def __init__(
        self,
        *,
        num_workers: int,
        num_servers: int,
        mode: Mode,
        variant: Variant = "wide",
        rate_bits_per_s: int | None = None,
        glosses: Path = FOLDER,
    ) -> None:
        """`rate_bits_per_s`: of each host's link; `glosses`: folder of the dictionary."""
        self._num_workers = num_workers
        self._num_servers = num_servers
        topology = single_switch(num_workers + num_servers, rate_bits_per_s=rate_bits_per_s)
        self._testbed = Testbed(topology, mode=mode, variant=variant)
        self._num_runs = 0
        self._environment: dict[str, str] = {}  # of the run's servers and workers
        self._glosses_folder = glosses
        self._glosses: Glosses | None = None

    def __enter__(self) -> Self:
        self._testbed.up()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._testbed.down()

    def run(self, plan: TablePlan) -> TableRun:
        """Do what a plan says, with processes of its own, and compare all sums with numpy's.

        Raises:
            ValueError: the plan is for another testbed or mode, or has larger batches than samples.
            TableRunError: a worker failed or did not end, with its output, or a sum is wrong.
            WorkloadDataError: the data of the workload is missing.
        """
        if (plan.num_workers, plan.num_servers) != (self._num_workers, self._num_servers):
            raise ValueError(
                f"a run of {plan.num_workers} workers and {plan.num_servers} servers on a testbed"
                f" for {self._num_workers} and {self._num_servers}"
            )
        if plan.offload is not Offload.NONE and self._testbed.mode == "udp":
            raise ValueError(f"offload {plan.offload} needs the hosts' own addresses: mode veth")
        self._num_runs += 1
        self._environment = {**_THREADS, **job_environment()}
        plan = self.with_samples(plan)
        next(steps_of(plan, plan.num_workers - 1))  # a plan without steps fails here
        folder = self._testbed.run_directory / f"run{self._num_runs}"
        folder.mkdir()
        plan = replace(
            plan,
            controller=self._testbed.controller_address,
            job=folder.name,
            server_credentials=str(self._testbed.server_credentials.folder),
        )
        plan.write(folder / "server.json")
        servers: list[ManagedProcess] = []
        try:
            sockets = [
                self._start_server(folder, shard, servers) for shard in range(plan.num_servers)
            ]
            return self._measure(plan, folder, sockets)
        except TestbedError as exc:
            raise TableRunError(str(exc)) from exc
        finally:
            for server in servers:
                server.stop()

    @property
    def num_samples(self) -> int:
        """Number of samples to train with. Raises WorkloadDataError."""
        return len(self._read_glosses().train)

    def _read_glosses(self) -> Glosses:
        if self._glosses is None:
            self._glosses = load_glosses(self._glosses_folder)
            write_samples(self._glosses, self._samples_file)
        return self._glosses

    @property
    def _samples_file(self) -> Path:
        return self._testbed.run_directory / "samples.npz"

    def with_samples(self, plan: TablePlan) -> TablePlan:
        """Give a plan that needs the glosses a file with them. Raises WorkloadDataError."""
        if not plan.needs_samples:
            return plan
        self._read_glosses()
        return replace(plan, samples=str(self._samples_file))

    def _start_server(self, folder: Path, shard: int, started: list[ManagedProcess]) -> Path:
        """Start a server on its host; return its socket."""
        endpoint = self._testbed.endpoint(self._num_workers + shard)
        path = folder / f"{shard}.sock"
        words = [str(folder / "server.json"), str(shard), self._address(endpoint), str(path)]
        started.append(
            self._testbed.start(
                f"{folder.name}-server{shard}",
                [sys.executable, "-m", f"{__package__}.server", *words, "{ready_fd}"],
                node=endpoint.host,
                environment={**endpoint.environment(folder.name), **self._environment},
                ready_timeout_s=_READY_S,
            )
        )
        return path

    def _address(self, endpoint: WorkerEndpoint) -> str:
        return _LOOPBACK if endpoint.mode == "udp" else endpoint.host.address

    def _measure(self, plan: TablePlan, folder: Path, sockets: list[Path]) -> TableRun:
        hosts = [self._testbed.endpoint(self._num_workers + shard) for shard in range(len(sockets))]
        ports = map(port_of, sockets)
        addresses = tuple(zip(map(self._address, hosts), ports, strict=True))
        plan = replace(plan, servers=addresses)
        plan.write(folder / "worker.json")
        records = [folder / f"worker{number}.npz" for number in range(plan.num_workers)]
        self._run_workers(folder, records, sockets)
        files = [folder / f"rows{shard}.npz" for shard in range(len(sockets))]
        for path, file in zip(sockets, files, strict=True):
            store_rows(path, file)
        keys, values = read_rows(files, sums_table(plan).name)
        if plan.has_plain_table:
            keys, values = _added(keys, values, *read_rows(files, plain_table(plan).name))
        workers = [WorkerTimes.read(record) for record in records]
        expected = expected_sums(plan, [worker.num_steps for worker in workers])
        expected = with_pulled(expected, hottest_keys(plan))
        check_sums(keys, values, expected)
        return TableRun(
            plan=plan,
            workers=workers,
            servers=ServerReading.read(records[0].with_suffix(".servers")),
            num_keys=keys.size,
            accuracy=self._accuracy(plan, files),
        )

    def _run_workers(self, folder: Path, records: list[Path], sockets: list[Path]) -> None:
        endpoints = [
            replace(self._testbed.endpoint(number), num_workers=len(records))
            for number in range(len(records))
        ]
        results = run_workers(
            lambda endpoint, name, words, variables: self._testbed.start(
                name, words, node=endpoint.host, environment=variables
            ),
            endpoints,
            lambda endpoint: [
                *(sys.executable, "-m", f"{__package__}.worker"),
                *map(str, (folder / "worker.json", records[endpoint.worker_id], *sockets)),
            ],
            job=folder.name,
            timeout_s=_TIMEOUT_S,
            environment=self._environment,
        )
        if failed := [result for result in results if result.exit_status != 0]:
            raise TableRunError("workers failed:\n" + "\n".join(map(_described, failed)))

    def _accuracy(self, plan: TablePlan, files: list[Path]) -> float | None:
        if not plan.is_training:
            return None
        keys, values = read_rows(files, weights_table(plan).name)
        return accuracy_of(self._read_glosses().held_out, keys, values)


def _added(
    keys: NDArray[np.int64],
    values: NDArray[np.float32],
    other_keys: NDArray[np.int64],
    other_values: NDArray[np.float32],
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the rising keys of two tables, and for each key the sum of its rows."""
    all_keys = np.union1d(keys, other_keys)
    sums = np.zeros((all_keys.size, values.shape[1]), np.float32)
    sums[np.searchsorted(all_keys, keys)] += values
    sums[np.searchsorted(all_keys, other_keys)] += other_values
    return all_keys, sums


def check_sums(
    keys: NDArray[np.int64],
    values: NDArray[np.float32],
    expected_sums_of_keys: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> None:
    """Compare the table of sums with what it must hold, both by rising keys.

    Raises TableRunError that names the first wrong sum.
    """
    expected_keys, expected = expected_sums_of_keys
    if int(np.abs(expected).max()) >= 1 << 24:
        raise TableRunError("sums of 2^24 or more, which float32 cannot hold; take fewer steps")
    if not np.array_equal(keys, expected_keys):
        raise TableRunError(f"{keys.size} keys on the servers, {expected_keys.size} were pushed")
    wrong = np.flatnonzero((values != expected).any(axis=1))
    if wrong.size:
        first = wrong[0]
        raise TableRunError(
            f"{wrong.size} of {keys.size} sums are wrong; of key {keys[first]}: {values[first]}"
            f" instead of {expected[first]}"
        )


def accuracy_of(
    samples: SparseSamples, keys: NDArray[np.int64], weights: NDArray[np.float32]
) -> float:
    """Return the share of samples whose class is right, given the weights of rising keys."""
    bag = Bag(samples)
    places = np.minimum(np.searchsorted(keys, bag.keys), keys.size - 1)
    is_known = keys[places] == bag.keys
    rows = np.where(is_known[:, np.newaxis], weights[places], np.float32(0))
    return bag.num_right(rows) / len(samples)


def _described(result: WorkerResult) -> str:
    return f"worker {result.worker_id} (status {result.exit_status}): {result.output[-800:]}"
