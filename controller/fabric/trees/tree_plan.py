# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A plan: the aggregation trees of a job, their predicted cost, and the next best plans."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ..fabric import Direction, Fabric, Hop
from .frame_cost import Traffic

MAX_CHILDREN: Final = 32
"""Most children of a switch in a tree: the width of the bitmap of arrived children."""


@dataclass(frozen=True, kw_only=True)
class PlannedChild:
    """A child of a node: a worker or a switch."""

    port: int
    """Port of the node's switch."""
    num_workers: int
    """1 for a worker; for a switch, all workers below it."""
    worker_id: int | None = None
    switch: str | None = None


@dataclass(frozen=True, kw_only=True)
class PlannedNode:
    """One switch of a tree."""

    switch: str
    parent: Hop | None
    """Hop to the parent; None at the root."""
    children: tuple[PlannedChild, ...]
    """Workers by id, then switches by port; the position is the child id."""

    @property
    def num_workers(self) -> int:
        """Number of workers at and below this switch."""
        return sum(child.num_workers for child in self.children)


@dataclass(frozen=True, kw_only=True)
class PlannedTree:
    """One aggregation tree."""

    nodes: tuple[PlannedNode, ...]
    """Root first; parents before their children."""
    share: float
    """Share of the view's slots, and so of the bytes; a plan's shares add up to 1."""

    @property
    def root(self) -> PlannedNode:
        """The node without a parent."""
        return self.nodes[0]

    @property
    def switches(self) -> tuple[str, ...]:
        """Names of all switches, root first."""
        return tuple(node.switch for node in self.nodes)

    @property
    def depth(self) -> int:
        """Most links from a worker to the root."""
        depths: dict[str, int] = {}
        for node in self.nodes:
            depths[node.switch] = 1 if node.parent is None else depths[node.parent.switch] + 1
        return max(depths.values())

    def node(self, switch: str) -> PlannedNode:
        """Return the node of a switch; KeyError when it is not in the tree."""
        for node in self.nodes:
            if node.switch == switch:
                return node
        raise KeyError(switch)


@dataclass(frozen=True, kw_only=True)
class LinkLoad:
    """The load of one allreduce on one direction of a link."""

    direction: Direction
    sender: str
    receiver: str
    num_bytes: float
    """Bytes as port counters count them: frames without preamble, gap and check sequence."""
    rate_bits_per_s: float
    residual_bits_per_s: float
    seconds: float
    """Time of these bytes, and of what the rate counts beyond frames, at the residual rate."""


@dataclass(frozen=True, kw_only=True)
class PredictedCost:
    """Cost of one allreduce."""

    seconds: float
    """The slowest link's time, plus the latency of the longest path to a root and back."""
    latency_s: float
    loads: tuple[LinkLoad, ...]
    """In the order of sender and receiver."""

    @property
    def bottleneck(self) -> LinkLoad:
        """The slowest direction."""
        return max(self.loads, key=lambda load: load.seconds)


@dataclass(frozen=True, kw_only=True)
class Alternative:
    """Other trees, or a ring, for the same allreduce."""

    label: str
    """Such as "1 tree, root s4" or "ring among the hosts"."""
    seconds: float
    trees: tuple[PlannedTree, ...] = ()
    """Empty for a ring."""


@dataclass(frozen=True, kw_only=True)
class TreePlan:
    """Trees of a job and their predicted cost."""

    trees: tuple[PlannedTree, ...]
    traffic: Traffic
    prediction: PredictedCost
    lower_bound_s: float
    """No set of trees over this fabric can be faster, latency not counted."""
    alternatives: tuple[Alternative, ...] = ()
    """Next best first."""

    @property
    def seconds(self) -> float:
        """Predicted time of one allreduce."""
        return self.prediction.seconds

    @property
    def label(self) -> str:
        """Describe the trees in a few words."""
        return describe_trees(self.trees)

    def slot_counts(self, total: int) -> tuple[int, ...]:
        """Split `total` slots among the trees by their shares, at least one each.

        Raises ValueError when there are fewer slots than trees.
        """
        if total < len(self.trees):
            raise ValueError(f"{total} slots are too few for {len(self.trees)} trees")
        spare = total - len(self.trees)
        exact = [max(tree.share * total - 1, 0.0) for tree in self.trees]
        scale = spare / sum(exact) if sum(exact) else 0.0
        counts = [int(part * scale) for part in exact]
        by_remainder = sorted(range(len(counts)), key=lambda i: (counts[i] - exact[i] * scale, i))
        for index in by_remainder[: spare - sum(counts)]:
            counts[index] += 1
        return tuple(count + 1 for count in counts)

    def with_slots(self, fabric: Fabric, slot_counts: Sequence[int]) -> TreePlan:
        """Return the plan with the shares that follow from whole slots."""
        total = sum(slot_counts)
        trees = tuple(
            replace(tree, share=count / total)
            for tree, count in zip(self.trees, slot_counts, strict=True)
        )
        return replace(self, trees=trees, prediction=predict(fabric, trees, self.traffic))


def describe_trees(trees: Sequence[PlannedTree]) -> str:
    """Describe trees in a few words, such as "2 trees, roots s5 and s6"."""
    roots = [tree.root.switch for tree in trees]
    if len(roots) == 1:
        return f"1 tree, root {roots[0]}"
    return f"{len(roots)} trees, roots {', '.join(roots[:-1])} and {roots[-1]}"


def tree_directions(tree: PlannedTree) -> Iterator[Direction]:
    """Yield the directions of all links of a tree; a chunk crosses each once.

    Several workers at one port yield its directions several times.
    """
    for node in tree.nodes:
        for child in node.children:
            yield Direction(node.switch, child.port)
            if child.worker_id is not None:
                yield Direction(node.switch, child.port, is_inward=True)
        if node.parent is not None:
            yield Direction(node.switch, node.parent.port)


def predict(fabric: Fabric, trees: Sequence[PlannedTree], traffic: Traffic) -> PredictedCost:
    """Return what one allreduce costs over these trees.

    Every chunk crosses each link of its tree once in each direction: one contribution up, one
    result down.
    """
    shares: dict[Direction, float] = defaultdict(float)
    for tree in trees:
        for direction in tree_directions(tree):
            shares[direction] += tree.share
    loads = tuple(
        link_load(
            fabric,
            direction,
            counted_bytes=share * traffic.counted_bytes,
            link_bytes=share * traffic.link_bytes,
        )
        for direction, share in shares.items()
    )
    latency = latency_s(fabric, trees, traffic)
    return PredictedCost(
        seconds=max(load.seconds for load in loads) + latency,
        latency_s=latency,
        loads=tuple(sorted(loads, key=lambda load: (load.sender, load.receiver, load.direction))),
    )


def latency_s(fabric: Fabric, trees: Sequence[PlannedTree], traffic: Traffic) -> float:
    """Return the time of one frame from the farthest worker to its root and back."""
    return max(_round_trip_s(fabric, tree, traffic) for tree in trees)


def link_load(
    fabric: Fabric, direction: Direction, *, counted_bytes: float, link_bytes: float
) -> LinkLoad:
    """Return the load of a direction that carries so many bytes."""
    sender, receiver = fabric.ends(direction)
    residual = fabric.residual(direction)
    return LinkLoad(
        direction=direction,
        sender=sender,
        receiver=receiver,
        num_bytes=counted_bytes,
        rate_bits_per_s=fabric.rate(direction),
        residual_bits_per_s=residual,
        seconds=8 * link_bytes / residual,
    )


def _round_trip_s(fabric: Fabric, tree: PlannedTree, traffic: Traffic) -> float:
    to_root: dict[str, float] = {}
    longest = 0.0
    for node in tree.nodes:
        ports = {child.port for child in node.children if child.worker_id is not None}
        if node.parent is None:
            to_root[node.switch] = 0.0
        else:
            rate = fabric.rate(Direction(node.switch, node.parent.port))
            to_root[node.switch] = to_root[node.parent.switch] + traffic.latency_s((rate,))
        if ports:
            rate = min(fabric.rate(Direction(node.switch, port)) for port in ports)
            longest = max(longest, to_root[node.switch] + traffic.latency_s((rate,)))
    return 2 * longest
