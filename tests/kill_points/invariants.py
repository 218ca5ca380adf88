# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Decides whether database, switches and workers fit together; shares no code with the controller.

What an entry must be is written down here once more, from docs/protocol.md and p4src.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

from kill_points.state_file import Json, State
from kill_points.switch_tables import Action, Key, Tables
from switchfold.hostlib.slots.wire import EXPONENT_BIAS, MAX_WORKERS, UDP_PORT, Outcome

ROUTES: Final = "ipv4_forward"
NUM_SLOTS: Final = 1024
MARK: Final = (0, 0)
"""Entry of `worker_address` that keeps the newest generation in a switch."""
Rows = Mapping[tuple[int, int], list[list[int]]]
"""By generation and server: row, epoch and exponent of each hot row that the server has set."""


def violations(
    state: State,
    switches: Mapping[str, Tables],
    routes: Mapping[str, Mapping[Key, Action]],
    rows: Rows,
) -> list[str]:
    """Return all that is wrong while no job starts, changes or ends; `routes` as at the start."""
    found = [*_of_jobs(state), *_of_slots(state)]
    for name, tables in switches.items():
        wanted = _wanted(state, name, rows)
        found += _of_mark(name, state, tables)
        # Which routes avoid a link is not known here; they must come back with it.
        wanted.entries[ROUTES] = dict(tables.entries[ROUTES] if state.down else routes[name])
        found += _differences(name, wanted, tables)
    return found


def _of_jobs(state: State) -> Iterator[str]:
    """Find jobs with no view or with two, and views without a job that runs."""
    views: dict[int, list[str]] = defaultdict(list)
    for view in state.live_views:
        views[view["job_number"]].append(f"{view['generation']} ({view['state']})")
    for number, job in state.jobs.items():
        held = views.pop(number, [])
        if job["state"] == "ended" and held:
            yield f"job {number} has ended, and holds the slots of views {held}"
        elif job["state"] == "running" and (len(held) != 1 or "installed" not in held[0]):
            yield f"job {number} runs with views {held}, not with one that is installed"
        elif job["state"] == "waiting":
            yield f"job {number} waits, with views {held}"
    for number, held in views.items():
        yield f"views {held} are of job {number}, which is not there"


def mark_of(tables: Tables) -> int:
    """Return the newest generation that a switch has noted, 0 if none."""
    _, params = tables.entries["worker_address"].get(MARK, ("", {}))
    return params.get("address", 0)


def _of_mark(name: str, state: State, tables: Tables) -> Iterator[str]:
    """Find a switch that forgets a generation which its slots have seen."""
    newest = max((params["generation"] for _, params in tables.entries["job"].values()), default=0)
    if not newest <= mark_of(tables) <= state.generation:
        yield f"switch {name} has noted {mark_of(tables)}: has {newest}, last {state.generation}"


def _of_slots(state: State) -> Iterator[str]:
    """Find slots that two trees of live views hold on one switch, and tree ids of two trees."""
    held: dict[str, list[tuple[range, str]]] = defaultdict(list)
    ids: dict[int, str] = {}
    for view in state.live_views:
        for tree in view["trees"]:
            who = f"view {view['generation']} of job {view['job_number']}"
            groups = [(tree["tree_id"], who)]
            for server in tree["row_servers"]:
                groups += [(server[f"{kind}_group_id"], who) for kind in ("sums", "copies")]
            for number, owner in groups:
                if number in ids:
                    yield f"id {number} is of {ids[number]} and of {owner}"
                ids[number] = owner
            for node in tree["nodes"]:
                slots = range(node["slot_base"], node["slot_base"] + tree["slot_count"])
                held[node["switch"]].append((slots, who))
                rows = range(node["row_base"], node["row_base"] + _slots_of_rows(tree))
                held[node["switch"]] += [(rows, f"hot rows of {who}")] if rows else []
    for switch, leases in held.items():
        leases.sort(key=lambda lease: lease[0].start)
        for slots, who in leases:
            if slots.stop > NUM_SLOTS or not slots:
                yield f"switch {switch}: {who} holds {slots}"
        for (before, one), (after, other) in pairwise(leases):
            if after.start < before.stop:
                yield f"switch {switch}: {one} holds {before}, {other} holds {after}"


def _wanted(state: State, switch: str, rows: Rows) -> Tables:
    """Return what a switch must hold, without its routes."""
    names = ("job", "worker", "worker_address", "outcome", "hot_row")
    wanted = Tables({name: {} for name in names})
    for view in state.installed_views:
        for tree in view["trees"]:
            for node in tree["nodes"]:
                if node["switch"] == switch:
                    _add_tree(wanted, view, tree, node)
                    _add_rows(wanted, view, tree, node, rows)
    return wanted


def _add_tree(wanted: Tables, view: Json, tree: Json, node: Json) -> None:
    entries, tree_id = wanted.entries, tree["tree_id"]
    stations: list[tuple[int, Json, int]] = []
    for child in node["children"]:
        bit = 1 << child["child_id"]
        key = (tree_id, child["child_id"], child["port"], _address(child))
        params = {
            "worker_bit": bit,
            "contributor_mask": child["contributor_mask"],
            "max_contributors": child["num_workers"],
        }
        entries["worker"][key] = "admit_worker", params
        stations.append((child["child_id"] + 1, child, child["udp_port"]))
    if node["parent"]:
        stations.append((0, node["parent"], UDP_PORT))
    else:
        for server in tree["row_servers"]:
            child_id = MAX_WORKERS + server["server_id"]
            key = (tree_id, child_id, server["port"], _address(server))
            entries["worker"][key] = "admit_server", {}
            stations.append((child_id + 1, server, server["udp_port"]))
    for replica, station, udp_port in stations:
        mac = int(station["mac"].replace(":", ""), 16)
        params = {"mac": mac, "address": _address(station), "udp_port": udp_port}
        entries["worker_address"][tree_id, replica] = "set_worker_address", params
    for outcome in set(Outcome) - {Outcome.NONE, Outcome.FOREIGN_JOB}:
        entries["outcome"][tree_id, int(outcome)] = "count_outcome", {}
    entries["job"][tree_id,] = _admission(view, tree, node)
    wanted.groups[tree_id] = {(c["port"], c["child_id"] + 1) for c in node["children"]}


def _admission(view: Json, tree: Json, node: Json) -> Action:
    num_workers = len(view["members"])
    straggler = view["straggler"]
    params = {
        "generation": view["generation"],
        "slot_base": node["slot_base"],
        "slot_count": tree["slot_count"],
        "children_bitmap": sum(1 << child["child_id"] for child in node["children"]),
        "multicast_group_id": tree["tree_id"],
        "allow_partial": int(any(value is not None for value in straggler.values())),
        "level": _level(tree, node),
        "max_priority": 0,
    }
    parent = node["parent"]
    if parent is None:
        quorum = min(straggler["quorum"] or num_workers, num_workers)
        return "admit_root", {**params, "quorum": quorum, "num_workers": num_workers}
    above = {
        "parent_port": parent["port"],
        "parent_address": _address(parent),
        "child_id": parent["child_id"],
        "child_bitmap": parent["child_bitmap"],
    }
    return "admit_inner", {**params, **above}


def _add_rows(wanted: Tables, view: Json, tree: Json, node: Json, rows: Rows) -> None:
    num_rows = sum(server["num_rows"] for server in tree["row_servers"])
    below = {(c["port"], c["child_id"] + 1) for c in node["children"] if c["switch"]}
    is_root = node["parent"] is None
    for server in tree["row_servers"]:
        own = {(server["port"], MAX_WORKERS + server["server_id"] + 1)} if is_root else set[Any]()
        copies = below | own
        if own:
            wanted.groups[server["sums_group_id"]] = own
        if copies:
            wanted.groups[server["copies_group_id"]] = copies
        for row, epoch, exponent in rows.get((view["generation"], server["server_id"]), []):
            wanted.entries["hot_row"][tree["tree_id"], row] = (
                "place_row",
                {
                    "slot": node["row_base"] + row,
                    "value_copy": 2 * (node["row_base"] + num_rows) + row,
                    "epoch": epoch,
                    "exponent": exponent + EXPONENT_BIAS,
                    "server_group_id": server["sums_group_id"] if own else 0,
                    "copies_group_id": server["copies_group_id"] if copies else 0,
                },
            )


def _differences(name: str, wanted: Tables, there: Tables) -> Iterator[str]:
    for table in sorted(wanted.entries.keys() | there.entries.keys()):
        expected, actual = wanted.entries.get(table, {}), there.entries.get(table, {})
        if table == "worker_address":
            actual = {key: action for key, action in actual.items() if key != MARK}
        yield from _different(f"switch {name}, table {table}", expected, actual)
    yield from _different(f"switch {name}, multicast groups", wanted.groups, there.groups)


def _different(where: str, expected: Mapping[Any, Any], actual: Mapping[Any, Any]) -> Iterator[str]:
    if missing := sorted(expected.keys() - actual.keys()):
        yield f"{where}: no {_short(missing)}"
    if foreign := sorted(actual.keys() - expected.keys()):
        yield f"{where}: {_short(foreign)} of no live view"
    for key in sorted(expected.keys() & actual.keys()):
        if expected[key] != actual[key]:
            yield f"{where}: {key} is {actual[key]}, not {expected[key]}"


def _short(keys: Iterable[Any]) -> str:
    first, *rest = keys
    return f"{first} and {len(rest)} more" if rest else str(first)


def _slots_of_rows(tree: Json) -> int:
    """Return one slot for each row's pushes, and half a one for its values."""
    num_rows = sum(server["num_rows"] for server in tree["row_servers"])
    return num_rows + (num_rows + 1) // 2


def _level(tree: Json, node: Json) -> int:
    """Return how many switches lie below, on the longest path."""
    nodes = {one["switch"]: one for one in tree["nodes"]}
    below = [nodes[child["switch"]] for child in node["children"] if child["switch"]]
    return max((1 + _level(tree, one) for one in below), default=0)


def _address(station: Json) -> int:
    return int.from_bytes(bytes(map(int, station["address"].split("."))), "big")
