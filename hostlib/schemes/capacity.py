# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Limits of hosts and switch below the rate of the links; ours.

A sum on the switch costs processor time: of a worker per chunk, of the switch per packet. TCP costs
processor time per byte. An exchange takes as long as the slowest of link, worker and switch, and
longer if another of them is nearly as slow. The figures come from `hardware`: measured here, or
stated for named hardware.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Final

from ..errors import SchemeError
from ..slots.switch_reducer import split_slots
from .cluster import Cluster
from .cost import Scheme
from .layer import Layer
from .wire_cost import ExchangeTime, exchange_time, ina_frames, wire_bytes

LINK: Final = "link"
SHARPNESS: Final = 4.0
"""Exponent of the norm that joins the times of resources. Work that waits for one resource leaves
gaps on another, so that an exchange with two equal limits takes 2^(1/4) = 1.19 times as long as
with one. Fitted to the tables of docs/performance.md (docs/hybrid.md)."""


@dataclass(frozen=True)
class LimitedTime:
    """The time of an exchange and its limiting resource."""

    time: ExchangeTime
    limit: str
    """Limiting resource: link, worker, switch or shared cores."""


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """Processor time of exchanges; 0: none, as if hosts and switch kept up with any link."""

    worker_chunk_s: float = 0.0
    """Seconds of a worker per chunk sent and received."""
    tcp_byte_s: float = 0.0
    """Seconds per byte sent by TCP, with the time that its receiver takes."""
    ring_step_s: float = 0.0
    """Seconds that a step of a ring takes for few bytes, besides the network's RTT."""
    switch_packet_s: float = 0.0
    """Seconds of the switch per packet of one worker. Its data plane has one thread."""
    switch_round_s: float = 0.0
    """Seconds that a round of one chunk takes from worker to worker, besides the network's RTT."""
    shared_chunk_s: float = 0.0
    """Seconds of all shared cores per chunk of each worker's sum, also those in which they wait or
    do other work. At least the processor times above count."""
    shared_tcp_byte_s: float = 0.0
    """The same per byte that a host sends by TCP."""
    shared_cores: int = 0
    """Cores that all workers and the switch share; 0: each of them has its own core."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not 0 <= value < math.inf:
                raise SchemeError(f"{field.name} is {value}; write 0 or more")

    def limit_switch(self, time: ExchangeTime, layer: Layer, cluster: Cluster) -> LimitedTime:
        """Return the time of a layer's sum on the switch; `time` is that on the links alone."""
        frames = ina_frames(layer.num_values, cluster.values_per_packet)
        worker_s = frames * self.worker_chunk_s
        switch_s = frames * cluster.num_workers * self.switch_packet_s
        limits = {"worker": worker_s, "switch": switch_s}
        least_s = cluster.num_workers * frames * self.shared_chunk_s
        # Each slot for values takes one chunk per round.
        waits_s = frames / split_slots(max(2, cluster.slots))[1] * self.switch_round_s
        return self._joined(
            ExchangeTime(max(time.transfer_s, waits_s), time.latency_s + 2 * self.switch_round_s),
            limits,
            max(cluster.num_workers * worker_s + switch_s, least_s),
        )

    def limit_streams(self, time: ExchangeTime, sent: float, cluster: Cluster) -> LimitedTime:
        """Return the time of TCP streams by which each host sends `sent` bytes."""
        worker_s = sent * self.tcp_byte_s
        shared_s = max(worker_s, sent * self.shared_tcp_byte_s)
        return self._joined(time, {"worker": worker_s}, cluster.num_workers * shared_s)

    def limit_ring(self, time: ExchangeTime, sent: float, cluster: Cluster) -> LimitedTime:
        """Return the time of a ring in whose 2(P - 1) steps each host sends `sent` bytes."""
        steps_s = 2 * (cluster.num_workers - 1) * self.ring_step_s
        later = ExchangeTime(time.transfer_s, time.latency_s + steps_s)
        return self.limit_streams(later, sent, cluster)

    def limit(self, scheme: Scheme, layer: Layer, cluster: Cluster) -> LimitedTime:
        """Return the time of a layer's exchange; SchemeError as `floats`."""
        time = exchange_time(scheme, layer, cluster)
        if cluster.num_workers == 1:
            return LimitedTime(time, LINK)
        if scheme in (Scheme.INA, Scheme.INA_PS):
            return self.limit_switch(time, layer, cluster)
        node = wire_bytes(scheme, layer, cluster)
        return self.limit_streams(time, max(node.worker_sent, node.server_sent), cluster)

    def seconds(self, scheme: Scheme, layer: Layer, cluster: Cluster) -> float:
        """Return the seconds of a layer's exchange; a cost for `three_way`."""
        return self.limit(scheme, layer, cluster).time.seconds

    def _joined(self, time: ExchangeTime, limits: dict[str, float], all_s: float) -> LimitedTime:
        """Return the time that link and processors take together, and the slowest of them."""
        limits = {LINK: time.transfer_s, **limits}
        if self.shared_cores:
            limits["shared cores"] = all_s / self.shared_cores
        slowest = max(limits, key=lambda each: limits[each])
        longest_s = limits[slowest]
        if longest_s == 0:
            return LimitedTime(time, LINK)
        shares = (each_s / longest_s for each_s in (time.transfer_s, _busiest(limits)))
        joined_s = longest_s * sum(share**SHARPNESS for share in shares) ** (1 / SHARPNESS)
        return LimitedTime(ExchangeTime(joined_s, time.latency_s), slowest)


def _busiest(limits: dict[str, float]) -> float:
    return max(each_s for name, each_s in limits.items() if name != LINK)
