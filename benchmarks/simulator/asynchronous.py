# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Workers of an asynchronous training: get the model, compute, push the update, and again.

A worker goes on once all of its update's shards are applied or dropped, so its next model has them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from benchmarks.simulator.fluid import FluidNetwork
from benchmarks.simulator.scenario import Scenario
from benchmarks.simulator.timeline import TimelineEvent, TimelineKind


class ComputeTimes(Protocol):
    """Computing times by worker and iteration; None: the worker has ended."""

    def time_s(self, worker: int, iteration: int) -> float | None: ...


class FluidRun(ABC):
    """One contender on one scenario: its links with their changing rates, and its timeline."""

    def __init__(self, scenario: Scenario, computing: ComputeTimes | None = None) -> None:
        self.scenario = scenario
        self.computing = computing or scenario.compute_trace()
        self.links = FluidNetwork(scenario.capacities(0))
        self.stream_weights = scenario.stream_weights()
        self.events: list[TimelineEvent] = []
        self.num_commits = 0
        if scenario.link_trace.changes:
            self.links.call_at(scenario.link_trace.period_s, partial(self._change_rates, 1))

    def route(self, sender: str, receiver: str) -> tuple[str, ...]:
        """Return the links between two hosts."""
        found = self.scenario.route(sender, receiver)
        assert found is not None, "hosts reach each other"
        return found

    def note(self, kind: TimelineKind, worker: str, server: str) -> None:
        """Add an event of the present moment."""
        event = TimelineEvent(
            time_s=self.links.now_s,
            event=kind,
            worker=worker,
            server=server,
            bytes=self.scenario.shard_bytes,
        )
        self.events.append(event)
        self.num_commits += kind is TimelineKind.COMMIT

    @abstractmethod
    def start(self) -> None:
        """Let all workers begin."""

    def on_rates(self, period: int) -> None:  # noqa: B027 - a hook
        """React to new rates of links; plain contenders know nothing of them."""

    def _change_rates(self, period: int) -> None:
        self.links.set_capacities(self.scenario.capacities(period))
        self.on_rates(period)
        next_s = (period + 1) * self.scenario.link_trace.period_s
        self.links.call_at(next_s, partial(self._change_rates, period + 1))


@dataclass(kw_only=True)
class IterationProgress:
    """Where a worker is in its iterations."""

    number: int
    iteration: int = 0
    versions: dict[str, int] = field(default_factory=dict[str, int])
    """By server, the version of the model that the worker has, or is getting."""
    unsettled: set[str] = field(default_factory=set[str])
    """Servers from which a model is on its way, or which have not decided on the update."""


class AsynchronousRun(FluidRun):
    """What all asynchronous contenders share; they differ in how updates travel."""

    def __init__(self, scenario: Scenario, computing: ComputeTimes | None = None) -> None:
        super().__init__(scenario, computing)
        self.versions = dict.fromkeys(scenario.servers, 0)
        """By server, updates that it has applied."""
        self.progress: Mapping[str, IterationProgress] = {
            worker: IterationProgress(number=number)
            for number, worker in enumerate(scenario.workers)
        }

    def start(self) -> None:
        for worker, start_s in zip(self.progress, self.scenario.starts_s(), strict=True):
            if start_s:
                self.links.call_at(start_s, partial(self._get, worker))
            else:
                self._get(worker)

    @abstractmethod
    def push(self, worker: str, server: str) -> None:
        """Bring a worker's update to a server; `commit` or `drop` follows."""

    def commit(self, worker: str, server: str) -> None:
        """Apply an update."""
        self.versions[server] += 1
        self.note(TimelineKind.COMMIT, worker, server)
        self.settle(worker, server)

    def drop(self, worker: str, server: str) -> None:
        """Give an update up."""
        self.note(TimelineKind.DROP, worker, server)
        self.settle(worker, server)

    def settle(self, worker: str, server: str) -> None:
        """Let a worker know what became of an update; with the last one, it goes on."""
        progress = self.progress[worker]
        progress.unsettled.remove(server)
        if not progress.unsettled:
            progress.iteration += 1
            self._get(worker)

    def _get(self, worker: str) -> None:
        progress = self.progress[worker]
        progress.unsettled = set(self.scenario.servers)
        for server in self.scenario.servers:
            self.get(worker, server)

    def get(self, worker: str, server: str) -> None:
        """Bring a server's model to a worker: `fix_version`, then `got`."""
        self.fix_version(worker, server)
        if not self.scenario.has_models:
            self.got(worker, server)
            return
        bits = 8 * self.scenario.shard_bytes
        self.links.start(self.route(server, worker), bits, partial(self.got, worker, server))

    def fix_version(self, worker: str, server: str) -> None:
        """Note that a server begins to send its model."""
        self.progress[worker].versions[server] = self.versions[server]
        self.note(TimelineKind.GET, worker, server)

    def got(self, worker: str, server: str) -> None:
        """Note that a model is at its worker, which computes once it has all of them."""
        self.note(TimelineKind.GOT, worker, server)
        progress = self.progress[worker]
        progress.unsettled.remove(server)
        if not progress.unsettled:
            wait_s = self.computing.time_s(progress.number, progress.iteration)
            if wait_s is not None:
                self.links.call_after(wait_s, partial(self._push_all, worker))

    def _push_all(self, worker: str) -> None:
        self.progress[worker].unsettled = set(self.scenario.servers)
        for server in self.scenario.servers:
            self.note(TimelineKind.PUSH, worker, server)
            self.push(worker, server)


class FairParameterServer(AsynchronousRun):
    """Plain asynchronous parameter servers: TCP flows share links; arrival is application."""

    def get(self, worker: str, server: str) -> None:
        self._after_wait(partial(super().get, worker, server))

    def settle(self, worker: str, server: str) -> None:
        self._after_wait(partial(super().settle, worker, server))

    def _after_wait(self, function: Callable[[], None]) -> None:
        """Let a message wait in the queues."""
        if self.scenario.message_wait_s:
            self.links.call_after(self.scenario.message_wait_s, function)
        else:
            function()

    def push(self, worker: str, server: str) -> None:
        progress = self.progress[worker]
        self.links.start(
            self.route(worker, server),
            8 * self.scenario.shard_bytes,
            partial(self.arrive, worker, server),
            weight=self.stream_weights.weight(progress.number, progress.iteration),
        )

    def arrive(self, worker: str, server: str) -> None:
        """Note that an update is at its server."""
        self.note(TimelineKind.SENT, worker, server)
        self.commit(worker, server)


class ChainReplication(FairParameterServer):
    """As before; each update goes on from its server to a replica before it counts as applied."""

    def arrive(self, worker: str, server: str) -> None:
        self.note(TimelineKind.SENT, worker, server)
        self.links.start(
            self.route(server, self.scenario.replicas[server]),
            8 * self.scenario.shard_bytes,
            partial(self.commit, worker, server),
        )
