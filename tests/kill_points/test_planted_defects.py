# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The invariants can fail: each defect that is planted in a sound world is found."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from kill_points.generations import GenerationHistory
from kill_points.invariants import MARK, Rows, violations
from kill_points.scene import Scene, play
from kill_points.state_file import State
from kill_points.switch_tables import Action, Key, Tables
from kill_points.world import World


@dataclass
class Sight:
    """What database, switches and row servers say at one moment."""

    state: State
    switches: dict[str, Tables]
    routes: dict[str, dict[Key, Action]]
    rows: Rows

    def found(self) -> list[str]:
        return violations(self.state, self.switches, self.routes, self.rows)

    def entries(self, table: str) -> dict[Key, Action]:
        """Return the first switch's entries of a table."""
        return self.switches["s1"].entries[table]

    def tree(self, number: int) -> dict[str, Any]:
        """Return the tree of the first or second job's view."""
        return self.state.installed_views[number]["trees"][0]

    def base(self, number: int) -> dict[str, Any]:
        """Return the same tree's node at the first switch."""
        return next(node for node in self.tree(number)["nodes"] if node["switch"] == "s1")


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sight]:
    """Return a world of two jobs, one with hot rows."""
    with World(tmp_path_factory.mktemp("k")) as world:
        stages = {stage.name: stage for stage in Scene(world, 1).stages}
        for name in ("start", "rows", "join", "loss", "leave", "second"):
            play(world, stages[name])
        yield Sight(world.state(), world.read_switches(), world.routes, dict(world.rows))


@pytest.fixture
def sight(seen: Sight) -> Sight:
    return copy.deepcopy(seen)


def test_sound_world_has_no_violation(sight: Sight) -> None:
    assert sight.found() == []
    assert all(sight.entries(t) for t in ("job", "worker", "worker_address", "outcome", "hot_row"))


@pytest.mark.parametrize(
    "table", ["ipv4_forward", "job", "worker", "worker_address", "outcome", "hot_row"]
)
def test_entry_that_is_missing_changed_or_left_is_found(sight: Sight, table: str) -> None:
    entries = sight.entries(table)
    key, (action, params) = next(item for item in entries.items() if item[0] != MARK)
    del entries[key]
    assert sight.found() == [f"switch s1, table {table}: no {key}"]
    entries[key] = action, {**params, "more": 1}
    (found,) = sight.found()
    assert found.startswith(f"switch s1, table {table}: {key} is ")
    entries[key] = action, params
    entries[*key[:-1], 999] = action, params
    assert sight.found() == [f"switch s1, table {table}: {(*key[:-1], 999)} of no live view"] or (
        table == "job" and len(sight.found()) == 1
    )


def test_multicast_group_that_is_left_missing_or_wrong_is_found(sight: Sight) -> None:
    groups = sight.switches["s1"].groups
    groups[999] = {(1, 1)}
    assert sight.found() == ["switch s1, multicast groups: 999 of no live view"]
    del groups[999]
    number, replicas = next(iter(groups.items()))
    groups[number] = replicas | {(7, 7)}
    (found,) = sight.found()
    assert found.startswith(f"switch s1, multicast groups: {number} is ")
    del groups[number]
    assert sight.found() == [f"switch s1, multicast groups: no {number}"]


def test_slot_of_two_views_is_found(sight: Sight) -> None:
    first, second = sight.base(0), sight.base(1)
    second["slot_base"] = first["slot_base"] + sight.tree(0)["slot_count"] - 1
    tree_id = sight.tree(1)["tree_id"]
    sight.entries("job")[tree_id,][1]["slot_base"] = second["slot_base"]
    (found,) = sight.found()
    assert found.startswith("switch s1: view ")
    assert " holds range(" in found


def test_slots_of_hot_rows_that_another_view_holds_are_found(sight: Sight) -> None:
    rows, other = (0, 1) if sight.tree(0)["row_servers"] else (1, 0)
    base = sight.base(rows)["row_base"]
    sight.base(other)["slot_base"] = base
    sight.entries("job")[sight.tree(other)["tree_id"],][1]["slot_base"] = base
    assert any("hot rows of view" in found for found in sight.found())


def test_tree_id_that_is_given_twice_is_found(sight: Sight) -> None:
    sight.tree(1)["tree_id"] = sight.tree(0)["tree_id"]
    assert any(f"id {sight.tree(0)['tree_id']} is of " in found for found in sight.found())


def end_job(sight: Sight) -> None:
    set_state(sight, "ended")


def let_job_wait(sight: Sight) -> None:
    set_state(sight, "waiting")


def set_state(sight: Sight, state: str) -> None:
    number = sight.state.installed_views[0]["job_number"]
    sight.state.jobs[number]["state"] = state


def forget_jobs(sight: Sight) -> None:
    sight.state.jobs.clear()


def plan_another(sight: Sight) -> None:
    view: dict[str, Any] = {
        **copy.deepcopy(sight.state.installed_views[0]),
        "state": "planned",
        "trees": [],
    }
    sight.state.views.append(view)


@pytest.mark.parametrize(
    ("plant", "text"),
    [
        (end_job, "has ended, and holds the slots"),
        (let_job_wait, "waits, with views"),
        (plan_another, "not with one that is installed"),
        (forget_jobs, "which is not there"),
    ],
)
def test_slots_that_nobody_needs_are_found(
    sight: Sight, plant: Callable[[Sight], None], text: str
) -> None:
    plant(sight)
    assert any(text in found for found in sight.found())


def test_mark_that_is_behind_is_found(sight: Sight) -> None:
    sight.entries("worker_address")[MARK][1]["address"] -= 100
    (found,) = sight.found()
    assert found.startswith("switch s1 has noted ")


def test_generations_that_go_back_are_found(sight: Sight) -> None:
    history = GenerationHistory()
    assert history.note(sight.state, sight.switches, {"w": [5, 5, 7]}) == []
    assert history.note(sight.state, sight.switches, {"w": [5, 7, 6]})
    newest = history.newest
    sight.state.generation = newest - 1
    (found,) = history.note(sight.state, sight.switches, {})
    assert found.startswith(f"the database counts from {newest - 1}")
    sight.state.generation = newest + 1
    lower = {**sight.state.views[0], "generation": newest - 10_000}
    sight.state.views.append(lower)
    (found,) = history.note(sight.state, sight.switches, {})
    assert found.startswith(f"generations [{newest - 10_000}] are new, and not above")
    sight.state.views.clear()
    assert any("the database does not" in f for f in history.note(sight.state, sight.switches, {}))
