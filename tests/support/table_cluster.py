# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Parameter servers with sparse tables, and workers' clients, in one process."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from loopback import LOOPBACK
from switchfold.hostlib.credentials import Credentials
from switchfold.hostlib.parameter_server import (
    ClientOptions,
    HotRowUse,
    ParameterServer,
    ServerOptions,
)
from switchfold.hostlib.parameter_server.tables import TableClient

WAIT_S = 120.0
Keys = NDArray[np.int64]
Floats = NDArray[np.float32]
Address = tuple[str, int]


class TableCluster:
    """Servers with a log in `folder` each, or without one; clients close with the cluster."""

    def __init__(
        self,
        num_workers: int,
        num_servers: int = 1,
        folder: Path | None = None,
        credentials: Credentials | None = None,
        **server: Any,
    ) -> None:
        self._num_workers, self._folder, self._options = num_workers, folder, server
        self._credentials = credentials
        self._stack = contextlib.ExitStack()
        self.servers = [self._start(shard, 0) for shard in range(num_servers)]
        self.addresses: list[Address] = [(server.address, server.port) for server in self.servers]

    def _start(self, shard: int, port: int) -> ParameterServer:
        options = ServerOptions(
            num_workers=self._num_workers,
            shard=shard,
            log=None if self._folder is None else self._folder / f"log{shard}",
            **self._options,
        )
        server = ParameterServer(
            options, address=LOOPBACK, port=port, credentials=self._credentials
        )
        self._stack.callback(server.close)
        return server

    def restart(self, shard: int) -> None:
        """Close a server, and start another one in its place, with its log and port."""
        self.servers[shard].close()
        self.servers[shard] = self._start(shard, self.addresses[shard][1])

    def client(
        self, worker_id: int, addresses: Sequence[Address] | None = None, **options: Any
    ) -> TableClient:
        client = open_client(addresses or self.addresses, worker_id, **options)
        self._stack.callback(client.close)
        return client

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()


def open_client(addresses: Sequence[Address], worker_id: int, **options: Any) -> TableClient:
    """Make a client, which uses the servers' hot rows whether that is faster or not.

    It waits for a server as long as tests do: a restart takes more than the default limit if the
    machine is busy.
    """
    limits = {"reconnect_s": WAIT_S, "timeout_s": WAIT_S}
    chosen = {"use_hot_rows": HotRowUse.ALWAYS} | limits | options
    return TableClient(addresses, ClientOptions(worker_id=worker_id, **chosen))


def keys_of(*keys: int) -> Keys:
    return np.array(keys, np.int64)


def floats_of(*rows: Sequence[float]) -> Floats:
    return np.array(rows, np.float32)


class DenseSums:
    """What a table of sums must hold: integers by key, added in Python's numbers."""

    def __init__(self, num_keys: int, width: int, seed: int) -> None:
        self.keys = np.random.default_rng(seed).integers(-(1 << 63), 1 << 63, num_keys)
        self.sums = np.zeros((num_keys, width), np.int64)
        self.updates = np.zeros(num_keys, np.int64)

    def draw(self, rng: np.random.Generator, count: int) -> tuple[NDArray[np.int64], Floats]:
        """Return places of keys, which may repeat, and whole numbers as gradients."""
        places = rng.integers(0, len(self.keys), count)
        gradients = rng.integers(-9, 10, (count, self.sums.shape[1])).astype(np.float32)
        return places, gradients

    def add(self, places: NDArray[np.int64], gradients: Floats) -> None:
        np.add.at(self.sums, places, gradients.astype(np.int64))
        self.updates[np.unique(places)] += 1
