# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Servers and workers whose updates a fake scheduler plans, in one process."""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from fake_transfers import FakeTransfers, Policy
from switchfold.hostlib.parameter_server import HotRowUse
from switchfold.hostlib.parameter_server.tables import DenseTensor, TensorDefinition
from switchfold.hostlib.parameter_server.tables.dense import Values
from switchfold.hostlib.parameter_server.transfers import FabricWorker, TransferOptions
from table_cluster import TableCluster
from time_bound import wait_until

WAIT_S = 120.0
MODEL_WAIT_S = 0.1
"""Most tests stop the scheduler for the sake of updates, and must not wait for models then."""
JOB = "train"
VALUES = 3000
DEFINITION = TensorDefinition(name="w", num_values=VALUES, block_values=100)


def values(seed: int, count: int = VALUES) -> Values:
    """Return whole numbers, whose sums are exact in any order."""
    return np.random.default_rng(seed).integers(-9, 10, count).astype(np.float32)


def wait_briefly(fabric: FabricWorker) -> None:
    """Have a worker wait for 10 ms for each grant, as if the scheduler had said so."""
    requests = fabric._requests
    wait_until(lambda: requests._is_registered, "no registration")
    requests._grant_wait_s = 0.01


class TransferScene:
    """A scheduler, servers and workers; without a policy, nobody listens at the address."""

    def __init__(  # noqa: PLR0913 - what tests vary
        self,
        policy: Policy | None,
        num_workers: int = 2,
        num_servers: int = 1,
        folder: Path | None = None,
        *,
        definition: TensorDefinition = DEFINITION,
        are_servers_stations: bool = True,
        grant_wait_s: float = WAIT_S,
        model_wait_s: float | None = None,
        server: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        """`model_wait_s`: the policy answers for models, and servers wait so long for it; None:
        models are granted at once.
        """
        self.definition = definition
        self._model_wait_s = MODEL_WAIT_S if model_wait_s is None else model_wait_s
        self._stack = contextlib.ExitStack()
        try:
            self.fake = FakeTransfers(
                policy or _never, grant_wait_s=grant_wait_s, model_wait_s=self._model_wait_s
            )
            self._stack.callback(self.fake.stop)
            self.fake.grants_models = model_wait_s is None
            self.address = self.fake.address
            if policy is None:
                self.fake.stop()
            self._options = options
            self.cluster = self._stack.enter_context(
                TableCluster(
                    num_workers,
                    num_servers,
                    folder,
                    transfers=self._server_options() if are_servers_stations else None,
                    **server or {},
                )
            )
            if policy is not None and are_servers_stations:
                wait_until(self._are_servers_known, "no registration of a server")
        except BaseException:
            self._stack.close()
            raise

    def _are_servers_known(self) -> bool:
        services = [each.updates for each in self.cluster.servers]
        return all(each._is_registered or each.problem for each in services)

    def _server_options(self) -> TransferOptions:
        return self.options("hs", grant_wait_s=self._model_wait_s)

    def options(self, host: str, **changes: Any) -> TransferOptions:
        fields: dict[str, Any] = {
            "controller": self.address,
            "job": JOB,
            "host": host,
            "grant_wait_s": WAIT_S,
        }
        return TransferOptions(**{**fields, **self._options, **changes})

    def restart_scheduler(self, policy: Policy) -> FakeTransfers:
        """Start another scheduler at the same address."""
        self.fake = FakeTransfers(
            policy, self.address, grant_wait_s=WAIT_S, model_wait_s=self._model_wait_s
        )
        self._stack.callback(self.fake.stop)
        return self.fake

    def tensor(self, worker_id: int, addresses: Any = None, **client: Any) -> DenseTensor:
        client = {"use_hot_rows": HotRowUse.NEVER} | client
        made = self.cluster.client(worker_id, addresses, **client)
        return DenseTensor(made, self.definition)

    def worker(
        self, worker_id: int, tensor: DenseTensor | None = None, **changes: Any
    ) -> FabricWorker:
        tensor = tensor or self.tensor(worker_id)
        made = FabricWorker(tensor, self.options(f"h{worker_id}", **changes), most_open=16)
        self._stack.callback(made.close)
        return made

    def counter(self, name: str, shard: int = 0) -> int:
        return self.cluster.servers[shard].updates.counters[name]

    def await_counter(self, name: str, count: int = 1, shard: int = 0) -> None:
        wait_until(lambda: self.counter(name, shard) >= count, f"{count} {name}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()


def _never(*_: object) -> None:
    raise AssertionError("nobody asks this scheduler")
