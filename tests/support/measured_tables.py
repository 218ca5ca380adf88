# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Servers and workers of sparse tables that write a latency log, in one process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from loopback import LOOPBACK
from switchfold.hostlib.parameter_server import ClientOptions, ParameterServer, ServerOptions
from switchfold.hostlib.parameter_server.tables import SparseTable, TableClient, TableDefinition

WAIT_S = 60.0
Row = dict[str, Any]


class MeasuredTables:
    """`run` is the directory of the log; it is whole after the `with` block."""

    def __init__(
        self,
        run: Path,
        *,
        num_workers: int = 1,
        num_servers: int = 1,
        staleness: int | None = None,
        log: Path | None = None,
    ) -> None:
        self.run = run
        self.servers = [
            ParameterServer(
                ServerOptions(
                    num_workers=num_workers,
                    shard=shard,
                    latency_log=run,
                    log=None if log is None else log / str(shard),
                ),
                address=LOOPBACK,
            )
            for shard in range(num_servers)
        ]
        addresses = [(server.address, server.port) for server in self.servers]
        self.clients = [
            TableClient(addresses, ClientOptions(worker_id=worker_id, latency_log=run))
            for worker_id in range(num_workers)
        ]
        definition = TableDefinition(name="rows", width=2, staleness=staleness)
        self.tables: list[SparseTable] = [client.define(definition) for client in self.clients]

    def set_clocks(self, worker: Callable[[], int], server: Callable[[], int]) -> None:
        """Let the machines measure with these clocks from now on."""
        for client in self.clients:
            client._loop.run(lambda loop=client._loop: setattr(loop, "clock_ns", worker))
        for one in self.servers:
            one.loop.run(lambda loop=one.loop: setattr(loop, "clock_ns", server))

    def push(self, keys: list[int], worker_id: int = 0) -> None:
        self.tables[worker_id].push(*batch(keys)).result(WAIT_S)

    def pull(self, keys: list[int], worker_id: int = 0) -> None:
        self.tables[worker_id].pull(np.array(keys, np.int64)).result(WAIT_S)

    def close(self) -> None:
        for end in (*self.clients, *self.servers):
            end.close()

    def rows(self, kind: str) -> list[Row]:
        """The rows of a kind of files, those of each file in their order."""
        files = sorted(self.run.glob(f"{kind}-*.parquet"))
        return [row for file in files for row in pq.read_table(file).to_pylist()]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def batch(keys: list[int]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    return np.array(keys, np.int64), np.ones((len(keys), 2), np.float32)
