# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The planner: which trees join a job's workers, and how the slots are split among them.

The split of one allreduce over given trees that minimizes the time of the slowest link is a linear
program (`packing`). Its prices tell which further tree would help: a tree whose links are cheap
enough. So trees are grown over cheap links (`tree_growth`) until none helps or the bound of the
narrowest cut (`lower_bound`) is reached. Then trees that gain little are left out again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ...errors import NoTreeError
from ..fabric import Attachment, Fabric
from ..reachability import NO_DEMAND, SlotDemand, planning_graph
from .frame_cost import Traffic
from .lower_bound import narrowest_cut, star_cut
from .packing import Packing, pack_trees
from .ring_cost import predict_ring
from .tree_growth import Graph, LinkEnd, TreeLinks, grow_tree
from .tree_plan import (
    Alternative,
    PlannedTree,
    TreePlan,
    describe_trees,
    latency_s,
    predict,
)
from .tree_roots import center, plant, possible_roots, tree_neighbours

DEFAULT_MAX_TREES: Final = 8
WORTH_A_TREE: Final = 0.02
"""Least gain of a further tree, as a share of the time: it takes slots and table entries."""
_SUFFICES: Final = 1.001
"""The search stops at trees that take at most this factor times the lower bound."""
_MOST_GROWN: Final = 400
"""Trees grown in search of better ones; bounds the planning time in large fabrics."""
_FIRST_SWITCHES: Final = 12
"""Switches that each turn of the search tries as a tree's first one."""
_NUM_ALTERNATIVES: Final = 4


def plan_trees(  # noqa: PLR0913 - what a plan depends on
    fabric: Fabric,
    attachments: Sequence[Attachment],
    traffic: Traffic,
    *,
    max_trees: int = DEFAULT_MAX_TREES,
    slots: SlotDemand = NO_DEMAND,
    tie_break: int = 0,
    roots: Sequence[str] = (),
) -> TreePlan:
    """Return the fastest trees found for these workers, the same for the same arguments.

    A switch with too few free slots is passed by if another path exists. `tie_break` rotates the
    order in which equally good switches are taken, so that jobs spread. Each tree is rooted at the
    first switch in `roots` that it has and that no tree before it was rooted at, if there is one.
    NoTreeError names the workers that no tree can join.
    """
    graph = planning_graph(fabric, attachments, slots, tie_break)
    return _Search(fabric, graph, attachments, traffic, roots).plan(max_trees)


@dataclass(frozen=True)
class _Choice:
    """Trees with their shares."""

    trees: tuple[TreeLinks, ...]
    packing: Packing
    seconds: float
    """Time of the slowest link, including the workers' own links."""


class _Search:
    """One search for trees."""

    def __init__(
        self,
        fabric: Fabric,
        graph: Graph,
        attachments: Sequence[Attachment],
        traffic: Traffic,
        roots: Sequence[str],
    ) -> None:
        self._fabric = fabric
        self._graph = graph
        self._attachments = attachments
        self._traffic = traffic
        self._roots = roots
        capacities = {end: fabric.capacity(*end) for end in sorted(graph.ends)}
        bits = 8 * traffic.link_bytes
        self._capacities = capacities
        self._seconds = {end: bits / capacity for end, capacity in capacities.items()}
        self._rows = {end: row for row, end in enumerate(self._seconds)}
        sharers = Counter((worker.switch, worker.port) for worker in attachments)
        self._access_s = max(
            count * bits / fabric.capacity(switch, port)
            for (switch, port), count in sharers.items()
        )
        """Time on the slowest of the workers' own links, which every tree uses."""
        self._pool: dict[TreeLinks, None] = {}
        """All trees grown so far, in order."""

    def plan(self, max_trees: int) -> TreePlan:
        """Search, then choose how many trees are worth it."""
        for switch in self._graph.hops:
            self._grow(switch, self._seconds)
        if not self._pool:
            raise NoTreeError(
                "no tree has at most 32 children per switch; attach workers to more switches",
                workers=tuple(sorted(worker.worker_id for worker in self._attachments)),
            )
        bound_s = self._bound_s(star_cut(self._graph, self._capacities))
        best = self._pack(tuple(self._pool))
        if best.seconds > bound_s * _SUFFICES:
            bound_s = self._bound_s(narrowest_cut(self._graph, self._capacities))
            best = self._improve(best, bound_s)
        choices = self._by_number(best, max_trees)
        fastest = min(choice.seconds for choice in choices)
        chosen = next(c for c in choices if c.seconds <= fastest * (1 + WORTH_A_TREE))
        trees = self._planted(chosen)
        return TreePlan(
            trees=trees,
            traffic=self._traffic,
            prediction=predict(self._fabric, trees, self._traffic),
            lower_bound_s=bound_s,
            alternatives=self._alternatives(choices, chosen),
        )

    def _bound_s(self, cut_bits_per_s: float) -> float:
        return max(self._access_s, 8 * self._traffic.link_bytes / cut_bits_per_s)

    def _grow(self, first: str, lengths: Mapping[LinkEnd, float]) -> TreeLinks | None:
        tree = grow_tree(self._graph, first, lengths)
        if tree is not None:
            self._pool[tree] = None
        return tree

    def _improve(self, best: _Choice, bound_s: float) -> _Choice:
        """Add trees over links that are cheap in the best split so far, until none helps."""
        firsts = list(self._graph.hops)
        num_grown = 0
        while best.seconds > bound_s * _SUFFICES and num_grown < _MOST_GROWN:
            prices = best.packing.lengths
            lengths = {end: prices[row] * self._seconds[end] for end, row in self._rows.items()}
            known = len(self._pool)
            for first in firsts[:_FIRST_SWITCHES]:
                self._grow(first, lengths)
            num_grown += _FIRST_SWITCHES
            firsts = firsts[_FIRST_SWITCHES:] + firsts[:_FIRST_SWITCHES]
            if len(self._pool) == known:
                if num_grown >= len(firsts):
                    break
                continue
            best = self._pack(tuple(self._pool))
        return best

    def _pack(self, trees: tuple[TreeLinks, ...]) -> _Choice:
        if not any(trees):
            return _Choice(trees, Packing(0.0, (1.0,), ()), self._access_s)
        matrix = np.zeros((len(self._rows), len(trees)))
        for column, tree in enumerate(trees):
            for end in tree:
                matrix[self._rows[end], column] = self._seconds[end]
        packing = pack_trees(matrix)
        return _Choice(trees, packing, max(self._access_s, packing.seconds))

    def _by_number(self, best: _Choice, max_trees: int) -> list[_Choice]:
        """Return the best choices found of 1, 2, ... trees, among those with a share in `best`."""
        ranked = sorted(range(len(best.trees)), key=lambda i: (-best.packing.shares[i], i))
        kept = [best.trees[i] for i in ranked if best.packing.shares[i] > 1e-6][:max_trees]
        current = self._pack(tuple(kept))
        choices = [current]
        while len(current.trees) > 1:
            current = min(
                (
                    self._pack(current.trees[:i] + current.trees[i + 1 :])
                    for i in range(len(current.trees))
                ),
                key=lambda choice: choice.seconds,
            )
            choices.append(current)
        choices[-1] = self._singles()[0]
        return choices[::-1]

    def _singles(self) -> list[_Choice]:
        """Return every known tree alone, fastest first."""
        no_prices = (0.0,) * len(self._rows)
        singles: list[_Choice] = []
        for tree in self._pool:
            seconds = max([self._access_s, *(self._seconds[end] for end in tree)])
            singles.append(_Choice((tree,), Packing(seconds, (1.0,), no_prices), seconds))
        return sorted(singles, key=lambda choice: (choice.seconds, len(choice.trees[0])))

    def _alternatives(self, choices: list[_Choice], chosen: _Choice) -> tuple[Alternative, ...]:
        """Return fewer trees, other single trees and the ring, fastest first."""
        others = choices[: choices.index(chosen)]
        singles = [c for c in self._singles() if all(c.trees != o.trees for o in choices)]
        found: list[Alternative] = []
        for choice in (*others, *singles[:_NUM_ALTERNATIVES]):
            trees = self._planted(choice)
            seconds = choice.seconds + latency_s(self._fabric, trees, self._traffic)
            found.append(Alternative(label=describe_trees(trees), seconds=seconds, trees=trees))
        found = sorted(found, key=lambda each: each.seconds)[:_NUM_ALTERNATIVES]
        ring = predict_ring(self._fabric, self._attachments, self._traffic)
        if ring is not None:
            found.append(Alternative(label="ring among the hosts", seconds=ring.seconds))
        return tuple(sorted(found, key=lambda each: each.seconds))

    def _planted(self, choice: _Choice) -> tuple[PlannedTree, ...]:
        """Return planned trees with shares, largest share first."""
        trees: list[PlannedTree] = []
        wanted = list(dict.fromkeys(self._roots))
        shares = zip(choice.trees, choice.packing.shares, strict=True)
        for links, share in sorted(shares, key=lambda one: -one[1]):
            neighbours = tree_neighbours(self._graph, links)
            able = possible_roots(self._graph, neighbours)
            root = next((switch for switch in wanted if switch in able), None)
            if root is None:
                root = center(self._graph, neighbours)
            else:
                wanted.remove(root)
            trees.append(plant(self._fabric, neighbours, root, self._attachments, share))
        return tuple(trees)
