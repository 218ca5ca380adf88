# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A parameter server and workers whose updates the reference switch adds up, in one process."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from unittest import mock

import numpy as np

from group_rows import GroupRowLink
from group_world import sum_in_integers
from loopback import LOOPBACK
from row_switch import RowSwitch
from scene_scheduler import SceneScheduler
from switchfold.hostlib.parameter_server import (
    ClientOptions,
    HotRowUse,
    ParameterServer,
    ServerOptions,
)
from switchfold.hostlib.parameter_server.switch_groups.options import SwitchGroupOptions
from switchfold.hostlib.parameter_server.tables import DenseTensor, TableClient, TensorDefinition
from switchfold.hostlib.parameter_server.tables.dense import Values
from switchfold.hostlib.parameter_server.transfers import (
    FabricWorker,
    PushOutcome,
    TransferOptions,
    fabric_worker,
    update_station,
)
from time_bound import wait_until

WAIT_S = 60.0
VALUES = 3000
DEFINITION = TensorDefinition(name="w", num_values=VALUES, block_values=100)


def update_of(seed: int, count: int = VALUES) -> Values:
    """Return whole numbers, whose sums are exact in any order."""
    return np.random.default_rng(seed).integers(-9, 10, count).astype(np.float32)


class GroupScene:
    """A group is granted when all workers wait, or by `gather`."""

    def __init__(
        self,
        num_workers: int = 3,
        folder: Path | None = None,
        *,
        definition: TensorDefinition = DEFINITION,
        give_up_s: float = 60.0,
        udp_port: int = 0,
        **server: Any,
    ) -> None:
        self.definition, self.num_workers = definition, num_workers
        self._stack = contextlib.ExitStack()
        self._port = 0
        self.scheduler = SceneScheduler()
        self._options = ServerOptions(
            num_workers=num_workers,
            log=None if folder is None else folder / "log",
            switch_groups=SwitchGroupOptions(
                controller="none",
                job="job",
                udp_port=udp_port,
                give_up_s=give_up_s,
            ),
            **({"transfers": bounded(None)} | server),
        )
        try:
            for module in (fabric_worker, update_station):
                patched = mock.patch.object(module, "TransferStation", self.scheduler.station)
                self._stack.enter_context(patched)
            self.switch = self._stack.enter_context(RowSwitch(num_workers))
            self.link = GroupRowLink(self.switch)
            self.server = self._start()
            self._stack.callback(self._close_server)
            self.workers = [self.worker(number) for number in range(num_workers)]
        except BaseException:
            self._stack.close()
            raise
        self.total = np.zeros(definition.num_values, np.float64)

    def _start(self) -> ParameterServer:
        server = ParameterServer(
            self._options,
            address=LOOPBACK,
            port=self._port,
            insecure=True,
            row_link=self.link.make,
        )
        self._port = server.port
        return server

    def _close_server(self) -> None:
        self.server.close()

    def restart(self) -> None:
        """End the server, and start another one in its place."""
        self.server.close()
        self.server = self._start()

    def worker(self, number: int) -> FabricWorker:
        client = TableClient(
            [(LOOPBACK, self._port)],
            ClientOptions(worker_id=number, use_hot_rows=HotRowUse.NEVER, insecure=True),
        )
        self._stack.callback(client.close)
        options = TransferOptions(
            controller=f"{LOOPBACK}:1", job="job", host=f"h{number}", grant_wait_s=600.0
        )
        made = FabricWorker(DenseTensor(client, self.definition), options, most_open=16)
        self._stack.callback(made.close)
        return made

    def wait_for_groups(self, workers: Sequence[int] | None = None) -> None:
        """Wait until workers know the rows."""
        known = set(range(self.num_workers) if workers is None else workers)
        links = [self.workers[number]._links[0] for number in known]

        def are_there() -> bool:
            return self.scheduler.members >= known and all(
                link.has_switch_groups and link._groups._lease.generation == self.switch.generation
                for link in links
            )

        wait_until(are_there, "no groups")

    def gather(self, count: int) -> None:
        """Wait until so many workers ask, and have a group of them granted."""
        self.scheduler.gather(count)

    def be_patient(self) -> None:
        """Give no group up for silence any more."""
        self.server.groups.groups._give_up_s = 60.0

    def push(self, seeds: dict[int, int]) -> dict[int, Future[PushOutcome]]:
        """Have workers push updates of these seeds."""
        futures = {}
        for number, seed in seeds.items():
            update = update_of(seed, self.definition.num_values)
            self.total += update
            futures[number] = self.workers[number].push(update)
        return futures

    def outcomes(self, futures: dict[int, Future[PushOutcome]]) -> list[bool]:
        """Wait for pushes that are applied; return which came in sums, by worker."""
        found = [futures[number].result(WAIT_S) for number in sorted(futures)]
        assert all(outcome.is_committed for outcome in found)
        return [outcome.parts[0].is_summed for outcome in found]

    def count(self, name: str) -> int:
        return self.server.groups.groups.counters[name]

    def await_count(self, name: str, count: int = 1) -> None:
        wait_until(lambda: self.count(name) >= count, f"{count} {name}")

    def check(self, worker: int = 0) -> None:
        """Check that all pushes are in the model, each once."""
        model = self.workers[worker].get().result(WAIT_S)
        assert np.array_equal(model, self.total.astype(np.float32))
        assert self.server.tables.state.num_commits == self.num_pushes

    @property
    def num_pushes(self) -> int:
        return sum(worker.counters["pushes"] for worker in self.workers)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()


def bounded(tau_max: int | None) -> TransferOptions:
    """Return a server's options of scheduled updates."""
    return TransferOptions(controller=f"{LOOPBACK}:1", job="job", host="hs", tau_max=tau_max)


def integer_sum(updates: Sequence[Values]) -> Values:
    """Return what a group of these updates adds to a model of zeros."""
    return sum_in_integers(updates)
