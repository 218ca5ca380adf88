# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Peer servers and host allreduces of several workers in one process."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from loopback import LOOPBACK
from switchfold.hostlib.control.view import Member
from switchfold.hostlib.credentials import Credentials
from switchfold.hostlib.errors import PeerError
from switchfold.hostlib.hosts import Algorithm, HostAllreduce, LinkCosts, Reduction
from switchfold.hostlib.peers import PeerServer
from switchfold.hostlib.slots.wire import Operation

JOB, GENERATION = 5, 1000


@dataclass(frozen=True)
class Always(LinkCosts):
    """Costs by which one algorithm always wins."""

    algorithm: Algorithm = Algorithm.RING

    def choose(self, num_members: int, num_values: int) -> Algorithm:
        return self.algorithm


RING, HALVING, DOUBLING = (Always(algorithm=algorithm) for algorithm in Algorithm)


class PeerGroup:
    """`num_members` workers with ids 0, 2, 4, ..., each with a server and a host allreduce."""

    def __init__(
        self,
        num_members: int,
        costs: LinkCosts | None = None,
        *,
        silence_s: float = 3.0,
        generation: int = GENERATION,
        credentials: Credentials | None = None,
    ) -> None:
        self.servers = [PeerServer(LOOPBACK, credentials=credentials) for _ in range(num_members)]
        for worker_id, server in zip(range(0, 2 * num_members, 2), self.servers, strict=True):
            server.enter_job(JOB, worker_id)
        self.members = [
            Member(worker_id=2 * i, peer_address=LOOPBACK, peer_port=server.port)
            for i, server in enumerate(self.servers)
        ]
        self.failures: list[PeerError | None] = [None] * num_members
        self.failed = [threading.Event() for _ in range(num_members)]
        self._costs, self._silence_s, self.generation = costs, silence_s, generation
        self.paths = [self.open_path(i) for i in range(num_members)]

    def open_path(self, position: int) -> HostAllreduce:
        def on_failure(error: PeerError) -> None:
            self.failures[position] = error
            self.failed[position].set()

        return HostAllreduce(
            self.servers[position],
            generation=self.generation,
            members=self.members,
            on_failure=on_failure,
            costs=self._costs or LinkCosts(),
            silence_s=self._silence_s,
        )

    def reduce(
        self,
        operation: Operation,
        inputs: Sequence[NDArray[np.int32]],
        timeout_s: float = 60.0,
    ) -> list[Reduction]:
        """Reduce copies of the inputs; return the members' reductions once all are done."""
        return self.wait(
            [self.submit(i, operation, own) for i, own in enumerate(inputs)], timeout_s
        )

    def submit(
        self, position: int, operation: Operation, own: NDArray[np.int32], tag: int = 0
    ) -> tuple[Reduction, threading.Event]:
        done = threading.Event()
        reduction = self.paths[position].reduce(
            operation, own.copy(), lambda _: done.set(), tag=tag
        )
        return reduction, done

    def wait(
        self, submitted: Sequence[tuple[Reduction, threading.Event]], timeout_s: float = 60.0
    ) -> list[Reduction]:
        for _, done in submitted:
            assert done.wait(timeout_s), f"no result; failures: {self.failures}"
        return [reduction for reduction, _ in submitted]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for path in self.paths:
            path.close()
        for server in self.servers:
            server.close()
