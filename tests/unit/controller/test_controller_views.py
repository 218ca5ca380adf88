# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Views: tree shapes, shares of slots, jobs that should change, and host allreduce."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from planned_trees import leaf_spine, planned_trees, worker_at
from switchfold.controller.config import ControllerConfig, SwitchConfig
from switchfold.controller.database.database import Database
from switchfold.controller.errors import InvalidJobError, NoRoomError, NoTreeError
from switchfold.controller.fabric.fabric import Fabric
from switchfold.controller.jobs.job import Job, PathChoice, Tree, View, ViewState
from switchfold.controller.jobs.job_request import JobRequest
from switchfold.controller.slots.max_min_fairness import Demand, fair_shares
from switchfold.controller.slots.slot_allocator import SlotAllocator, split_slots
from switchfold.controller.views.views import Views
from switchfold.hostlib.slots.wire import NUM_SLOTS


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "state.sqlite3")
    yield database
    database.close()


@pytest.fixture
def views(database: Database) -> Views:
    switches = tuple(SwitchConfig(name=f"s{n}", address="127.0.0.1:1") for n in (1, 2))
    return Views(ControllerConfig(switches=switches), database, {})


def start(database: Database, views: Views, name: str, **options: Any) -> Job:
    """Plan a job of one worker and store it as running."""
    member = worker_at(0, options.pop("switch", "s1"), 1, options.pop("peer_port", 7000))
    job = database.create_job(JobRequest(name=name, num_workers=1, **options))
    _settle(database, views.plan(job, [member]))
    return database.start_job(job.job_number)


def _settle(database: Database, view: View) -> None:
    """Store the views as a view change leaves them."""
    for old in database.job(view.job_number).live_views:
        if old.generation != view.generation:
            database.store_view(dataclasses.replace(old, state=ViewState.REMOVED))
    database.store_view(dataclasses.replace(view, state=ViewState.INSTALLED))


def rebalance(database: Database, views: Views) -> list[str]:
    """Change the views of all named jobs at once until none is named; return the jobs in order."""
    changed: list[str] = []
    while jobs := views.rebalance():
        assert len(changed) < 100, changed
        planned = [views.plan(job, job.view.members) for job in jobs if job.view]
        assert_no_overlap(database)
        for view in planned:
            _settle(database, view)
        changed.extend(job.name for job in jobs)
    return changed


def assert_no_overlap(database: Database) -> None:
    for switch in ("s1", "s2"):
        taken: list[int] = []
        for view in database.live_views():
            for placement in view.placements(switch):
                taken.extend(placement.slots)
        assert len(set(taken)) == len(taken), "two trees hold one slot"
        assert max(taken, default=0) < NUM_SLOTS


def held(database: Database) -> dict[str, int]:
    jobs = database.jobs(is_live_only=True)
    return {job.name: job.view.slot_count for job in jobs if job.view}


def test_tree_of_leaves_and_a_spine_names_workers_on_every_level():
    switches, links = leaf_spine(2, 1)
    members = [worker_at(0, "l1", 1), worker_at(2, "l1", 2), worker_at(3, "l2", 1)]
    (tree,) = planned_trees(switches, links, members)
    nodes = {node.switch: node for node in tree.nodes}
    assert tree.nodes[0].parent is None
    leaf = nodes["l1"]
    assert [(c.child_id, c.worker_id, c.contributor_mask) for c in leaf.children[:2]] == [
        (0, 0, 0b1),
        (2, 2, 0b100),
    ]
    for node in tree.nodes:
        assert len({child.child_id for child in node.children}) == len(node.children)
        if node.parent is None:
            assert node.num_workers == 3
            assert sum(child.contributor_mask for child in node.children) == 0b1101
            continue
        above = nodes[node.parent.switch]
        (child,) = [child for child in above.children if child.switch == node.switch]
        assert (child.child_id, child.num_workers) == (node.parent.child_id, node.num_workers)
        assert (child.udp_port, node.parent.child_bitmap) == (21318, 0)


def test_tree_of_a_large_view_names_children():
    switches, links = leaf_spine(2, 1)
    members = [worker_at(n, f"l{n // 20 + 1}", n % 20 + 1) for n in range(40)]
    (tree,) = planned_trees(switches, links, members)
    for node in tree.nodes:
        assert [child.child_id for child in node.children] == list(range(len(node.children)))
        assert all(child.contributor_mask == 1 << child.child_id for child in node.children)
        if node.parent is not None:
            assert node.parent.child_bitmap == 1 << node.parent.child_id
    view = View(generation=1, job_number=1, members=tuple(members), trees=(tree,))
    assert view.attachment(39).child_id == 19
    assert view.attachment(39).switch == "l2"


def test_slots_are_split_by_share():
    assert split_slots([1.0], 5) == [5]
    assert split_slots([0.5, 0.5], 5) == [3, 2]
    assert split_slots([0.75, 0.25], 100) == [75, 25]
    assert split_slots([0.9, 0.1], 2) == [1, 1]


def test_memory_places_stripes_beside_each_other_on_a_leaf():
    switches, links = leaf_spine(2, 2)
    shape = planned_trees(switches, links, [worker_at(0, "l1", 1), worker_at(1, "l2", 1)])
    assert len(shape) == 1, "one worker per leaf: the workers' links are the bottleneck"
    twice = (dataclasses.replace(shape[0], share=0.5),) * 2
    memory = SlotAllocator([], num_slots=100)
    trees = memory.place(twice, 60)
    assert trees is not None
    assert [tree.slot_count for tree in trees] == [30, 30]
    assert [tree.nodes[0].slot_base for tree in trees] == [0, 30]
    assert memory.place(twice, 101) is None
    assert memory.most_slots(twice, 500) == 100


def test_fair_shares():
    one = {"s1": 1.0}
    assert fair_shares([Demand(1, 1, 50, one), Demand(2, 1, 500, one)], {"s1": 200}) == {
        1: 50,
        2: 150,
    }
    assert fair_shares([Demand(1, 3, 500, one), Demand(2, 1, 500, one)], {"s1": 200}) == {
        1: 150,
        2: 50,
    }
    both = {"s1": 1.0, "s2": 0.5}
    shares = fair_shares(
        [Demand(1, 1, 900, both), Demand(2, 1, 900, one), Demand(3, 1, 900, {"s2": 1.0})],
        {"s1": 300, "s2": 100},
    )
    assert shares == {1: 66, 2: 233, 3: 66}
    assert fair_shares([], {}) == {}


def test_eight_jobs_share_one_switch_and_grow_again(database: Database, views: Views):
    jobs = [start(database, views, f"job {n}") for n in range(8)]
    changed = rebalance(database, views)
    assert sorted(changed) == [f"job {n}" for n in range(8)], "each is disturbed once"
    assert sum(held(database).values()) <= NUM_SLOTS
    assert set(held(database).values()) == {NUM_SLOTS * 7 // 8 // 8}
    for job in jobs[:3]:
        database.end_job(job.job_number, "done")
    rebalance(database, views)
    assert set(held(database).values()) == {128}


def test_slots_follow_weights_and_newcomers(database: Database, views: Views):
    for n in range(16):
        start(database, views, f"job {n}")
        if n % 4 == 3:
            rebalance(database, views)
    share = NUM_SLOTS * 7 // 8 // 16
    assert all(share * 7 // 8 <= slots <= share * 9 // 8 for slots in held(database).values())
    start(database, views, "heavy", weight=2.0)
    changed = rebalance(database, views)
    assert changed[-1] == "heavy", "the others shrink first"
    slots = held(database)
    assert 1.7 < slots["heavy"] / slots["job 3"] < 2.3
    assert views.rebalance() == []


def test_job_that_asked_for_a_number_keeps_it(database: Database, views: Views):
    start(database, views, "fixed", slots_wanted=600)
    for n in range(4):
        start(database, views, f"job {n}")
    rebalance(database, views)
    assert held(database)["fixed"] == 600
    assert held(database)["job 0"] == (NUM_SLOTS * 7 // 8 - 600) // 4


def test_job_without_room_runs_between_the_hosts_and_comes_back(database: Database, views: Views):
    large = start(database, views, "large", slots_wanted=NUM_SLOTS)
    small = start(database, views, "small")
    assert small.view is not None
    assert not small.view.is_on_switch
    assert "held by large (1024)" in small.view.reason
    assert views.rebalance() == []
    database.end_job(large.job_number, "done")
    assert rebalance(database, views) == ["small"]
    assert held(database) == {"small": 128}


def test_elastic_jobs_make_room_for_one_that_asks_for_a_number(database: Database, views: Views):
    for n in range(7):
        start(database, views, f"job {n}")
    wants = start(database, views, "wants", slots_wanted=256)
    assert wants.view is not None
    assert not wants.view.is_on_switch
    rebalance(database, views)
    assert held(database)["wants"] == 256


def test_elastic_jobs_keep_a_least_share(database: Database, views: Views):
    for n in range(7):
        start(database, views, f"job {n}")
    start(database, views, "too much", slots_wanted=NUM_SLOTS - 7 * 15)
    assert rebalance(database, views) == []
    assert set(held(database).values()) == {0, 128}


def test_path_is_honoured(database: Database, views: Views):
    host = start(database, views, "host", path=PathChoice.HOST)
    assert host.view is not None
    assert (host.view.trees, host.view.reason) == ((), "asked for")
    assert views.rebalance() == []
    start(database, views, "large", slots_wanted=NUM_SLOTS)
    with pytest.raises(NoRoomError, match="no slot is free"):
        start(database, views, "must", path=PathChoice.SWITCH)
    with pytest.raises(NoRoomError, match="no slot is free"):
        start(database, views, "no peers", peer_port=0)
    with pytest.raises(InvalidJobError, match="worker 0 has no peer server"):
        start(database, views, "no peers", peer_port=0, path=PathChoice.HOST)


def test_workers_that_no_tree_joins_run_between_the_hosts(database: Database, views: Views):
    apart = [worker_at(0, "s1", 1, 7000), worker_at(1, "s2", 1, 7000)]
    job = database.create_job(JobRequest(name="apart", num_workers=2))
    assert not views.plan(job, apart).is_on_switch
    must = database.create_job(JobRequest(name="must", num_workers=2, path=PathChoice.SWITCH))
    with pytest.raises(NoTreeError):
        views.plan(must, apart)
    avoiding = views.plan(
        database.create_job(JobRequest(name="avoiding", num_workers=1)), apart[:1], avoid={"s1"}
    )
    assert not avoiding.is_on_switch


def test_job_returns_to_a_switch_that_is_back(database: Database):
    switches, links = leaf_spine(2, 2)
    rates = {"rate_bits_per_s": 10**8}
    fabric = Fabric(
        switches={switch.name: switch for switch in switches},
        links=tuple(dataclasses.replace(link, **rates) for link in links),
    )
    now = [fabric.without(switches={"p2"})]
    config = ControllerConfig(switches=tuple(switches), links=tuple(links))
    views = Views(config, database, {}, fabric=lambda job_number: now[0])
    job = database.create_job(JobRequest(name="train", num_workers=4))
    members = [worker_at(n, f"l{n // 2 + 1}", n % 2 + 1) for n in range(4)]
    _settle(database, views.plan(job, members))
    job = database.start_job(job.job_number)
    assert [tree.share for tree in job.views[-1].trees] == [1.0]
    assert views.rebalance() == []
    now[0] = fabric
    assert views.rebalance() == [job]
    _settle(database, views.plan(job, members))
    job = database.job(job.job_number)
    assert [round(tree.share, 3) for tree in job.views[-1].trees] == [0.5, 0.5]
    assert [tree.slot_count for tree in job.views[-1].trees] == [64, 64]
    assert views.rebalance() == []


def test_aborted_view_gives_its_slots_to_the_next(database: Database, views: Views):
    job = start(database, views, "large", slots_wanted=NUM_SLOTS, path=PathChoice.SWITCH)
    assert job.view is not None
    with pytest.raises(NoRoomError):
        views.plan(job, job.view.members)
    (tree,) = views.plan(job, job.view.members, replacing=job.view).trees
    assert isinstance(tree, Tree)
    assert (tree.slot_count, tree.nodes[0].slot_base) == (NUM_SLOTS, 0)
    assert tree.tree_id != job.view.trees[0].tree_id
