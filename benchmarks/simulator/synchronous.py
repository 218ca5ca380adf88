# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Synchronous trainings: in each iteration, every worker contributes to one step of the model."""

from __future__ import annotations

from functools import partial

from benchmarks.simulator.asynchronous import ComputeTimes, FluidRun
from benchmarks.simulator.scenario import Scenario
from benchmarks.simulator.timeline import TimelineKind


class SynchronousRun(FluidRun):
    """All workers compute, exchange their updates, and begin the next iteration together."""

    def __init__(self, scenario: Scenario, computing: ComputeTimes | None = None) -> None:
        super().__init__(scenario, computing)
        self.iteration = 0
        self._open = 0
        """Computations, updates or models of the iteration that are not done."""

    def start(self) -> None:
        waits_s = [
            self.computing.time_s(number, self.iteration)
            for number in range(self.scenario.num_workers)
        ]
        self._open = self.scenario.num_workers
        for worker in self.scenario.workers:
            for server in self.scenario.servers:
                self.note(TimelineKind.GET, worker, server)
                self.note(TimelineKind.GOT, worker, server)
        for worker, wait_s in zip(self.scenario.workers, waits_s, strict=True):
            if wait_s is not None:
                self.links.call_after(wait_s, partial(self._computed, worker))

    def computed(self, worker: str) -> None:
        """Let a worker's update travel, if it can travel before the others'."""

    def all_computed(self) -> None:
        """Let what needs every worker begin."""

    def begin_step(self, num_transfers: int) -> None:
        """Wait for so many calls of `transferred`."""
        self._open = num_transfers

    def transferred(self) -> bool:
        """Count a transfer's end; return whether it was the last one."""
        self._open -= 1
        return not self._open

    def commit_all(self) -> None:
        """Note that the step has every worker's update."""
        for server in self.scenario.servers:
            for worker in self.scenario.workers:
                self.note(TimelineKind.COMMIT, worker, server)

    def next_iteration(self) -> None:
        """Let all workers compute again."""
        self.iteration += 1
        self.start()

    def _computed(self, worker: str) -> None:
        for server in self.scenario.servers:
            self.note(TimelineKind.PUSH, worker, server)
        self.computed(worker)
        if self.transferred():
            self.all_computed()


class SynchronousParameterServer(SynchronousRun):
    """Updates go to the servers as they are computed; when all are there, models go back."""

    def __init__(self, scenario: Scenario, computing: ComputeTimes | None = None) -> None:
        super().__init__(scenario, computing)
        self._awaited = 0

    def start(self) -> None:
        self._awaited = self.scenario.num_workers * self.scenario.num_servers
        super().start()

    def computed(self, worker: str) -> None:
        number = self.scenario.workers.index(worker)
        for server in self.scenario.servers:
            self.links.start(
                self.route(worker, server),
                8 * self.scenario.shard_bytes,
                partial(self._arrive, worker, server),
                weight=self.stream_weights.weight(number, self.iteration),
            )

    def _arrive(self, worker: str, server: str) -> None:
        self.note(TimelineKind.SENT, worker, server)
        self._awaited -= 1
        if self._awaited:
            return
        self.commit_all()
        if not self.scenario.has_models:
            self.next_iteration()
            return
        self.begin_step(self.scenario.num_workers * self.scenario.num_servers)
        bits = 8 * self.scenario.shard_bytes
        for receiver in self.scenario.workers:
            for sender in self.scenario.servers:
                self.links.start(self.route(sender, receiver), bits, self._got)

    def _got(self) -> None:
        if self.transferred():
            self.next_iteration()


class RingAllreduce(SynchronousRun):
    """A ring of all workers: each sends 2 (n - 1) / n of the update to the next, at one rate.

    The pieces are taken to be so small that every link of the ring moves at the slowest one's rate.
    """

    def all_computed(self) -> None:
        workers = self.scenario.workers
        ring = zip(workers, (*workers[1:], workers[0]), strict=True)
        links = [link for sender, receiver in ring for link in self.route(sender, receiver)]
        bits = 8 * self.scenario.update_bytes * 2 * (len(workers) - 1) / len(workers)
        self.links.start(sorted(set(links)), bits, self._summed)

    def _summed(self) -> None:
        self.commit_all()
        self.next_iteration()


class SwitchAllreduce(SynchronousRun):
    """Switches add the updates of all workers in passing and send the sum to all: each link moves
    one update each way, at the slowest one's rate.
    """

    def all_computed(self) -> None:
        links = [f"{host}>" for host in self.scenario.workers]
        links += [f">{host}" for host in self.scenario.workers]
        if len(self.scenario.leaves) > 1:
            links += [f"{leaf}>" for leaf in self.scenario.leaves]
            links += [f">{leaf}" for leaf in self.scenario.leaves]
        self.links.start(links, 8 * self.scenario.update_bytes, self._summed)

    def _summed(self) -> None:
        self.commit_all()
        self.next_iteration()
