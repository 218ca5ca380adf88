# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A controller, a server with a replica, and workers in one process; models by version."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from fake_station import transfer_controller
from loopback import LOOPBACK
from switchfold.controller.server import ControllerServer
from switchfold.controller.transfers.job_transfers import JobTransfers
from switchfold.hostlib.parameter_server import (
    ClientOptions,
    HotRowUse,
    ParameterServer,
    ServerOptions,
)
from switchfold.hostlib.parameter_server.rows import GradientSum, Optimiser
from switchfold.hostlib.parameter_server.tables import DenseTensor, TableClient, TensorDefinition
from switchfold.hostlib.parameter_server.tables.dense import Values
from switchfold.hostlib.parameter_server.transfers import (
    CommittedUpdate,
    FabricWorker,
    TransferOptions,
)
from time_bound import wait_until

WAIT_S = 60.0
VALUES = 1000
JOB = "train"
HOLD = {"lease_s": 10.0}
"""For so long, and promote_after_s, a server holds its commits when its controller ends."""


class ControllerThread:
    """A controller whose hosts h1, h2, ... have so many Mbit/s."""

    def __init__(
        self,
        folder: Path,
        rates_mbit: Sequence[float],
        transfers: dict[str, Any],
        **options: Any,
    ) -> None:
        """`transfers` are the options of live transfers, `options` others of the controller."""
        self._folder, self._rates = folder, rates_mbit
        self._options = {"transfers": transfers, **options}
        self._is_up = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self.server: ControllerServer | None = None
        self._thread = threading.Thread(target=self._run, name="test-controller")
        self._thread.start()
        assert self._is_up.wait(WAIT_S)
        assert self.server is not None
        self.address = self.server.address

    def _run(self) -> None:
        async def serve() -> None:
            made = transfer_controller(self._folder, self._rates, **self._options)
            async with made as self.server:
                self._is_up.set()
                await self._stop.wait()

        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(serve())
        finally:
            self._is_up.set()  # whoever waits for it sees that there is none

    def job(self) -> JobTransfers | None:
        """Return the job, None while it has no stations."""
        assert self.server is not None
        return self.server.transfers.jobs.get(JOB)

    def close(self) -> None:
        """Stop it; a second call does nothing."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(WAIT_S)


class ReplicaScene:
    """The server is on h1, its replica on h2, and workers on h3, h4, ..."""

    def __init__(  # noqa: PLR0913 - what tests vary
        self,
        folder: Path,
        num_workers: int = 2,
        *,
        div_max: float | None = None,
        optimiser: Optimiser | None = None,
        replica_mbit: int = 100,
        has_replica: bool = True,
        num_late: int = 0,
        log: Path | None = None,
        **transfers: Any,
    ) -> None:
        """The last `num_late` workers are not started here."""
        self.timeline = folder / "transfers.jsonl"
        self._num_workers, self._div_max = max(1, num_workers), div_max
        self.definition = TensorDefinition(
            name="w", num_values=VALUES, optimiser=optimiser or GradientSum(), block_values=100
        )
        self.models: dict[str, dict[int, Values]] = {"server": {}, "replica": {}}
        """By version, the model of the server and of the replica."""
        self._stack = contextlib.ExitStack()
        try:
            options = {"log": self.timeline, "promote_after_s": 0.3, **HOLD, **transfers}
            rates = (100, replica_mbit, *([100] * self._num_workers))
            self.controller = ControllerThread(folder, rates, options)
            self._stack.callback(self.controller.close)
            self.server = self.serve("server", "h1", log=log)
            self.replica = self.serve("replica", "h2") if has_replica else None
            self.workers = [self.work(number) for number in range(num_workers - num_late)]
        except BaseException:
            self._stack.close()
            raise

    def options(self, host: str) -> TransferOptions:
        return TransferOptions(
            controller=self.controller.address, job=JOB, host=host, div_max=self._div_max
        )

    def serve(
        self, name: str, host: str, *, log: Path | None = None, server_log: Path | None = None
    ) -> ParameterServer:
        """Start the server, or a replica; its models are kept by version.

        `server_log`: the replica reads its server's log there.
        """
        options = ServerOptions(
            num_workers=self._num_workers,
            transfers=self.options(host),
            log=log,
            is_replica=name == "replica",
            server_log=server_log,
        )
        made = ParameterServer(options, address=LOOPBACK)
        self._stack.callback(made.close)
        models = self.models[name]

        def note(update: CommittedUpdate) -> None:
            models[update.version] = self.model_of(made)

        made.updates.on_update = note
        return made

    def model_of(self, server: ParameterServer) -> Values:
        """Return a server's model, called in its thread or while it rests."""
        table = server.tables.state.tables[self.definition.table().number]
        keys = np.arange(self.definition.num_blocks, dtype=np.int64)
        return table.rows.pull(keys).values.reshape(-1)[:VALUES]

    def work(self, number: int, first: Values | None = None) -> FabricWorker:
        """Start a worker, which gives the tensor first values if there are some."""
        options = ClientOptions(worker_id=number, use_hot_rows=HotRowUse.NEVER)
        server = (self.server.address, self.server.port)
        client = TableClient([server], options)
        self._stack.callback(client.close)
        tensor = DenseTensor(client, self.definition)
        if first is not None:
            tensor.start(first).result(WAIT_S)
        worker = FabricWorker(tensor, self.options(f"h{number + 3}"))
        self._stack.callback(worker.close)
        return worker

    def await_replica(self) -> None:
        def is_in_place() -> object:
            job = self.controller.job()
            return job and job.replicas.in_place(0)

        wait_until(is_in_place, "no replica is in place")

    def await_none(self) -> None:
        """Wait until a replica that was in place has left."""
        job = self.controller.job()
        assert job is not None
        wait_until(lambda: job.replicas.station_of(0) is None, "there is a replica")

    def await_drained(self) -> None:
        """Wait until the replica has applied all that the server has, and `models` has both."""
        assert self.replica is not None
        ours, theirs = self.replica.tables.state, self.server.tables.state

        def is_drained() -> bool:
            number = theirs.num_commits
            are_noted = all(number in models for models in self.models.values())
            return ours.num_commits == number and are_noted

        wait_until(
            is_drained,
            lambda: f"the replica has {ours.num_commits} updates, the server {theirs.num_commits}",
        )

    def events(self, kind: str) -> list[dict[str, Any]]:
        """Return what the timeline has of a kind."""
        lines = self.timeline.read_text(encoding="utf-8").splitlines()
        return [event for event in map(json.loads, lines) if event["event"] == kind]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()


def update_of(seed: int) -> Values:
    """Return whole numbers, whose sums are exact in any order."""
    return np.random.default_rng(seed).integers(-9, 10, VALUES).astype(np.float32)
