# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Grows one tree that joins given switches over short links.

The heuristic of Takahashi and Matsuyama: starting with a first switch, join the nearest missing
switch by its shortest path to the tree, until none is missing. The tree is at most twice as long as
the shortest one. In the fabrics of data centres, where all leaves are equally far from a root, it
is the shortest.
"""

from __future__ import annotations

import functools
import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..fabric import Hop
from .tree_plan import MAX_CHILDREN

LinkEnd = tuple[str, int]
"""(switch, port): the lesser of a link's two ends, which names the link."""
TreeLinks = frozenset[LinkEnd]
"""A tree without a root, as its links."""


@dataclass(frozen=True)
class Graph:
    """The aggregating switches that trees may use."""

    hops: Mapping[str, tuple[Hop, ...]]
    """Hops to neighbours; among equals, the first is preferred."""
    workers: Mapping[str, int]
    """Number of the job's workers by switch: the tree must join these switches."""

    @functools.cached_property
    def ends(self) -> Mapping[LinkEnd, tuple[str, str]]:
        """Both switches of every link."""
        return {
            link_end(switch, hop): (switch, hop.switch)
            for switch, hops in self.hops.items()
            for hop in hops
        }

    def spare(self, switch: str) -> int:
        """Return how many switches may be children of a switch."""
        return MAX_CHILDREN - self.workers.get(switch, 0)


def link_end(switch: str, hop: Hop) -> LinkEnd:
    """Return the name of the link of a hop, the same from both ends."""
    return min((switch, hop.port), (hop.switch, hop.peer_port))


def grow_tree(graph: Graph, first: str, lengths: Mapping[LinkEnd, float]) -> TreeLinks | None:
    """Return a short tree over all switches with workers that is grown from `first`.

    None when no tree is found in which every switch has at most MAX_CHILDREN children, with `first`
    as its root. Links that `lengths` does not name have length 0. Among trees of equal length, the
    one with fewer links is better.
    """
    growth = _Growth(graph, first, lengths)
    while growth.missing:
        if not growth.join_some():
            return None
    return frozenset(_pruned(graph, growth.links))


class _Growth:
    """A tree that grows."""

    def __init__(self, graph: Graph, first: str, lengths: Mapping[LinkEnd, float]) -> None:
        self.missing = {switch for switch in graph.workers if switch != first}
        self.links: set[LinkEnd] = set()
        self._graph = graph
        self._lengths = lengths
        self._spare = {switch: graph.spare(switch) for switch in graph.hops}
        self._in_tree = {first: None}
        self._best: dict[str, tuple[float, int]] = {}
        """Length and number of links of the best path found from the tree."""
        self._last_hop: dict[str, tuple[str, Hop]] = {}
        """The last hop of that path."""
        self._queue: list[tuple[float, int, int, str]] = []
        self._order = 0

    def join_some(self) -> bool:
        """Join missing switches until the next one's parent is full; return whether any joined."""
        self._best, self._queue = {}, []
        num_missing = len(self.missing)
        for switch in self._in_tree:
            self._push_joined(switch)
        while self._queue and self.missing:
            length, num_links, _, switch = heapq.heappop(self._queue)
            if (length, num_links) != self._best[switch]:
                continue  # a better path was found since
            if switch in self.missing:
                path = self._path(switch)
                if self._spare[path[-1][0]] < 1:
                    break
                self._join(path)
            elif self._spare[switch] > 0:
                self._push_neighbours(switch, length, num_links)
        return len(self.missing) < num_missing

    def _join(self, path: Sequence[tuple[str, Hop]]) -> None:
        for above, hop in path:
            self._spare[above] -= 1
            self.links.add(link_end(above, hop))
            self._in_tree[hop.switch] = None
            self.missing.discard(hop.switch)
        for _, hop in path:
            self._push_joined(hop.switch)

    def _push_joined(self, switch: str) -> None:
        if self._spare[switch] > 0:
            self._push(switch, (0.0, 0))

    def _push_neighbours(self, switch: str, length: float, num_links: int) -> None:
        for hop in self._graph.hops[switch]:
            if hop.switch in self._in_tree:
                continue
            price = self._lengths.get(link_end(switch, hop), 0.0)
            through = (length + price, num_links + 1)
            if hop.switch not in self._best or through < self._best[hop.switch]:
                self._last_hop[hop.switch] = (switch, hop)
                self._push(hop.switch, through)

    def _push(self, switch: str, distance: tuple[float, int]) -> None:
        self._best[switch] = distance
        heapq.heappush(self._queue, (*distance, self._order, switch))
        self._order += 1

    def _path(self, switch: str) -> list[tuple[str, Hop]]:
        """Return the (switch above, its hop) pairs from `switch` up to the tree."""
        path: list[tuple[str, Hop]] = []
        while switch not in self._in_tree:
            above, hop = self._last_hop[switch]
            path.append((above, hop))
            switch = above
        return path


def _pruned(graph: Graph, links: set[LinkEnd]) -> set[LinkEnd]:
    """Return the links without those that lead to no worker."""
    ends = graph.ends
    kept = set(links)
    at: dict[str, set[LinkEnd]] = defaultdict(set)
    for link in kept:
        for switch in ends[link]:
            at[switch].add(link)
    loose = [switch for switch in sorted(at) if len(at[switch]) == 1]
    while loose:
        switch = loose.pop()
        if switch in graph.workers or len(at[switch]) != 1:
            continue
        link = at[switch].pop()
        kept.discard(link)
        other = next(end for end in ends[link] if end != switch)
        at[other].discard(link)
        loose.append(other)
    return kept


def joined_switches(graph: Graph, first: str) -> Sequence[str]:
    """Return the switches that a tree can reach from `first`, nearest first."""
    reached, seen = [first], {first}
    for switch in reached:
        for hop in graph.hops[switch]:
            if hop.switch not in seen:
                seen.add(hop.switch)
                reached.append(hop.switch)
    return reached
