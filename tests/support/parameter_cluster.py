# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Parameter servers and workers' clients in one process."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from loopback import LOOPBACK
from switchfold.hostlib.credentials import Credentials
from switchfold.hostlib.parameter_server import (
    ClientOptions,
    ParameterClient,
    ParameterServer,
    ServerOptions,
)

WAIT_S = 60.0
Floats = NDArray[np.float32]


class ParameterCluster:
    """`num_servers` 0: each worker holds a shard of its own. `credentials`: of the servers."""

    def __init__(
        self,
        num_workers: int,
        num_servers: int = 1,
        *,
        client: dict[str, Any] | None = None,
        credentials: Credentials | None = None,
        **server: Any,
    ) -> None:
        is_colocated = num_servers == 0
        self.servers = [
            ParameterServer(
                ServerOptions(num_workers=num_workers, shard=shard, **server),
                address=LOOPBACK,
                credentials=credentials,
            )
            for shard in range(num_servers or num_workers)
        ]
        self.addresses = [(server.address, server.port) for server in self.servers]
        self._client = client or {}
        self.clients = [
            self.client(w, self.servers[w] if is_colocated else None) for w in range(num_workers)
        ]

    def client(self, worker_id: int, local: ParameterServer | None = None) -> ParameterClient:
        options = ClientOptions(worker_id=worker_id, **self._client)
        return ParameterClient(self.addresses, options, local_server=local)

    def push_pull(self, key: str, arrays: list[Floats], iteration: int) -> list[Floats]:
        futures = [
            client.push_pull(key, array, iteration)
            for client, array in zip(self.clients, arrays, strict=True)
        ]
        return [future.result(WAIT_S) for future in futures]

    def server_counts(self, name: str) -> list[int]:
        return [server.counters[name] for server in self.servers]

    def node_floats(self) -> tuple[list[int], list[int]]:
        """Floats sent plus received by each worker, and by each server."""
        return (
            [end.counters["sent_floats"] + end.counters["received_floats"] for end in self.clients],
            [end.counters["sent_floats"] + end.counters["received_floats"] for end in self.servers],
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with contextlib.ExitStack() as stack:
            closes: list[Callable[[], None]] = [end.close for end in (*self.servers, *self.clients)]
            for close in closes:
                stack.callback(close)


def gradients(num_workers: int, num_values: int, seed: int = 0) -> list[Floats]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(num_values, np.float32) for _ in range(num_workers)]


def sum_in_order(arrays: list[Floats]) -> Floats:
    """What servers must answer: float32 sums in the order of worker ids."""
    total = arrays[0].copy()
    for array in arrays[1:]:
        total += array
    return total
