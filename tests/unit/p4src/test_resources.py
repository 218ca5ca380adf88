# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The compiled programs keep the declared budget of p4src/resources.md."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import pytest

from switchfold import p4src
from switchfold.p4src.artefacts import P4SRC

READ, WRITE = "r", "w"
ONE_READ_MODIFY_WRITE = {"", READ, WRITE, READ + WRITE}
RESOURCES = (P4SRC / "resources.md").read_text(encoding="utf-8")


@cache
def load(variant: p4src.Variant) -> dict[str, Any]:
    return json.loads(p4src.artefacts(variant).json.read_text(encoding="utf-8"))


@pytest.fixture(params=p4src.VARIANTS)
def variant(request: pytest.FixtureRequest) -> p4src.Variant:
    return request.param


def accesses(program: dict[str, Any]) -> dict[int, dict[str, str]]:
    """Return per action id and register the order of reads and writes."""
    found: dict[int, dict[str, str]] = {}
    for action in program["actions"]:
        order = found.setdefault(action["id"], {})
        for primitive in action["primitives"]:
            kind = {"register_read": READ, "register_write": WRITE}.get(primitive["op"])
            if kind is not None:
                name = next(
                    parameter["value"]
                    for parameter in primitive["parameters"]
                    if parameter["type"] == "register_array"
                )
                order[name] = order.get(name, "") + kind
    return found


def successors(node: dict[str, Any]) -> list[tuple[int | None, str | None]]:
    """Return (action id, next node) for each path through a table or a condition."""
    if "expression" in node:
        return [(None, node["true_next"]), (None, node["false_next"])]
    by_name = dict(zip(node["actions"], node["action_ids"], strict=True))
    ways: list[tuple[int | None, str | None]] = []
    for name, following in node["next_tables"].items():
        # __HIT__ and __MISS__ stand for any action of the table.
        ids = [by_name[name]] if name in by_name else node["action_ids"]
        ways += [(action, following) for action in ids]
    return ways


def access_orders(
    pipeline: dict[str, Any], orders: dict[int, dict[str, str]]
) -> dict[str, set[str]]:
    """Return for each register every order in which a packet may access it in a pipeline."""
    nodes = {node["name"]: node for node in pipeline["tables"] + pipeline["conditionals"]}
    registers = {name for order in orders.values() for name in order}

    def walk(register: str) -> set[str]:
        known: dict[str | None, set[str]] = {None: {""}}

        def behind(name: str | None) -> set[str]:
            if name not in known:
                known[name] = {
                    (orders[action].get(register, "") if action is not None else "") + rest
                    for action, following in successors(nodes[name])
                    for rest in behind(following)
                }
            return known[name]

        return behind(pipeline["init_table"])

    return {register: walk(register) for register in registers}


def test_resources_one_read_modify_write_per_register_and_packet(variant: p4src.Variant) -> None:
    program = load(variant)
    orders = accesses(program)
    ingress, egress = program["pipelines"]
    for register, found in access_orders(ingress, orders).items():
        assert found <= ONE_READ_MODIFY_WRITE, f"{register}: {sorted(found)}"
        assert found != {""}, f"{register} is never accessed"
    for register, found in access_orders(egress, orders).items():
        assert found == {""}, f"{register} is accessed in egress: {sorted(found)}"


def test_resources_check_notices_a_second_access() -> None:
    nodes = [
        {"name": "a", "actions": ["x"], "action_ids": [0], "next_tables": {"x": "b"}},
        {"name": "b", "actions": ["y"], "action_ids": [1], "next_tables": {"y": None}},
    ]
    pipeline = {"tables": nodes, "conditionals": [], "init_table": "a"}
    found = access_orders(pipeline, {0: {"slot": READ + WRITE}, 1: {"slot": WRITE}})
    assert found == {"slot": {READ + WRITE + WRITE}}


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the tables under a heading, without their header lines."""
    section = RESOURCES.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines]


def test_resources_page_lists_the_registers(variant: p4src.Variant) -> None:
    column = {"narrow": 3, "wide": 4}[variant]
    declared: dict[str, tuple[int, str]] = {}
    for name, bits, control, *_ in (row for row in rows("Registers")):
        declared[name.removesuffix("` and on")] = (int(bits), control)
    counted = dict.fromkeys(declared, 0)
    for register in load(variant)["register_arrays"]:
        _, control, name = register["name"].split(".")
        kind = re.sub(r"lane\d+", "lane000", name)
        assert declared[kind] == (register["bitwidth"], control)
        assert register["size"] == 2048
        counted[kind] += 1
    expected = {row[0].removesuffix("` and on"): int(row[column]) for row in rows("Registers")}
    assert counted == expected


def test_resources_page_sums_are_right(variant: p4src.Variant) -> None:
    registers = load(variant)["register_arrays"]
    column = {"narrow": 0, "wide": 1}[variant]
    sums = {
        name: re.findall(r"\d+", line)[column]
        for name, line in re.findall(r"^\| (registers|register bits) \|(.*)\|$", RESOURCES, re.M)
    }
    assert int(sums["registers"]) == len(registers)
    assert int(sums["register bits"]) == sum(one["bitwidth"] * one["size"] for one in registers)


def test_resources_page_lists_tables_and_counters(variant: p4src.Variant) -> None:
    program = load(variant)
    tables = {
        table["name"].rpartition(".")[2]: (table["max_size"], table["match_type"])
        for pipeline in program["pipelines"]
        for table in pipeline["tables"]
        if table["key"]
    }
    assert tables == {name: (int(size), match) for name, size, match in rows("Tables")}
    counters = {
        counter["name"].rpartition(".")[2]: counter["size"]
        for counter in program["counter_arrays"]
        if not counter.get("is_direct")
    }
    assert counters == {name: int(size) for name, size, _ in rows("Counters")}
