# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Scheduled training on a testbed, in one process: its server on the last host, all by TLS."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any, Self

import numpy as np

from scheme_fabric import Fabric
from switchfold.bmv2_topos import Testbed
from switchfold.hostlib.credentials import Credentials
from switchfold.hostlib.parameter_server import (
    ClientOptions,
    HotRowUse,
    ParameterServer,
    ServerOptions,
)
from switchfold.hostlib.parameter_server.tables import DenseTensor, TableClient, TensorDefinition
from switchfold.hostlib.parameter_server.transfers import FabricWorker, TransferOptions

JOB = "train"


class TestbedTraining:
    """A parameter server, and workers on the first hosts; tests add what they do."""

    __test__ = False

    def __init__(
        self,
        testbed: Testbed,
        num_workers: int,
        num_values: int,
        log: Path | None = None,
        **of_workers: Any,
    ) -> None:
        """`of_workers`: TransferOptions of workers. There may be idle hosts before the last one."""
        self.testbed, self.fabric = testbed, Fabric(testbed)
        self.num_values = num_values
        self.stack = contextlib.ExitStack()
        self.total = np.zeros(num_values, np.float32)
        """The sum of all updates that were pushed."""
        self._log, self._of_workers = log, of_workers
        try:
            last = len(testbed.topology.hosts) - 1
            self.server = self.stack.enter_context(self.fabric.at(last, self._serve))
            self.workers = [self._worker(number) for number in range(num_workers)]
        except BaseException:
            self.stack.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    def host(self, number: int) -> str:
        """Return the name of a host."""
        return self.testbed.topology.hosts[number].name

    def folder(self, number: int) -> Path:
        """Return the folder of a worker's certificate."""
        folder = self.testbed.endpoint(number).credentials
        assert folder is not None
        return folder

    def _options(self, number: int, folder: Path, **more: Any) -> TransferOptions:
        return TransferOptions(
            controller=self.testbed.controller_address,
            job=JOB,
            host=self.host(number),
            token=self.testbed.endpoint(0).token,
            credentials=str(folder),
            **more,
        )

    def _serve(self) -> ParameterServer:
        credentials, last = self.testbed.server_credentials, len(self.testbed.topology.hosts) - 1
        transfers = self._options(last, credentials.folder)
        options = ServerOptions(num_workers=last, log=self._log, transfers=transfers)
        address = self.fabric.addresses[last]
        return ParameterServer(options, address=address, credentials=credentials)

    def _worker(self, number: int) -> FabricWorker:
        folder = self.folder(number)

        def join() -> FabricWorker:
            options = ClientOptions(
                worker_id=number,
                source=self.fabric.addresses[number],
                credentials=Credentials(folder),
                use_hot_rows=HotRowUse.NEVER,
            )
            client = TableClient([(self.server.address, self.server.port)], options)
            self.stack.callback(client.close)
            tensor = DenseTensor(client, TensorDefinition(name="w", num_values=self.num_values))
            return FabricWorker(tensor, self._options(number, folder, **self._of_workers))

        made = self.fabric.at(number, join)
        self.stack.callback(made.close)
        return made
