# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Turns links that form a tree into a planned tree: finds the root and each node's children."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from ..fabric import Attachment, Fabric, Hop
from .tree_growth import Graph, TreeLinks
from .tree_plan import MAX_CHILDREN, PlannedChild, PlannedNode, PlannedTree

Neighbours = Mapping[str, Sequence[Hop]]
"""By switch, its hops over the tree's links, by port."""


def tree_neighbours(graph: Graph, links: TreeLinks) -> Neighbours:
    """Return every switch's hops within the tree; a tree without links has one switch."""
    found: dict[str, list[Hop]] = {}
    for end in sorted(links):
        for near in graph.ends[end]:
            found.setdefault(near, [])
        switch, port = end
        hop = next(hop for hop in graph.hops[switch] if hop.port == port)
        found[switch].append(hop)
        found[hop.switch].append(Hop(hop.peer_port, switch, hop.port))
    if not found:
        found = {switch: [] for switch in graph.workers}
    return {switch: sorted(hops) for switch, hops in found.items()}


def possible_roots(graph: Graph, neighbours: Neighbours) -> list[str]:
    """Return the tree's switches that can be its root, in the graph's order.

    A root needs room for one child more than an inner switch, since it has no parent.
    """
    return [
        switch
        for switch in graph.hops
        if switch in neighbours and len(neighbours[switch]) <= graph.spare(switch)
    ]


def center(graph: Graph, neighbours: Neighbours) -> str:
    """Return the switch from which the farthest worker is nearest; of equals, the first."""
    able = possible_roots(graph, neighbours)
    return min(able, key=lambda switch: _height(graph, neighbours, switch))


def _height(graph: Graph, neighbours: Neighbours, root: str) -> int:
    """Return the number of links from the root to the farthest switch with workers."""
    height, farthest = 0, 0
    level, seen = [root], {root}
    while level:
        if any(switch in graph.workers for switch in level):
            farthest = height
        height += 1
        level = [hop.switch for switch in level for hop in neighbours[switch]]
        level = [switch for switch in dict.fromkeys(level) if switch not in seen]
        seen.update(level)
    return farthest


def plant(
    fabric: Fabric,
    neighbours: Neighbours,
    root: str,
    attachments: Sequence[Attachment],
    share: float,
) -> PlannedTree:
    """Return the tree with this root: children by worker id, then by port."""
    workers: dict[str, list[PlannedChild]] = defaultdict(list)
    for worker in sorted(attachments, key=lambda worker: worker.worker_id):
        workers[worker.switch].append(
            PlannedChild(port=worker.port, num_workers=1, worker_id=worker.worker_id)
        )
    parents: dict[str, Hop | None] = {root: None}
    order = [root]
    for switch in order:
        for hop in neighbours[switch]:
            if hop.switch not in parents:
                parents[hop.switch] = Hop(hop.peer_port, switch, hop.port)
                order.append(hop.switch)
    below: dict[str, list[PlannedChild]] = defaultdict(list)
    nodes: list[PlannedNode] = []
    for switch in reversed(order):
        parent = parents[switch]
        switches = sorted(below[switch], key=lambda child: child.port)
        node = PlannedNode(switch=switch, parent=parent, children=(*workers[switch], *switches))
        assert len(node.children) <= MAX_CHILDREN, switch
        nodes.append(node)
        if parent is not None:
            below[parent.switch].append(
                PlannedChild(port=parent.peer_port, num_workers=node.num_workers, switch=switch)
            )
    return PlannedTree(nodes=tuple(reversed(nodes)), share=share)
