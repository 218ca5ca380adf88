# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Reads BMv2 JSON into the model of model.py and ignores unknown keys."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import MALFORMED_JSON_ERRORS, Problem, ProgramError, UnsupportedError
from .bmv2_numbers import check_numbers
from .bmv2_structures import (
    read_headers,
    read_stacks,
    read_union_stacks,
    read_unions,
    read_value_sets,
)
from .model import (
    ActionProfile,
    Conditional,
    ConstEntry,
    Control,
    Counter,
    Json,
    KeyField,
    Parameter,
    Program,
    ProgramAction,
    ProgramMeter,
    ProgramTable,
    Register,
    Selector,
    pack_number,
    parse_hex,
    source_of,
)


def read_program(path: Path) -> Program:
    """Read a BMv2 JSON file.

    Raises ProgramError if the file is no such JSON, UnsupportedError if an array or table is too
    large.
    """
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as exc:
        raise _broken(path, f"not JSON ({exc})") from exc
    if not isinstance(data, dict) or "pipelines" not in data or "parsers" not in data:
        raise _broken(path, "the keys 'pipelines' or 'parsers' are missing")
    typed: Json = data  # pyright: ignore[reportUnknownVariableType]
    try:
        too_large = check_numbers(typed)
        if not too_large:
            return _build(typed, path)
    except MALFORMED_JSON_ERRORS as exc:
        raise _broken(path, f"{type(exc).__name__}: {exc}") from exc
    raise UnsupportedError(path.name, too_large)


def _broken(path: Path, why: str) -> ProgramError:
    problem = Problem(
        what="BMv2 JSON",
        where=str(path),
        why=why,
        remedy="Compile the P4 program with p4c-bm2-ss (--arch v1model)",
        is_unsupported=False,
    )
    return ProgramError(path.name, [problem])


def _build(data: Json, path: Path) -> Program:
    headers = tuple(read_headers(data))
    widths = {(head.name, item.name): item.width for head in headers for item in head.fields}
    widths |= {(head.name, "$valid$"): 1 for head in headers}
    actions = tuple(_action(item, index) for index, item in enumerate(data.get("actions", [])))
    by_id = {action.id: action for action in actions}
    controls: list[Control] = []
    profiles = tuple(_profiles(data))
    meters = tuple(_meters(data))
    refers = _References(
        actions=by_id,
        widths=widths,
        profiles={item.name: item.position for item in profiles},
        meters={item.name: item.position for item in meters},
    )
    position = 0
    for item in data["pipelines"]:
        tables: list[ProgramTable] = []
        for table in item["tables"]:
            tables.append(_table(table, position, item["name"], refers))
            position += 1
        conditionals = tuple(
            Conditional(
                name=node["name"],
                expression=node["expression"],
                true_next=node["true_next"],
                false_next=node["false_next"],
                source=source_of(node, f"conditional {node['name']}"),
            )
            for node in item.get("conditionals", [])
        )
        controls.append(
            Control(
                name=item["name"],
                init=item.get("init_table"),
                tables=tuple(tables),
                conditionals=conditionals,
            )
        )
    counters = tuple(
        Counter(
            name=item["name"],
            position=index,
            size=item.get("size", 0),
            table=item.get("binding") if item.get("is_direct") else None,
        )
        for index, item in enumerate(data.get("counter_arrays", []))
    )
    by_name = {head.name: head for head in headers}
    names = {item["id"]: item["name"] for item in data["headers"]}
    unions = read_unions(data, names)
    registers = tuple(
        Register(name=item["name"], position=index, size=item["size"], width=item["bitwidth"])
        for index, item in enumerate(data.get("register_arrays", []))
    )
    return Program(
        name=path.stem,
        headers=headers,
        actions=actions,
        controls=tuple(controls),
        counters=counters,
        registers=registers,
        stacks=read_stacks(data, names),
        unions=tuple(unions.values()),
        union_stacks=read_union_stacks(data, unions),
        value_sets=read_value_sets(data, by_name),
        action_profiles=profiles,
        meters=meters,
        json=data,
    )


def _profiles(data: Json) -> Iterable[ActionProfile]:
    items = [item for pipeline in data["pipelines"] for item in pipeline.get("action_profiles", [])]
    for position, item in enumerate(items):
        selector: Json | None = item.get("selector")
        yield ActionProfile(
            name=item["name"],
            id=item["id"],
            position=position,
            max_size=item["max_size"],
            selector=None
            if selector is None
            else Selector(
                algorithm=selector["algo"],
                input=tuple((part["value"][0], part["value"][1]) for part in selector["input"]),
            ),
        )


def _meters(data: Json) -> Iterable[ProgramMeter]:
    for position, item in enumerate(data.get("meter_arrays", [])):
        is_direct = bool(item.get("is_direct"))
        if item["type"] not in ("packets", "bytes") or item.get("rate_count", 2) != 2:
            raise ValueError(f"meter {item['name']} needs type packets or bytes, and two rates")
        yield ProgramMeter(
            name=item["name"],
            id=item["id"],
            position=position,
            size=item.get("size", 0),
            counts_packets=item["type"] == "packets",
            table=item["binding"] if is_direct else None,
            target=(item["result_target"][0], item["result_target"][1]) if is_direct else None,
        )


def _action(item: Json, position: int) -> ProgramAction:
    return ProgramAction(
        name=item["name"],
        id=item["id"],
        position=position,
        parameters=tuple(
            Parameter(name=data["name"], width=data["bitwidth"]) for data in item["runtime_data"]
        ),
        primitives=tuple(item["primitives"]),
        source=source_of(item, f"action {item['name']}"),
    )


def _pack_params(action: ProgramAction, values: list[str]) -> bytes:
    return b"".join(
        pack_number(parse_hex(value), parameter.width)
        for parameter, value in zip(action.parameters, values, strict=True)
    )


@dataclass(frozen=True, kw_only=True)
class _References:
    """The objects that tables refer to."""

    actions: dict[int, ProgramAction]
    """By the JSON's ids."""
    widths: dict[tuple[str, str], int]
    profiles: dict[str, int]
    meters: dict[str, int]


def _table(item: Json, position: int, pipeline: str, refers: _References) -> ProgramTable:
    actions, widths = refers.actions, refers.widths
    key: list[KeyField] = []
    for part in item["key"]:
        target = (part["target"][0], part["target"][1])
        mask = part.get("mask")
        key.append(
            KeyField(
                name=part.get("name") or ".".join(target),
                kind="exact" if part["match_type"] == "valid" else part["match_type"],
                width=widths[target],
                target=target,
                mask=parse_hex(mask) if isinstance(mask, str) else None,
            )
        )
    default: Json | None = item.get("default_entry")
    default_action: ProgramAction | None = None
    default_params = b""
    if default is not None:
        default_action = actions[default["action_id"]]
        default_params = _pack_params(default_action, default["action_data"])
    entries: list[Json] = item.get("entries", [])
    profile: str | None = item.get("action_profile")
    direct_meter: str | None = item.get("direct_meters")
    last = max((entry.get("priority", 0) for entry in entries), default=0)
    return ProgramTable(
        name=item["name"],
        id=item["id"],
        position=position,
        pipeline=pipeline,
        kind="exact" if item["match_type"] == "valid" else item["match_type"],
        key=tuple(key),
        actions=tuple(actions[number] for number in item["action_ids"]),
        max_size=item["max_size"],
        has_direct_counter=bool(item.get("with_counters")),
        default_action=default_action,
        default_params=default_params,
        is_default_action_const=bool(default and default.get("action_const")),
        is_default_entry_const=bool(default and default.get("action_entry_const")),
        entries=tuple(_entry(entry, key, actions, last) for entry in entries),
        has_const_entries=bool(entries),
        action_profile=None if profile is None else refers.profiles[profile],
        direct_meter=None if direct_meter is None else refers.meters[direct_meter],
        has_timeout=bool(item.get("support_timeout")),
        next_by_action=dict(item.get("next_tables", {})),
        default_next=item.get("base_default_next"),
        source=source_of(item, f"table {item['name']}"),
    )


def _entry(
    item: Json, key: list[KeyField], actions: dict[int, ProgramAction], last: int
) -> ConstEntry:
    values = b""
    masks = b""
    prefix_len = 0
    for part, column in zip(item["match_key"], key, strict=True):
        width = column.width
        ones = (1 << width) - 1
        match part["match_type"]:
            case "range":
                value, mask = parse_hex(part["start"]), parse_hex(part["end"])
            case "ternary" | "optional":
                value, mask = parse_hex(part["key"]), parse_hex(part.get("mask", hex(ones)))
            case "lpm":
                value, mask, prefix_len = parse_hex(part["key"]), ones, part["prefix_length"]
            case "valid":
                value, mask = int(part["key"]), ones
            case _:
                value, mask = parse_hex(part["key"]), ones
        values += pack_number(value, width)
        masks += pack_number(mask, width)
    action = actions[item["action_entry"]["action_id"]]
    return ConstEntry(
        key=values,
        mask=masks,
        prefix_len=prefix_len,
        priority=last + 1 - item.get("priority", 0),
        action=action.position,
        params=_pack_params(action, item["action_entry"]["action_data"]),
    )
