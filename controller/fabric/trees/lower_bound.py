# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How fast trees can be at best: the narrowest cut of the fabric that parts the workers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from .tree_growth import Graph, LinkEnd, link_end

_EPSILON: Final = 1e-6
"""Of a bit per second: less is no capacity."""


def narrowest_cut(graph: Graph, capacities: Mapping[LinkEnd, float]) -> float:
    """Return the least capacity, bits/s, of all sets of links that part the workers' switches.

    Every tree crosses such a cut with every chunk at least once each way. One switch is in one of
    the two parts, so the cuts between it and each other one are all that matter. Infinity when all
    workers are at one switch.
    """
    first, *others = graph.workers
    return min(
        (_max_flow(graph, capacities, first, other) for other in others), default=float("inf")
    )


def star_cut(graph: Graph, capacities: Mapping[LinkEnd, float]) -> float:
    """Return the least capacity, bits/s, of all links of one switch with workers.

    Cheaper than the narrowest cut and not below it.
    """
    if len(graph.workers) == 1:
        return float("inf")
    return min(
        sum(capacities[link_end(switch, hop)] for hop in graph.hops[switch])
        for switch in graph.workers
    )


def _max_flow(graph: Graph, capacities: Mapping[LinkEnd, float], source: str, sink: str) -> float:
    """Return the capacity of the narrowest cut between two switches, by shortest augmentation."""
    free: dict[str, dict[str, float]] = {switch: defaultdict(float) for switch in graph.hops}
    for switch, hops in graph.hops.items():
        for hop in hops:
            free[switch][hop.switch] += capacities[link_end(switch, hop)]
    total = 0.0
    while (path := _augmenting_path(free, source, sink)) is not None:
        amount = min(free[near][far] for near, far in path)
        for near, far in path:
            free[near][far] -= amount
            free[far][near] += amount
        total += amount
    return total


def _augmenting_path(
    free: Mapping[str, Mapping[str, float]], source: str, sink: str
) -> list[tuple[str, str]] | None:
    above: dict[str, str] = {source: source}
    reached = [source]
    for switch in reached:
        for other, amount in free[switch].items():
            if amount > _EPSILON and other not in above:
                above[other] = switch
                reached.append(other)
                if other == sink:
                    path: list[tuple[str, str]] = []
                    while other != source:
                        path.append((above[other], other))
                        other = above[other]  # noqa: PLW2901 - walks back to the source
                    return path
    return None
