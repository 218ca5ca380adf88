# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The cost of a host allreduce: a ring of TCP streams along the IPv4 routes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ..fabric import Attachment, Direction, Fabric
from ..routes import path
from .frame_cost import Traffic
from .tree_plan import LinkLoad, PredictedCost, link_load


def predict_ring(
    fabric: Fabric, attachments: Sequence[Attachment], traffic: Traffic
) -> PredictedCost | None:
    """Return the cost of a ring in the order of worker ids; None when hosts cannot be reached.

    Each worker sends 2 (n - 1) / n of the tensor to the next one; acknowledgements come back.
    """
    ring = sorted(attachments, key=lambda worker: worker.worker_id)
    if len(ring) < 2:
        return None
    forward, back = traffic.ring_bytes(len(ring))
    sums: dict[Direction, float] = defaultdict(float)
    longest: list[Direction] = []
    for worker, following in zip(ring, [*ring[1:], ring[0]], strict=True):
        for sender, receiver, amount in (
            (worker, following, forward),
            (following, worker, back),
        ):
            route = path(fabric, sender, receiver)
            if route is None:
                return None
            for direction in route:
                sums[direction] += amount
            longest = max(longest, route, key=len)
    loads: tuple[LinkLoad, ...] = tuple(
        link_load(fabric, direction, counted_bytes=amount, link_bytes=amount)
        for direction, amount in sorted(sums.items())
    )
    rates = tuple(float(fabric.rate(direction)) for direction in longest)
    latency_s = 2 * (len(ring) - 1) * traffic.latency_s(rates)
    return PredictedCost(
        seconds=max(load.seconds for load in loads) + latency_s, latency_s=latency_s, loads=loads
    )
