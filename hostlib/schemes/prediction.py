# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Predicts the time of an iteration of data-parallel training, with and without overlap; ours.

An iteration computes forward through all layers, then backward from the last to the first. Without
overlap the exchange of all layers follows. With overlap (wait-free backpropagation) a layer's
exchange starts when its gradient is computed and the link is free; the link serves layers in that
order. The next iteration starts when all layers have been exchanged.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ..errors import SchemeError
from .best_scheme import Cost, three_way, two_way
from .capacity import LINK, Capacity, LimitedTime
from .cluster import Cluster
from .cost import Scheme
from .layer import Layer
from .models import Model, ModelLayer
from .tcp import ring_bytes
from .wire_cost import ExchangeTime, seconds

UNLIMITED: Final = Capacity()
"""Hosts and a switch that always keep up with their links."""
BACKWARD_SHARE: Final = 2 / 3
"""Assumed share of the backward pass, which computes gradients of inputs and of weights."""


class Strategy(enum.Enum):
    """Rule for the schemes of a model's layers."""

    PS = "ps"
    """All layers through the parameter server."""
    RING = "ring"
    """All layers by a ring of TCP streams among the workers, as Gloo does."""
    SFB = "sfb"
    """Fully connected layers by factors, all others through the parameter server."""
    TWO_WAY = "two-way"
    """Each layer by the two-way rule, PS or SFB."""
    INA = "ina"
    """All layers through the switch."""
    BEST = "best"
    """Each layer by the cheapest of PS, INA and SFB."""


@dataclass(frozen=True)
class LayerTimes:
    """Times of one layer, or of one bucket of layers."""

    name: str
    forward_s: float
    backward_s: float
    exchange: ExchangeTime
    scheme: str
    limit: str = LINK
    """Limiting resource of the exchange, as in `LimitedTime`."""


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """One iteration of a model under one strategy."""

    strategy: Strategy
    num_workers: int
    link_bits_per_s: float
    batch: int
    layers: tuple[LayerTimes, ...]
    """Times of the layers from input to output."""

    @property
    def compute_s(self) -> float:
        """Forward and backward passes: an iteration of one worker alone."""
        return sum(layer.forward_s + layer.backward_s for layer in self.layers)

    @property
    def exchange_s(self) -> float:
        """Exchanges of all layers, one after the other."""
        if self.num_workers == 1:
            return 0.0
        return sum(layer.exchange.transfer_s for layer in self.layers) + max(
            layer.exchange.latency_s for layer in self.layers
        )

    @property
    def sequential_s(self) -> float:
        """Time of an iteration without overlap."""
        return self.compute_s + self.exchange_s

    @property
    def overlapped_s(self) -> float:
        """Time of an iteration with wait-free backpropagation."""
        now_s = sum(layer.forward_s for layer in self.layers)
        free_s = end_s = now_s
        for layer in reversed(self.layers):
            now_s += layer.backward_s
            if self.num_workers > 1:
                free_s = max(free_s, now_s) + layer.exchange.transfer_s
                end_s = max(end_s, free_s + layer.exchange.latency_s)
        return max(now_s, end_s)

    def throughput(self, *, has_overlap: bool = True) -> float:
        """Return samples per second of all workers together."""
        iteration_s = self.overlapped_s if has_overlap else self.sequential_s
        return self.num_workers * self.batch / iteration_s

    def efficiency(self, *, has_overlap: bool = True) -> float:
        """Return the throughput divided by that of as many workers without any exchange."""
        return self.compute_s / (self.overlapped_s if has_overlap else self.sequential_s)

    @property
    def limit(self) -> str:
        """Resource that limits most of the exchanges' time, as in `LimitedTime`."""
        shares: dict[str, float] = {}
        for layer in self.layers:
            shares[layer.limit] = shares.get(layer.limit, 0.0) + layer.exchange.transfer_s
        return max(shares, key=lambda each: shares[each])

    @property
    def schemes(self) -> dict[str, str]:
        """Scheme of each layer, by layer name."""
        return {layer.name: layer.scheme for layer in self.layers}


@dataclass(frozen=True, kw_only=True)
class Computing:
    """Computing speed of a worker: one of the two fields, or none if the layers have own times."""

    flops_per_s: float = 0.0
    """Operations per second, two per multiplication; a backward pass takes two forward passes."""
    iteration_s: float = 0.0
    """Forward and backward passes of one worker alone, split among layers by multiplications."""

    def __post_init__(self) -> None:
        for name in ("flops_per_s", "iteration_s"):
            if not 0 <= getattr(self, name) < math.inf:
                raise SchemeError(f"{name} is {getattr(self, name)}; write a number above 0")
        if self.flops_per_s and self.iteration_s:
            raise SchemeError("give flops_per_s or iteration_s, not both")

    def times(self, model: Model, batch: int) -> list[tuple[float, float]]:
        """Return (forward, backward) seconds per layer; SchemeError if they are unknown."""
        if any(layer.forward_s or layer.backward_s for layer in model.layers):
            if self.flops_per_s or self.iteration_s:
                raise SchemeError(
                    f"model {model.name} has forward_s and backward_s of its own; leave out"
                    " flops_per_s and iteration_s"
                )
            return [(layer.forward_s, layer.backward_s) for layer in model.layers]
        total = sum(layer.multiplications for layer in model.layers)
        if not total or not (self.flops_per_s or self.iteration_s):
            raise SchemeError(
                f"the computing time of model {model.name} is unknown: give flops_per_s (--flops)"
                " or iteration_s (--iteration-ms) and the layers' multiplications, or the layers'"
                " forward_s and backward_s"
            )
        whole_s = self.iteration_s or 3 * 2 * total * batch / self.flops_per_s
        return [_split(layer, whole_s / total) for layer in model.layers]


def _split(layer: ModelLayer, multiplication_s: float) -> tuple[float, float]:
    own_s = layer.multiplications * multiplication_s
    return (1 - BACKWARD_SHARE) * own_s, BACKWARD_SHARE * own_s


def ring_time(num_bytes: int, cluster: Cluster) -> ExchangeTime:
    """Return the time of a ring: each worker sends 2(P - 1)/P of the bytes to the next by TCP."""
    workers = cluster.num_workers
    if workers == 1:
        return ExchangeTime(0.0, 0.0)
    sent = ring_bytes(2 * (workers - 1) / workers * num_bytes, cluster.link_bits_per_s)
    return ExchangeTime(8 * sent / cluster.link_bits_per_s, (workers - 1) * cluster.round_trip_s)


def choose(
    strategy: Strategy, layer: Layer, cluster: Cluster, cost: Cost = seconds
) -> Scheme | None:
    """Return the scheme of a layer under a strategy; None for the ring."""
    if strategy is Strategy.RING:
        return None
    if strategy is Strategy.TWO_WAY:
        return two_way(layer, cluster)
    if strategy is Strategy.BEST:
        return three_way(layer, cluster, cost)
    if strategy is Strategy.SFB:
        return Scheme.SFB if layer.has_factors else Scheme.PS
    if strategy is Strategy.INA:
        if not cluster.can_aggregate:
            raise SchemeError("no switch with free slots: the network cannot aggregate")
        return Scheme.INA
    return Scheme.PS


def predict(
    model: Model,
    cluster: Cluster,
    strategy: Strategy,
    computing: Computing,
    *,
    bucket_bytes: int = 0,
    capacity: Capacity = UNLIMITED,
) -> Prediction:
    """Predict an iteration in which each worker has the cluster's batch.

    With `bucket_bytes`, consecutive layers with the same scheme (INA, ring or PS) are exchanged
    together once they have so many bytes, as in DistributedDataParallel. `capacity` limits hosts
    and switch. Raises SchemeError.
    """
    times = computing.times(model, cluster.batch)
    layers: list[LayerTimes] = []
    chosen = [choose(strategy, layer, cluster, capacity.seconds) for layer in model.layers]
    for bucket in _buckets(model.layers, chosen, bucket_bytes):
        merged, scheme = model.layers[bucket[0]], chosen[bucket[0]]
        if len(bucket) > 1:
            size = sum(model.layers[place].num_values for place in bucket)
            name = f"{merged.name} to {model.layers[bucket[-1]].name}"
            merged = Layer(name=name, kind="other", num_values=size)
        exchange = _exchange(scheme, merged, cluster, capacity)
        layers.append(
            LayerTimes(
                name=merged.name,
                forward_s=sum(times[place][0] for place in bucket),
                backward_s=sum(times[place][1] for place in bucket),
                exchange=exchange.time,
                scheme=strategy.value if scheme is None else scheme.value,
                limit=exchange.limit,
            )
        )
    return Prediction(
        strategy=strategy,
        num_workers=cluster.num_workers,
        link_bits_per_s=cluster.link_bits_per_s,
        batch=cluster.batch,
        layers=tuple(layers),
    )


def _exchange(
    scheme: Scheme | None, layer: Layer, cluster: Cluster, capacity: Capacity
) -> LimitedTime:
    if scheme is not None:
        return capacity.limit(scheme, layer, cluster)
    workers = cluster.num_workers
    sent = 2 * (workers - 1) / workers * layer.num_bytes
    return capacity.limit_ring(ring_time(layer.num_bytes, cluster), sent, cluster)


def _buckets(
    layers: Sequence[Layer], schemes: Sequence[Scheme | None], bucket_bytes: int
) -> list[list[int]]:
    """Return the indices of the layers in each bucket, from input to output.

    Buckets are filled from the last layer on, in the order of the gradients.
    """
    buckets: list[list[int]] = []
    size, last = 0, None
    for place in range(len(layers) - 1, -1, -1):
        scheme = schemes[place]
        is_open = buckets and scheme is last and scheme is not Scheme.SFB and size < bucket_bytes
        if not is_open:
            buckets.append([])
            size = 0
        buckets[-1].insert(0, place)
        size += layers[place].num_bytes
        last = scheme
    return buckets[::-1]
