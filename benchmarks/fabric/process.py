# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One process of the rig, on a host of its own: a worker, the parameter server's, or its replica's.

It does what the rig asks for on a socket, and answers each request with a line of JSON. The last
rank is the replica, and the one before it the server.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np

from benchmarks.fabric.chain import ChainHead
from benchmarks.fabric.run_plan import RunPlan
from benchmarks.fabric.trainers import TIMEOUT_S, FabricTrainer, make_trainer
from switchfold.hostlib.parameter_server import ParameterServer, ServerOptions
from switchfold.hostlib.parameter_server.transfers import CommittedUpdate

Verb = Callable[[Mapping[str, Any]], dict[str, Any]]


class ServerProcess:
    """A parameter server for each run, and what happened at it."""

    def __init__(self, *, is_tail: bool = False) -> None:
        """`is_tail`: of the server at the end of a chain, whose only worker is the other one."""
        self._is_tail = is_tail
        self._stack = ExitStack()
        self._commits: list[tuple[float, CommittedUpdate]] = []
        self._reads: list[tuple[float, int]] = []
        self._server: ParameterServer | None = None
        self._chain: ChainHead | None = None

    @property
    def verbs(self) -> dict[str, Verb]:
        """What the rig may ask for; all else concerns others."""
        verbs: dict[str, Verb] = {"open": self.open, "close": self.close}
        if not self._is_tail:
            verbs |= {"chain": self.chain, "start": self.start, "leave": self.leave}
        return verbs

    def open(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Serve a run; return the port. Not all runs have a server, and few servers a replica."""
        plan = RunPlan.of(request)
        if not (plan.is_chained if self._is_tail else plan.is_served):
            return {"port": 0}
        self._commits, self._reads = [], []
        transfers = plan.transfers(plan.server_credentials, plan.num_workers)
        options = ServerOptions(
            num_workers=1 if self._is_tail else plan.num_workers,
            transfers=transfers if plan.is_scheduled else None,
            switch_groups=plan.switch_groups(plan.server_credentials),
        )
        address = os.environ["SWITCHFOLD_ADDRESS"]
        server = self._stack.enter_context(ParameterServer(options, address=address, insecure=True))
        server.updates.on_update = self._note_commit
        server.updates.on_request = self._note_read
        self._server = server
        return {"port": server.port}

    def chain(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Connect the head of a chain to its tail; no worker has joined yet."""
        plan, server = RunPlan.of(request), self._server
        assert server is not None, "the rig lets it serve first"
        self._chain = ChainHead(
            server,
            (plan.addresses[-1], request["port"]),
            plan.tensor(is_mean=False),
            plan.transfers(os.environ["SWITCHFOLD_CREDENTIALS"], plan.num_workers),
            source=plan.server_address,
            timeout_s=TIMEOUT_S,
        )
        return {}

    def start(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Give the tail the first model; a worker gives it to the head."""
        if self._chain is not None:
            self._chain.start(RunPlan.of(request).task.make(0).start())
        return {}

    def leave(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Write the tail's model."""
        if self._chain is not None:
            np.save(RunPlan.of(request).replica_file, self._chain.tail_model())
        return {}

    def close(self, _: Mapping[str, Any]) -> dict[str, Any]:
        """End the run's server; return its commits, its reads and its counters."""
        server, self._server = self._server, None
        chain, self._chain = self._chain, None
        if server is None:
            return {"commits": [], "reads": [], "counters": {}}
        if chain is not None:
            chain.close()
        self._stack.close()
        return {
            "commits": [
                {"time_s": time_s, **committed._asdict()} for time_s, committed in self._commits
            ],
            "reads": self._reads,
            "counters": dict(server.updates.counters + (chain.counters if chain else Counter())),
        }

    def _note_commit(self, committed: CommittedUpdate) -> None:
        self._commits.append((time.monotonic(), committed))

    def _note_read(self, worker: int, _table: int) -> None:
        self._reads.append((time.monotonic(), worker))


class WorkerProcess:
    """One worker, with a trainer for each run."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._trainer: FabricTrainer | None = None

    @property
    def verbs(self) -> dict[str, Verb]:
        """What the rig may ask for; all else concerns the server."""
        return {"join": self.join, "start": self.start, "train": self.train, "leave": self.leave}

    def join(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Make the run's task and connections."""
        self._trainer = make_trainer(RunPlan.of(request), self._number, request["port"])
        return {}

    def start(self, _: Mapping[str, Any]) -> dict[str, Any]:
        """Connect to the others, and give the server the first model."""
        self._now.start()
        return {}

    def train(self, _: Mapping[str, Any]) -> dict[str, Any]:
        """Train until the target is reached, or time is over; return all iterations."""
        return self._now.train()

    def leave(self, _: Mapping[str, Any]) -> dict[str, Any]:
        """Write what this worker has sent, and the final model; close connections."""
        trainer, self._trainer = self._now, None
        return trainer.leave()

    @property
    def _now(self) -> FabricTrainer:
        assert self._trainer is not None, "the rig lets it join first"
        return self._trainer


def serve(connection: socket.socket, verbs: Mapping[str, Verb]) -> None:
    """Do what the rig asks for until it closes the connection."""
    with connection.makefile("rw", encoding="utf-8") as lines:
        for line in lines:
            request = json.loads(line)
            verb = verbs.get(request["verb"])
            lines.write(json.dumps(verb(request) if verb is not None else {}) + "\n")
            lines.flush()


def main() -> None:
    """Be one process. An error ends it, is told to the rig, and is in its log."""
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(sys.argv[1])
        connection.sendall(json.dumps({"rank": rank}).encode() + b"\n")
        is_worker = rank < ranks - 2
        made = WorkerProcess(rank) if is_worker else ServerProcess(is_tail=rank == ranks - 1)
        try:
            serve(connection, made.verbs)
        except Exception as error:
            said = {"error": f"{type(error).__name__}: {error}"}
            with contextlib.suppress(OSError):  # the rig may have gone first
                connection.sendall(json.dumps(said).encode() + b"\n")
            raise


if __name__ == "__main__":
    main()
