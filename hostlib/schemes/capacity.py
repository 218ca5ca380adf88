# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Limits of hosts and switch below the rate of the links; ours.

A sum on the switch costs processor time: of a worker per chunk, of the switch per packet. TCP costs
processor time per byte. An exchange takes as long as the slowest of link, worker and switch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from ..errors import SchemeError
from .cluster import Cluster
from .cost import Scheme
from .layer import Layer
from .wire_cost import ExchangeTime, exchange_time, ina_frames, wire_bytes

WORKER_CHUNK_S: Final = 3e-6
SWITCH_PACKET_S: Final = 2.5e-6
TCP_BYTE_S: Final = 3.4e-9
"""Processor times, measured on 2 cores with 2 to 8 workers on links that carry single frames: of
the host library per chunk of 352 values sent and received, of softswitch per packet with the
results that it sends, and of Gloo and the kernel's bridge per byte that a worker sends. On links
that carry super-frames the first two are about 1.7 and 1 us."""
LINK: Final = "link"


@dataclass(frozen=True)
class LimitedTime:
    """The time of an exchange and its limiting resource."""

    time: ExchangeTime
    limit: str
    """Limiting resource: link, worker, switch or shared cores."""


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """Processor time of exchanges; 0: none, as for a hardware switch."""

    worker_chunk_s: float = WORKER_CHUNK_S
    """Seconds of a worker per chunk sent and received."""
    switch_packet_s: float = SWITCH_PACKET_S
    """Seconds of the switch per packet of one worker. Its data plane has one thread."""
    tcp_byte_s: float = TCP_BYTE_S
    """Seconds per byte sent by TCP, with the time that its receiver takes."""
    shared_cores: int = 0
    """Cores that all workers and the switch share; 0: each of them has its own core."""

    def __post_init__(self) -> None:
        for name in ("worker_chunk_s", "switch_packet_s", "tcp_byte_s", "shared_cores"):
            if not 0 <= getattr(self, name) < math.inf:
                raise SchemeError(f"{name} is {getattr(self, name)}; write 0 or more")

    def limit_switch(self, time: ExchangeTime, layer: Layer, cluster: Cluster) -> LimitedTime:
        """Return the time of a layer's sum on the switch; `time` is that on the links alone."""
        frames = ina_frames(layer.num_values, cluster.values_per_packet)
        worker_s = frames * self.worker_chunk_s
        switch_s = frames * cluster.num_workers * self.switch_packet_s
        limits = {"worker": worker_s, "switch": switch_s}
        return self._slowest(time, limits, cluster.num_workers * worker_s + switch_s)

    def limit_streams(self, time: ExchangeTime, sent: float, cluster: Cluster) -> LimitedTime:
        """Return the time of TCP streams by which each host sends `sent` bytes."""
        worker_s = sent * self.tcp_byte_s
        return self._slowest(time, {"worker": worker_s}, cluster.num_workers * worker_s)

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

    def _slowest(self, time: ExchangeTime, limits: dict[str, float], all_s: float) -> LimitedTime:
        if self.shared_cores:
            limits = {**limits, "shared cores": all_s / self.shared_cores}
        name = max(limits, key=lambda each: limits[each])
        if limits[name] <= time.transfer_s:
            return LimitedTime(time, LINK)
        return LimitedTime(ExchangeTime(limits[name], time.latency_s), name)

    def describe(self) -> str:
        """Return the assumptions as text."""
        cores = (
            f"all workers and the switch share {self.shared_cores} cores"
            if self.shared_cores
            else "each worker and the switch have a core of their own"
        )
        return (
            f"assumed: a worker needs {1e6 * self.worker_chunk_s:g} us of processor per chunk, the"
            f" switch {1e6 * self.switch_packet_s:g} us per packet, TCP"
            f" {1e9 * self.tcp_byte_s:g} ns per byte sent; {cores}"
        )
