# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Reads headers, stacks, unions and value sets of BMv2 JSON."""

from collections.abc import Iterable
from typing import Any

from .model import (
    Field,
    Header,
    HeaderStack,
    HeaderUnion,
    HeaderUnionStack,
    Json,
    ProgramValueSet,
)


def read_headers(data: Json) -> Iterable[Header]:
    """Yield the header and metadata instances."""
    types = {item["name"]: item for item in data["header_types"]}
    for position, item in enumerate(data["headers"]):
        kind = types[item["header_type"]]
        yield Header(
            name=item["name"],
            position=position,
            is_metadata=bool(item["metadata"]),
            fields=tuple(_fields(kind)),
            max_bytes=int(kind.get("max_length", 0)),
        )


def _fields(kind: Json) -> Iterable[Field]:
    fixed = sum(int(entry[1]) for entry in kind["fields"] if entry[1] != "*")
    offset = 0
    for entry in kind["fields"]:
        is_varbit = entry[1] == "*"
        width = 0 if is_varbit else int(entry[1])
        yield Field(
            name=entry[0],
            width=width,
            is_signed=bool(entry[2]) if len(entry) > 2 else False,
            offset=offset,
            max_bytes=max(int(kind["max_length"]) - fixed // 8, 1) if is_varbit else 0,
        )
        offset += width


def read_stacks(data: Json, names: dict[int, str]) -> tuple[HeaderStack, ...]:
    """Read the stacks; `names` holds the name of each header id."""
    return tuple(
        HeaderStack(name=item["name"], headers=tuple(names[key] for key in item["header_ids"]))
        for item in data.get("header_stacks", [])
    )


def read_unions(data: Json, names: dict[int, str]) -> dict[int, HeaderUnion]:
    """Read the unions by id; `names` holds the name of each header id."""
    types = {
        item["name"]: tuple(member[0] for member in item["headers"])
        for item in data.get("header_union_types", [])
    }
    return {
        item["id"]: HeaderUnion(
            name=item["name"],
            members=types[item["union_type"]],
            headers=tuple(names[key] for key in item["header_ids"]),
        )
        for item in data.get("header_unions", [])
    }


def read_union_stacks(data: Json, unions: dict[int, HeaderUnion]) -> tuple[HeaderUnionStack, ...]:
    """Read the stacks of unions; `unions` holds each union by id."""
    return tuple(
        HeaderUnionStack(
            name=item["name"], unions=tuple(unions[key] for key in item["header_union_ids"])
        )
        for item in data.get("header_union_stacks", [])
    )


def read_value_sets(data: Json, headers: dict[str, Header]) -> tuple[ProgramValueSet, ...]:
    """Read the value sets; a set's fields are those of the first select that names it."""
    widths: dict[str, tuple[int, ...]] = {}
    types = {item["name"]: item for item in data["headers"]}
    by_type = {types[name]["header_type"]: head for name, head in headers.items()}
    stacks = {item["name"]: item["header_type"] for item in data.get("header_stacks", [])}
    unions = {
        item["name"]: dict(kind["headers"])
        for kind in data.get("header_union_types", [])
        for item in data.get("header_union_stacks", [])
        if item["union_type"] == kind["name"]
    }

    def width(part: Json) -> int:
        value: list[Any] = part["value"]
        match part["type"]:
            case "lookahead":
                return int(value[1])
            case "field":
                head, name = headers[value[0]], value[1]
            case "stack_field":
                head, name = by_type[stacks[value[0]]], value[1]
            case "union_stack_field":
                head, name = by_type[unions[value[0]][value[1]]], value[2]
            case _:  # an expression over indices
                return 32
        return next((item.width for item in head.fields if item.name == name), 1)

    for parser in data["parsers"]:
        for state in parser["parse_states"]:
            for transition in state["transitions"]:
                if transition.get("type") == "parse_vset":
                    key = tuple(width(part) for part in state["transition_key"])
                    widths.setdefault(transition["value"], key)
    return tuple(
        ProgramValueSet(
            name=item["name"],
            position=position,
            max_size=int(item.get("max_size", 0)),
            widths=widths.get(item["name"], ()),
        )
        for position, item in enumerate(data.get("parse_vsets", []))
    )
