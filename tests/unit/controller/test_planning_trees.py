# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Planned trees: shapes, shares, avoided switches, and workers that no tree can join."""

from __future__ import annotations

import pytest

from planning_fabrics import MBIT, At, attach_all, build, leaf_spine
from switchfold.controller.errors import ConfigError, NoTreeError
from switchfold.controller.fabric.fabric import Direction, Fabric
from switchfold.controller.fabric.trees.frame_cost import Traffic
from switchfold.controller.fabric.trees.planner import plan_trees

TRAFFIC = Traffic(tensor_bytes=1 << 20, values_per_packet=352)


def test_one_switch_is_the_root():
    config = leaf_spine(1, 2, 4)
    plan = plan_trees(Fabric.of(config), attach_all(config), TRAFFIC)
    (tree,) = plan.trees
    assert tree.switches == ("s1",)
    assert [child.worker_id for child in tree.root.children] == [0, 1, 2, 3]
    assert tree.root.parent is None


def test_one_tree_per_spine_when_uplinks_are_narrow():
    config = leaf_spine(4, 2, 2, uplink_rate=25 * MBIT)
    plan = plan_trees(Fabric.of(config), attach_all(config), TRAFFIC)
    assert [tree.root.switch for tree in plan.trees] == ["s5", "s6"]
    assert [tree.share for tree in plan.trees] == pytest.approx([0.5, 0.5])
    assert plan.slot_counts(129) in {(65, 64), (64, 65)}
    load = plan.prediction.bottleneck
    assert {load.sender, load.receiver} & {"s5", "s6"}
    frames = TRAFFIC.num_frames
    assert load.num_bytes == pytest.approx(frames * 1494 / 2)
    assert load.seconds == pytest.approx(frames * 1494 * 8 / 2 / (25 * MBIT))
    assert plan.lower_bound_s == pytest.approx(load.seconds)


def test_shares_follow_the_free_bandwidth():
    config = leaf_spine(2, 2, 1, uplink_rate=50 * MBIT)
    port = config.links[0].a_port
    fabric = Fabric.of(config).with_use({Direction("s1", port): 25.0 * MBIT})
    plan = plan_trees(fabric, attach_all(config), TRAFFIC)
    shares = {tree.root.switch: tree.share for tree in plan.trees}
    assert shares == pytest.approx({"s3": 1 / 3, "s4": 2 / 3})


def test_avoided_switch_and_link():
    config = leaf_spine(2, 2, 1)
    fabric, workers = Fabric.of(config), attach_all(config)
    plan = plan_trees(fabric.without(switches={"s3"}), workers, TRAFFIC)
    assert plan.trees[0].root.switch == "s4"
    link = fabric.find_link("s4-s1")
    plan = plan_trees(fabric.without(links={link.key}), workers, TRAFFIC)
    assert plan.trees[0].root.switch == "s3"


def test_partition_names_the_workers_that_are_cut_off():
    config = leaf_spine(3, 1, 2)
    fabric = Fabric.of(config).without(links={Fabric.of(config).find_link("s2-s4").key})
    with pytest.raises(
        NoTreeError, match=r"workers 2, 3.*down or to be avoided: s2:3-s4:2"
    ) as caught:
        plan_trees(fabric, attach_all(config), TRAFFIC)
    assert caught.value.workers == (2, 3)


def test_plain_switch_takes_part_in_no_tree():
    config = build(
        {"s1": 1, "s2": 1, "s3": 0}, [("s1", "s3", MBIT), ("s3", "s2", MBIT)], plain={"s3"}
    )
    with pytest.raises(NoTreeError) as caught:
        plan_trees(Fabric.of(config), attach_all(config), TRAFFIC)
    assert caught.value.workers == (1,)
    with pytest.raises(NoTreeError, match="worker 7 at switch s3, which does not aggregate"):
        plan_trees(Fabric.of(config), [At(7, "s3", 9)], TRAFFIC)


def test_links_are_found_by_either_end():
    fabric = Fabric.of(build({"s1": 0, "s2": 0}, [("s1", "s2", MBIT), ("s1", "s2", MBIT)]))
    assert fabric.find_link("s2:2-s1:2") == fabric.links[1]
    with pytest.raises(ConfigError, match="may be any of s1:1-s2:1, s1:2-s2:2"):
        fabric.find_link("s2-s1")
    with pytest.raises(ConfigError, match="no link 's1-s9'"):
        fabric.find_link("s1-s9")
