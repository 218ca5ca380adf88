# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What is simulated: cluster, sizes and settings; and the network that all contenders run on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from benchmarks.simulator.traces import (
    ComputeSetting,
    ComputeTrace,
    LinkSetting,
    LinkTrace,
    StreamWeights,
    drawn_starts,
)
from switchfold.controller.scheduler.grouping import MOST_MEMBERS
from switchfold.controller.scheduler.network import Links, TransferNetwork

STREAM_SPREAD = 0.6
"""Chosen by the first run of tcp_check.py, and checked by others."""


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One cluster with its seeded traces."""

    num_workers: int
    seed: int
    num_servers: int = 1
    """Shards of the model: every update is split evenly among them."""
    update_bytes: int = 12_500_000
    """Bytes of an update, and of a model."""
    link_bits_per_s: int = 100_000_000
    """Nominal rate of a worker's link in each direction."""
    server_link_bits_per_s: int = 100_000_000
    """Of a server, a replica, and of a host that adds."""
    compute_s: float = 0.5
    """Nominal computing time of an iteration."""
    links: LinkSetting = LinkSetting.EVEN
    computing: ComputeSetting = ComputeSetting.EVEN
    has_models: bool = True
    """Whether models travel to the workers; else a worker has the newest one at once."""
    stream_spread: float = STREAM_SPREAD
    """Standard deviation of the logarithm of the weights of TCP streams to a server."""
    stream_seed: int | None = None
    """Of these weights, and of when workers begin; None: `seed`."""
    message_wait_s: float = 0.0
    """How long a request for a model, and the answer to an update, wait in queues behind streams of
    TCP. Granted transfers have no such queues."""
    start_spread_s: float = 0.0
    """Asynchronous workers begin at moments drawn from so many seconds, by `stream_seed`."""
    control_rtt_s: float = 0.001
    """Round trip between a host and the scheduler."""
    decision_s: float = 0.0005
    """Time that the scheduler takes for each decision, in simulated time."""

    @cached_property
    def workers(self) -> tuple[str, ...]:
        """Hosts of the workers."""
        return tuple(f"w{number}" for number in range(self.num_workers))

    @cached_property
    def servers(self) -> tuple[str, ...]:
        """Hosts of the servers."""
        return tuple(f"server{number}" for number in range(self.num_servers))

    @cached_property
    def replicas(self) -> Mapping[str, str]:
        """By server, the host of its replica (for chain replication)."""
        return {server: f"replica{number}" for number, server in enumerate(self.servers)}

    @cached_property
    def adders(self) -> tuple[str, ...]:
        """Idle hosts that can add updates: one for eight workers."""
        return tuple(f"adder{number}" for number in range(max(1, self.num_workers // 8)))

    @cached_property
    def leaves(self) -> Mapping[str, frozenset[str]]:
        """By leaf switch, its workers, at most 32. One leaf is the only switch."""
        return {
            f"leaf{number}": frozenset(self.workers[at : at + MOST_MEMBERS])
            for number, at in enumerate(range(0, self.num_workers, MOST_MEMBERS))
        }

    @property
    def shard_bytes(self) -> int:
        """Bytes of an update for one server."""
        return math.ceil(self.update_bytes / self.num_servers)

    @cached_property
    def link_trace(self) -> LinkTrace:
        """Rates of the hosts' links."""
        hosts = (*self.workers, *self.servers, *self.replicas.values(), *self.adders)
        return LinkTrace(setting=self.links, seed=self.seed, hosts=hosts, workers=self.workers)

    def compute_trace(self) -> ComputeTrace:
        """Return the computing times."""
        return ComputeTrace(self.computing, self.seed, self.num_workers, self.compute_s)

    def stream_weights(self) -> StreamWeights:
        """Return the weights of TCP streams to a server."""
        return StreamWeights(self.stream_spread, self._stream_seed, self.num_workers)

    def starts_s(self) -> tuple[float, ...]:
        """Return when each worker begins."""
        return drawn_starts(self.start_spread_s, self._stream_seed, self.num_workers)

    @property
    def _stream_seed(self) -> int:
        return self.seed if self.stream_seed is None else self.stream_seed

    def capacities(self, period: int) -> dict[str, int]:
        """Return the rates of all links in a period of the trace, by name.

        Leaves have links to one core switch that carry what all their workers can send.
        """
        shares = self.link_trace.shares(period)
        capacities: dict[str, int] = {}
        for host, share in shares.items():
            is_worker = host in self._leaf_of
            nominal = self.link_bits_per_s if is_worker else self.server_link_bits_per_s
            capacities |= dict.fromkeys((f"{host}>", f">{host}"), round(nominal * share))
        if len(self.leaves) > 1:
            for leaf, below in self.leaves.items():
                rate = len(below) * self.link_bits_per_s
                capacities |= dict.fromkeys((f"{leaf}>", f">{leaf}"), rate)
        return capacities

    def route(self, sender: str, receiver: str) -> Links | None:
        """Return the links between two stations; a leaf is one, the core is not."""
        up, down = self._upward(sender), self._upward(receiver)
        if sender in self.leaves and len(self.leaves) == 1:
            up = ()
        if receiver in self.leaves:
            return (f"{sender}>",) if self._leaf_of.get(sender) == receiver else None
        if up and down and up[-1] == down[-1]:  # below the same leaf
            up, down = up[:-1], down[:-1]
        return (*(f"{each}>" for each in up), *(f">{each}" for each in reversed(down)))

    def network(self, period: int = 0) -> TransferNetwork:
        """Return the network as the scheduler knows it."""
        return TransferNetwork(
            capacities_bits_per_s=self.capacities(period),
            hosts=frozenset(self.link_trace.hosts),
            switches=frozenset(self.leaves),
            find_route=self.route,
        )

    @cached_property
    def _leaf_of(self) -> Mapping[str, str]:
        return {worker: leaf for leaf, below in self.leaves.items() for worker in below}

    def _upward(self, station: str) -> tuple[str, ...]:
        """Return the stations whose uplinks lead to the core."""
        leaf = self._leaf_of.get(station)
        return (station,) if leaf is None or len(self.leaves) == 1 else (station, leaf)
