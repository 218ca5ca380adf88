# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A bound on the speed of trees: the narrowest cut of the fabric that separates workers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, cast

from .tree_growth import Graph, LinkEnd, link_end


def narrowest_cut(graph: Graph, capacities: Mapping[LinkEnd, float]) -> float:
    """Return the least capacity, bits/s, of all sets of links that separate workers' switches.

    Every tree crosses such a cut with every chunk at least once in each direction. Each cut
    separates the first switch from some other, so the cuts between it and each other one suffice.
    Infinity when all workers are at one switch.
    """
    # Imported here: most commands plan no trees and need not wait for it.
    import networkx  # noqa: PLC0415

    fabric: networkx.DiGraph[str] = networkx.DiGraph()
    for switch, hops in graph.hops.items():
        for hop in hops:
            parallel = fabric.get_edge_data(switch, hop.switch, {"capacity": 0})
            # Whole numbers, for an exact flow; rounded up, so that no tree is faster than the cut.
            capacity = math.ceil(capacities[link_end(switch, hop)])
            fabric.add_edge(switch, hop.switch, capacity=parallel["capacity"] + capacity)
    flow_value = cast("Callable[..., float]", cast("Any", networkx).maximum_flow_value)
    first, *others = graph.workers
    return min((flow_value(fabric, first, other) for other in others), default=float("inf"))


def star_cut(graph: Graph, capacities: Mapping[LinkEnd, float]) -> float:
    """Return the least capacity, bits/s, of all links of one switch with workers.

    It is cheaper to compute than the narrowest cut, and never below it.
    """
    if len(graph.workers) == 1:
        return float("inf")
    return min(
        sum(capacities[link_end(switch, hop)] for hop in graph.hops[switch])
        for switch in graph.workers
    )
