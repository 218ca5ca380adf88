# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The planner against all trees of small fabrics, and properties of trees in random ones."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planning_fabrics import MBIT, At, attach_all, build, leaf_spine
from switchfold.controller.config import ControllerConfig
from switchfold.controller.errors import NoTreeError
from switchfold.controller.fabric.fabric import Fabric
from switchfold.controller.fabric.reachability import SlotDemand
from switchfold.controller.fabric.trees.frame_cost import Traffic
from switchfold.controller.fabric.trees.packing import pack_trees
from switchfold.controller.fabric.trees.planner import plan_trees
from switchfold.controller.fabric.trees.tree_plan import MAX_CHILDREN, PlannedTree, TreePlan

TRAFFIC = Traffic(tensor_bytes=4 << 20, values_per_packet=352)
RATES = (10 * MBIT, 20 * MBIT, 40 * MBIT, 100 * MBIT)
OPTIMUM_FACTOR = 1.021
"""A plan may be slower than the best split over all trees by what a further tree must gain."""


def random_fabric(seed: int, *, num_switches: int, num_links: int) -> ControllerConfig:
    """Return a connected fabric with hosts on two or more switches, and links of any rates."""
    chance = random.Random(seed)
    names = [f"s{n}" for n in range(1, num_switches + 1)]
    links = [
        (names[chance.randrange(i)], names[i], chance.choice(RATES)) for i in range(1, num_switches)
    ]
    while len(links) < num_links:
        a, b = chance.sample(names, 2)
        links.append((a, b, chance.choice(RATES)))
    leaves = chance.sample(names, chance.randint(2, num_switches))
    hosts = {name: chance.randint(1, 2) if name in leaves else 0 for name in names}
    return build(hosts, links, host_rate=chance.choice((50, 1000)) * MBIT)


def all_trees(config: ControllerConfig) -> Iterator[tuple[int, ...]]:
    """Yield, as link numbers, every tree over all switches with hosts and ends only there."""
    leaves = {switch.name for switch in config.switches if switch.hosts}
    for size in range(len(leaves) - 1, len(config.switches)):
        for chosen in itertools.combinations(range(len(config.links)), size):
            group = {name: {name} for name in (s.name for s in config.switches)}
            degree: dict[str, int] = {}
            is_tree = True
            for number in chosen:
                link = config.links[number]
                for end in (link.a, link.b):
                    degree[end] = degree.get(end, 0) + 1
                if link.b in group[link.a]:
                    is_tree = False
                    break
                joined = group[link.a] | group[link.b]
                for name in joined:
                    group[name] = joined
            ends_at_leaves = all(name in leaves for name, count in degree.items() if count == 1)
            if is_tree and ends_at_leaves and leaves | degree.keys() <= group[min(leaves)]:
                yield chosen


def best_seconds(config: ControllerConfig) -> float:
    """Return the time of the best split over all trees, latency not counted."""
    trees = list(all_trees(config))
    bits = 8 * TRAFFIC.link_bytes
    matrix = np.zeros((len(config.links), len(trees)))
    for column, tree in enumerate(trees):
        for number in tree:
            matrix[number, column] = bits / config.links[number].rate_bits_per_s
    access = max(bits / host.rate_bits_per_s for s in config.switches for host in s.hosts)
    packing = pack_trees(matrix)
    # Prices that make every tree cost at least 1 and add up to 1 / time prove the optimum.
    prices = np.array(packing.lengths)
    assert (prices @ matrix >= 1 - 1e-6).all()
    assert prices.sum() == pytest.approx(1 / packing.seconds)
    assert (matrix @ np.array(packing.shares)).max() == pytest.approx(packing.seconds)
    return max(access, packing.seconds)


@pytest.mark.parametrize("seed", range(60))
def test_plan_is_the_best_of_all_trees(seed: int):
    config = random_fabric(seed, num_switches=4 + seed % 3, num_links=6 + seed % 4)
    plan = plan_trees(Fabric.of(config), attach_all(config), TRAFFIC)
    best = best_seconds(config)
    seconds = plan.seconds - plan.prediction.latency_s
    assert plan.lower_bound_s <= best * (1 + 1e-6)
    assert best * (1 - 1e-6) <= seconds <= best * OPTIMUM_FACTOR
    check_trees(config, attach_all(config), plan)


def check_trees(config: ControllerConfig, workers: list[At], plan: TreePlan) -> None:
    fabric = Fabric.of(config)
    assert sum(tree.share for tree in plan.trees) == pytest.approx(1.0)
    for tree in plan.trees:
        reached = [
            child.worker_id
            for n in tree.nodes
            for child in n.children
            if child.worker_id is not None
        ]
        assert sorted(reached) == sorted(worker.worker_id for worker in workers)
        assert len(set(tree.switches)) == len(tree.switches)
        assert all(len(node.children) <= MAX_CHILDREN for node in tree.nodes)
        assert tree.root.parent is None
        assert tree.root.num_workers == len(workers)
        check_links(fabric, tree)


def check_links(fabric: Fabric, tree: PlannedTree) -> None:
    seen: set[str] = set()
    for node in tree.nodes:
        assert (node.parent is None) == (not seen), "one root, and it comes first"
        seen.add(node.switch)
        if node.parent is None:
            continue
        assert node.parent.switch in seen, "parents come first, so there is no cycle"
        link = fabric.link_at(node.switch, node.parent.port)
        assert link is not None
        assert link.key not in fabric.down_links
        assert (node.parent.switch, node.parent.peer_port) in link.ends
        above = tree.node(node.parent.switch).children
        (child,) = [child for child in above if child.switch == node.switch]
        assert (child.port, child.num_workers) == (node.parent.peer_port, node.num_workers)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    num_switches=st.integers(2, 12),
    more_links=st.integers(0, 12),
    avoided=st.integers(0, 3),
    tie_break=st.integers(0, 5),
)
def test_trees_are_trees(
    seed: int, num_switches: int, more_links: int, avoided: int, tie_break: int
):
    config = random_fabric(seed, num_switches=num_switches, num_links=num_switches - 1 + more_links)
    fabric = Fabric.of(config)
    workers = attach_all(config)
    chance = random.Random(seed)
    keys = {link.key for link in chance.sample(config.links, min(avoided, len(config.links)))}
    usable = fabric.without(links=keys)
    plan, cut_off = None, ()
    try:
        plan = plan_trees(usable, workers, TRAFFIC, tie_break=tie_break)
    except NoTreeError as exc:
        cut_off = exc.workers
    if plan is None:
        assert keys
        assert 0 < len(cut_off) < len(workers)
        return
    check_trees(config, workers, plan)
    assert plan == plan_trees(usable, workers, TRAFFIC, tie_break=tie_break)
    used = {(n.switch, n.parent.port) for tree in plan.trees for n in tree.nodes if n.parent}
    assert not used & {end for link in config.links if link.key in keys for end in link.ends}
    assert plan.seconds - plan.prediction.latency_s >= plan.lower_bound_s * (1 - 1e-9)


def test_more_leaves_than_one_switch_takes_children():
    config = leaf_spine(40, 2, 4, uplink_rate=100 * MBIT)
    workers = attach_all(config)
    plan = plan_trees(Fabric.of(config), workers, TRAFFIC)
    check_trees(config, workers, plan)
    assert plan.trees[0].depth > 2


def test_full_switches_take_no_more_children():
    config = build({"s1": 32, "s2": 32}, [("s1", "s2", MBIT)])
    with pytest.raises(NoTreeError, match="at most 32 children"):
        plan_trees(Fabric.of(config), attach_all(config), TRAFFIC)
    config = build({"s1": 33}, [])
    with pytest.raises(NoTreeError, match="takes at most 32"):
        plan_trees(Fabric.of(config), attach_all(config), TRAFFIC)


def test_jobs_spread_over_equal_spines():
    config = leaf_spine(2, 4, 1)
    roots = {
        plan_trees(Fabric.of(config), attach_all(config), TRAFFIC, tie_break=job)
        .trees[0]
        .root.switch
        for job in range(6)
    }
    assert roots == {"s3", "s4", "s5", "s6"}


def test_switches_without_room_are_avoided():
    config = leaf_spine(2, 2, 1)
    fabric, workers = Fabric.of(config), attach_all(config)
    free = {"s1": 100, "s2": 100, "s3": 10, "s4": 80}
    plan = plan_trees(fabric, workers, TRAFFIC, slots=SlotDemand(wanted=64, free=free))
    assert plan.trees[0].root.switch == "s4"
    slots = SlotDemand(wanted=64, free={**free, "s4": 3})
    plan = plan_trees(fabric, workers, TRAFFIC, slots=slots)
    assert plan.trees[0].root.switch == "s3"
    slots = SlotDemand(wanted=64, free={**free, "s2": 0})
    with pytest.raises(NoTreeError, match="worker 1 at switch s2, which has no slot free"):
        plan_trees(fabric, workers, TRAFFIC, slots=slots)


@settings(deadline=None)
@given(shares=st.lists(st.floats(0.01, 1), min_size=1, max_size=8), spare=st.integers(0, 1000))
def test_slots_are_split_by_shares(shares: list[float], spare: int):
    config = leaf_spine(2, 1, 1)
    plan = plan_trees(Fabric.of(config), attach_all(config), TRAFFIC)
    total = len(shares) + spare
    trees = tuple(
        PlannedTree(nodes=plan.trees[0].nodes, share=share / sum(shares)) for share in shares
    )
    counts = TreePlan(
        trees=trees, traffic=TRAFFIC, prediction=plan.prediction, lower_bound_s=0.0
    ).slot_counts(total)
    assert sum(counts) == total
    assert min(counts) >= 1
