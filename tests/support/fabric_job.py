# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A parameter server and workers on a testbed's hosts, whose updates its controller plans."""

from __future__ import annotations

import contextlib
import io
import json
from types import TracebackType
from typing import Any, Self

from scheme_fabric import Fabric
from switchfold.bmv2_topos import Testbed
from switchfold.controller.__main__ import run as run_command
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
LIMIT_S = 120.0


def job_report(testbed: Testbed) -> dict[str, Any]:
    """Return what `switchfold schedule show --json` shows of the job."""
    out, err = io.StringIO(), io.StringIO()
    arguments = ["schedule", "show", JOB, "--json"]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run_command([*arguments, "--controller", testbed.controller_address])
    assert code == 0, err.getvalue()
    return json.loads(out.getvalue())


class FabricJob:
    """Workers on the first hosts and the server on the last one, in this process, all by TLS."""

    def __init__(self, testbed: Testbed, definition: TensorDefinition, **options: Any) -> None:
        """`options`: of TransferOptions."""
        self.testbed = testbed
        self.num_workers = len(testbed.topology.hosts) - 1
        self._definition, self._transfers = definition, options
        self._fabric = Fabric(testbed)
        self._stack = contextlib.ExitStack()
        try:
            place = self.num_workers
            self.server = self._stack.enter_context(self._fabric.at(place, self._serve))
            self.workers = [
                self._stack.enter_context(
                    self._fabric.at(number, lambda number=number: self._join(number))
                )
                for number in range(self.num_workers)
            ]
        except BaseException:
            self._stack.close()
            raise

    def report(self) -> dict[str, Any]:
        """See `job_report`."""
        return job_report(self.testbed)

    def _options(self, number: int, credentials: Credentials) -> TransferOptions:
        return TransferOptions(
            controller=self.testbed.controller_address,
            job=JOB,
            host=self.testbed.topology.hosts[number].name,
            token=self.testbed.endpoint(0).token,
            credentials=str(credentials.folder),
            **self._transfers,
        )

    def _serve(self) -> ParameterServer:
        credentials = self.testbed.server_credentials
        return ParameterServer(
            ServerOptions(
                num_workers=self.num_workers,
                transfers=self._options(self.num_workers, credentials),
            ),
            address=self._fabric.addresses[self.num_workers],
            credentials=credentials,
        )

    def _join(self, number: int) -> FabricWorker:
        folder = self.testbed.endpoint(number).credentials
        assert folder is not None
        credentials = Credentials(folder)
        client = TableClient(
            [(self.server.address, self.server.port)],
            ClientOptions(
                worker_id=number,
                source=self._fabric.addresses[number],
                credentials=credentials,
                use_hot_rows=HotRowUse.NEVER,
            ),
        )
        self._stack.callback(client.close)
        tensor = DenseTensor(client, self._definition)
        return FabricWorker(tensor, self._options(number, credentials))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()
