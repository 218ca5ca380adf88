# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Where the hot rows of a view lie: trees, slots, multicast groups, table entries."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from planned_trees import leaf_spine, worker_at
from switchfold.controller.config import ControllerConfig, LinkConfig, SwitchConfig
from switchfold.controller.database.database import MAX_TREE_ID, Database
from switchfold.controller.database.view_record import dump_view, load_view
from switchfold.controller.jobs.job import (
    Job,
    PathChoice,
    Placement,
    RowServer,
    Tree,
    View,
    ViewState,
    Worker,
    rows_in,
    slots_of_rows,
)
from switchfold.controller.jobs.job_request import JobRequest
from switchfold.controller.slots.slot_allocator import split_rows
from switchfold.controller.tables import hot_row, result_delivery, worker_admission
from switchfold.controller.tables.hot_row import RowKey, RowPlace, RowPlacement
from switchfold.controller.views.views import Views
from switchfold.hostlib.control.row_server_link import ROW_DTYPE
from switchfold.hostlib.slots.wire import NUM_SLOTS


def row_server(
    server_id: int, switch: str = "s1", port: int = 9, rows_wanted: int = 100
) -> RowServer:
    return RowServer(
        server_id=server_id,
        identity=f"{server_id:032x}",
        address=f"10.0.9.{server_id + 1}",
        mac=f"02:00:00:00:09:{server_id + 1:02x}",
        udp_port=6000 + server_id,
        port=port,
        switch=switch,
        rows_wanted=rows_wanted,
    )


class Planner:
    """Plans views of jobs, and stores them as a view change would leave them."""

    def __init__(
        self,
        database: Database,
        switches: Sequence[SwitchConfig],
        links: Sequence[LinkConfig] = (),
    ) -> None:
        self.database = database
        config = ControllerConfig(switches=tuple(switches), links=tuple(links))
        self.views = Views(config, database, {})

    def job(self, name: str = "train", slots_wanted: int = 0, **options: Any) -> Job:
        request = JobRequest(name=name, num_workers=1, slots_wanted=slots_wanted, **options)
        return self.database.create_job(request)

    def plan(self, job: Job, members: Sequence[Worker], *servers: RowServer) -> View:
        """Plan a view beside the older ones of the job, which end then."""
        view = self.views.plan(job, members, row_servers=servers)
        self.check()
        for old in self.database.job(job.job_number).live_views:
            if old.generation != view.generation:
                self.database.store_view(dataclasses.replace(old, state=ViewState.REMOVED))
        view = dataclasses.replace(view, state=ViewState.INSTALLED)
        self.database.store_view(view)
        self.database.start_job(job.job_number)
        return view

    def check(self) -> None:
        """Fail where a slot is held twice, but for rows of an older view of the same job."""
        slots: dict[tuple[str, int], tuple[int, bool, int]] = {}
        ids: list[int] = []
        for view in self.database.live_views():
            for tree in view.trees:
                ids.append(tree.tree_id)
                for server in tree.row_servers:
                    ids.extend((server.sums_group_id, server.copies_group_id))
                for node in tree.nodes:
                    rows = range(node.row_base, node.row_base + tree.row_slots)
                    exact = range(node.slot_base, node.slot_base + tree.slot_count)
                    for slot, is_row in [(x, False) for x in exact] + [(x, True) for x in rows]:
                        assert slot < NUM_SLOTS
                        mine = (view.job_number, is_row, view.generation)
                        other = slots.get((node.switch, slot), (view.job_number, True, 0))
                        assert other[:2] == (view.job_number, True), f"{slot} is held twice"
                        assert other[2] < view.generation, f"{slot} is held twice by one view"
                        slots[node.switch, slot] = mine
        assert len(set(ids)) == len(ids), "an id names two things"
        assert all(1 <= one <= MAX_TREE_ID for one in ids)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "state.sqlite3")
    yield database
    database.close()


@pytest.fixture
def planner(database: Database) -> Planner:
    return Planner(database, [SwitchConfig(name="s1", address="127.0.0.1:1")])


MEMBERS = (worker_at(0, "s1", 1, 7000), worker_at(1, "s1", 2, 7000))


def test_rows_take_a_slot_and_a_half():
    for num_rows in range(700):
        assert rows_in(slots_of_rows(num_rows)) == num_rows
        assert slots_of_rows(rows_in(num_rows)) <= num_rows
    assert slots_of_rows(625) == 938


def test_rows_are_split_fairly():
    servers = [row_server(0, rows_wanted=10), row_server(1, rows_wanted=100), row_server(2)]
    assert split_rows(servers, 210) == [10, 100, 100]
    assert split_rows(servers, 100) == [10, 45, 45]
    assert split_rows(servers, 12) == [4, 4, 4]
    assert split_rows(servers, 0) == [0, 0, 0]


def test_two_servers_share_a_tree(planner: Planner):
    view = planner.plan(planner.job(), MEMBERS, row_server(5), row_server(2, rows_wanted=7))
    (tree,) = view.trees
    assert [(s.server_id, s.first_row, s.num_rows, s.reason) for s in tree.row_servers] == [
        (2, 0, 7, ""),
        (5, 7, 100, ""),
    ]
    assert (tree.num_rows, tree.row_slots) == (107, 161)
    assert tree.root.row_base == NUM_SLOTS - 161
    assert view.slots_on("s1") == 128 + 161
    assert view.tree_of(5) is tree
    assert view.tree_of(1) is None


def test_625_rows_fit_beside_a_job_of_43_slots(planner: Planner):
    job = planner.job(slots_wanted=43)
    first = planner.plan(job, MEMBERS, row_server(0, rows_wanted=625))
    assert first.trees[0].num_rows == 625
    again = planner.plan(job, MEMBERS, row_server(0, rows_wanted=625))
    assert again.trees[0].num_rows == 625, "a new view takes the rows of the old one over"
    assert again.trees[0].root.row_base == first.trees[0].root.row_base


def test_new_view_takes_slots_of_the_old_rows_where_no_others_are_left(planner: Planner):
    job = planner.job(slots_wanted=400)
    first = planner.plan(job, MEMBERS, row_server(0, rows_wanted=625))
    assert first.trees[0].num_rows == rows_in(1024 - 400 - 128)
    again = planner.plan(job, MEMBERS, row_server(0, rows_wanted=625))
    assert again.trees[0].root.slot_base == 400
    assert again.trees[0].num_rows == rows_in(1024 - 800)


def test_job_with_many_slots_has_fewer_rows(planner: Planner):
    view = planner.plan(planner.job(), MEMBERS, row_server(0, rows_wanted=625))
    (server,) = view.row_servers
    assert server.num_rows == 512, "128 slots stay free for the job's next view"
    assert server.reason == "512 of 625 rows fit beside the slots of all jobs"
    assert planner.views.rebalance() == []


def test_full_switch_has_no_rows(planner: Planner):
    view = planner.plan(planner.job(slots_wanted=NUM_SLOTS), MEMBERS, row_server(0))
    assert view.slot_count == NUM_SLOTS
    (server,) = view.unplaced_servers
    assert (server.num_rows, server.reason) == (
        0, "0 of 100 rows fit beside the slots of all jobs"
    )  # fmt: skip
    assert view.trees[0].row_servers == ()


def settle(planner: Planner, with_rows: dict[str, RowServer]) -> dict[str, tuple[int, int]]:
    """Let jobs change their views until none should; return the slots and rows of each."""
    for _ in range(20):
        due = planner.views.rebalance()
        if not due:
            break
        for job in due:
            servers = [with_rows[job.name]] if job.name in with_rows else []
            planner.plan(job, MEMBERS, *servers)
    else:
        pytest.fail("the jobs give each other slots without end")
    jobs = planner.database.jobs(is_live_only=True)
    return {
        job.name: (job.view.slot_count, sum(tree.num_rows for tree in job.view.trees))
        for job in jobs
        if job.view
    }


def test_rows_leave_other_jobs_their_share(planner: Planner):
    rows = {"rows": row_server(0, rows_wanted=625)}
    planner.plan(planner.job("rows"), MEMBERS, rows["rows"])
    found: list[tuple[int, int]] = []
    for n in range(7):
        planner.plan(planner.job(f"job {n}"), MEMBERS)
        held = settle(planner, rows)
        found.append(held.pop("rows"))
        assert {slots for slots, _ in held.values()} == {found[-1][0]}, "all hold the same"
    assert found == [(128, 426), (128, 341), (128, 256), (128, 170), (128, 85), (128, 0), (112, 0)]


def test_rows_make_room_for_a_job_that_asks_for_slots(planner: Planner):
    rows = {"rows": row_server(0, rows_wanted=625)}
    planner.plan(planner.job("rows"), MEMBERS, rows["rows"])
    late = planner.plan(planner.job("late", slots_wanted=512), MEMBERS)
    assert not late.is_on_switch
    assert settle(planner, rows) == {"rows": (128, 170), "late": (512, 0)}


def test_view_between_the_hosts_has_no_rows(planner: Planner):
    view = planner.plan(planner.job(path=PathChoice.HOST), MEMBERS, row_server(0))
    assert [server.reason for server in view.unplaced_servers] == ["the job runs between the hosts"]


def test_random_jobs_never_share_a_slot(tmp_path: Path):
    rng = random.Random(7)
    switches, links = leaf_spine(3, 2)
    database = Database(tmp_path / "random.sqlite3")
    planner = Planner(database, switches, links)
    names = [switch.name for switch in switches]
    jobs = [planner.job(f"job {n}", rng.choice([0, 0, 16, 40])) for n in range(6)]
    ids = [
        [row_server(k, rng.choice(names), 9, rng.randint(1, 600)) for k in range(3)] for _ in jobs
    ]
    with_rows = 0
    for _ in range(60):
        number = rng.randrange(len(jobs))
        members = [
            worker_at(k, rng.choice(names[:3]), 10 + k, 7000) for k in range(rng.randint(1, 5))
        ]
        servers = rng.sample(ids[number], rng.randint(0, 3))
        view = planner.plan(jobs[number], members, *servers)
        assert {server.server_id for server in view.row_servers} == {
            server.server_id for server in servers
        }
        for tree in view.trees:
            assert all(server.switch == tree.root.switch for server in tree.row_servers)
            first = 0
            for server in tree.row_servers:
                assert server.first_row == first
                assert 0 < server.num_rows <= server.rows_wanted
                first += server.num_rows
        assert all(server.num_rows == 0 and server.reason for server in view.unplaced_servers)
        assert load_view(dump_view(view)) == view
        with_rows += any(tree.num_rows for tree in view.trees)
    assert with_rows > 20
    database.close()


def test_tree_is_rooted_at_the_switch_of_the_server(database: Database):
    switches, links = leaf_spine(2, 2)
    members = [worker_at(0, "l1", 1, 7000), worker_at(1, "l2", 1, 7000)]
    planner = Planner(database, switches, links)
    job = planner.job()
    assert planner.plan(job, members).trees[0].root.switch.startswith("p")
    for switch in ("l1", "l2"):
        view = planner.plan(job, members, row_server(0, switch))
        assert view.trees[0].root.switch == switch
        assert view.trees[0].num_rows == 100
        assert planner.views.rebalance() == []
    apart = planner.plan(job, members, row_server(0, "l1"), row_server(1, "l2"))
    assert apart.trees[0].root.switch == "l1"
    assert [(s.server_id, s.reason) for s in apart.unplaced_servers] == [
        (1, "the server is at switch l2, the root of the job's trees is l1")
    ]
    most = [row_server(0, "l1"), row_server(1, "l2"), row_server(2, "l2")]
    assert planner.plan(job, members, *most).trees[0].root.switch == "l2"


def test_views_of_earlier_releases_are_loaded(planner: Planner):
    view = planner.plan(planner.job(), MEMBERS)
    raw = json.loads(dump_view(view))
    del raw["unplaced_servers"]
    for tree in raw["trees"]:
        del tree["row_servers"]
        for node in tree["nodes"]:
            del node["row_base"]
    assert load_view(json.dumps(raw)) == view


def rows_of(*rows: tuple[int, int, int]) -> NDArray[np.void]:
    return np.array(list(rows), ROW_DTYPE)


def test_entries_of_a_root_and_of_a_leaf(database: Database):
    switches, links = leaf_spine(2, 1)
    members = [worker_at(0, "l1", 1, 7000), worker_at(1, "l2", 1, 7000)]
    planner = Planner(database, switches, links)
    view = planner.plan(planner.job(), members, row_server(0, "l1"), row_server(1, "l1"))
    (tree,) = view.trees
    server = tree.row_servers[1]
    assert server.first_row == 100
    (root,), (leaf,) = view.placements("l1"), view.placements("l2")
    rows = rows_of((100, 33, -128), (199, 65, 127))
    entries = RowPlacement(root, server, rows).entries()
    base = root.node.row_base
    sums, copies = server.sums_group_id, server.copies_group_id
    assert entries == {
        RowKey(tree.tree_id, 100): RowPlace(
            base + 100, 2 * (base + 200) + 100, 33, 0, sums, copies
        ),
        RowKey(tree.tree_id, 199): RowPlace(
            base + 199, 2 * (base + 200) + 199, 65, 255, sums, copies
        ),
    }
    last_copy = max(place.value_copy for place in entries.values())
    assert last_copy < 2 * (base + tree.row_slots)
    assert {(p.server_group_id, p.copies_group_id) for p in entries_at(leaf, server, rows)} == {
        (0, 0)
    }
    (spine,) = view.placements("p1")
    assert {(p.server_group_id, p.copies_group_id) for p in entries_at(spine, server, rows)} == {
        (0, copies)
    }
    to_server = (server.port, 34)
    below = [(child.port, child.child_id + 1) for child in root.node.children if child.switch]
    assert group(root, sums) == [to_server]
    assert group(root, copies) == [*below, to_server]
    assert group(spine, copies) == [
        (child.port, child.child_id + 1) for child in spine.node.children
    ]
    assert hot_row.multicast_groups(leaf) == []
    assert len(hot_row.multicast_groups(spine)) == 2


def entries_at(placement: Placement, server: RowServer, rows: NDArray[np.void]) -> list[RowPlace]:
    return [*RowPlacement(placement, server, rows).entries().values()]


def group(placement: Placement, group_id: int) -> list[object]:
    groups = hot_row.multicast_groups(placement)
    (found,) = [one for one in groups if one.multicast_group_id == group_id]
    return list(found.replicas)


def test_root_admits_and_addresses_its_servers_alone(database: Database):
    switches, links = leaf_spine(2, 1)
    members = [worker_at(0, "l1", 1, 7000), worker_at(1, "l2", 1, 7000)]
    planner = Planner(database, switches, links)
    view = planner.plan(planner.job(), members, row_server(3, "l1"))
    for switch, count in (("l1", 1), ("l2", 0), ("p1", 0)):
        (placement,) = view.placements(switch)
        admitted = [
            entry
            for entry in worker_admission.table_entries(placement)
            if entry.action is not None and "admit_server" in str(entry.action)
        ]
        assert len(admitted) == count
        if admitted:
            assert (admitted[0]["worker_id"], admitted[0]["ingress_port"]) == (35, 9)
        addressed = [
            entry for entry in result_delivery.table_entries(placement) if entry["replica_id"] == 36
        ]
        assert len(addressed) == count


def test_unknown_rows_may_stay(planner: Planner):
    view = planner.plan(planner.job(), MEMBERS, row_server(0), row_server(1))
    (placement,) = view.placements("s1")
    tree: Tree = view.trees[0]
    unknown = RowPlacement(placement, tree.row_servers[1], None)
    assert unknown.entries() == {}
    assert unknown.may_keep(RowKey(tree.tree_id, 100))
    assert unknown.may_keep(RowKey(tree.tree_id, 199))
    assert not unknown.may_keep(RowKey(tree.tree_id, 99))
    assert not unknown.may_keep(RowKey(tree.tree_id + 1, 100))
    known = RowPlacement(placement, tree.row_servers[1], rows_of())
    assert not known.may_keep(RowKey(tree.tree_id, 100))
