# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The stages between a program's JSON and its C text, as data that can be printed.

Each function returns JSON-like data; `format_stage` puts it into lines, `dot` into a graph.
"""

import re
from collections.abc import Callable
from typing import Any

from ..generator import generate
from ..generator.headers import HeaderLayout, storage_type
from ..program.model import Json, Program, source_of
from ..trace.expressions import JsonExpressions

Data = dict[str, Any]
_TEXT = JsonExpressions()


def model(program: Program) -> Data:
    """Return what the program declares, by kind."""
    return {
        "headers": {head.name: f"{head.width} bits" for head in program.headers},
        "actions": {item.name: f"{len(item.primitives)} statements" for item in program.actions},
        "tables": {item.name: f"{item.kind}, {item.pipeline}" for item in program.tables},
        "counters": {item.name: item.size or f"direct, {item.table}" for item in program.counters},
        "registers": {item.name: f"{item.size} of {item.width} bits" for item in program.registers},
    }


def layout(program: Program) -> Data:
    """Return where each field is stored: C lvalue and type."""
    places = HeaderLayout(program)
    found: Data = {}
    for header in program.headers:
        rows: Data = {}
        for item in header.fields:
            if (header.name, item.name) not in places.fields:
                continue
            size = f"{(item.width + 7) // 8} bytes, big-endian"
            kind = storage_type(item.width, item.is_signed) if 0 < item.width <= 64 else size
            place = places.fields[header.name, item.name].reference
            rows[item.name] = f"{item.width} bits at {item.offset}: {kind} {place}"
        found[header.name] = rows
    return found


def parser(program: Program) -> Data:
    """Return the states with their operations, select keys and transitions."""
    found: Data = {}
    for state in program.json["parsers"][0]["parse_states"]:
        operations = [
            f"{item['op']} {', '.join(_TEXT.text(part) for part in item['parameters'])}"
            for item in state["parser_ops"]
        ]
        keys = [_TEXT.text(part) for part in state["transition_key"]]
        found[state["name"]] = {
            "operations": operations,
            "select": keys,
            "transitions": {
                _value(item): item["next_state"] or "accept" for item in state["transitions"]
            },
        }
    return found


def _value(transition: Json) -> str:
    if transition["type"] == "default":
        return "default"
    mask = transition.get("mask")
    return f"{transition['value']}" + (f"&&&{mask}" if mask else "")


def control(program: Program) -> Data:
    """Return the tables and conditions of each control, and what follows them."""
    found: Data = {}
    for part in program.controls:
        nodes: Data = {"start": {"next": part.init or "end"}}
        for item in part.conditionals:
            nodes[item.name] = {
                "if": _TEXT.text(item.expression),
                "true": item.true_next or "end",
                "false": item.false_next or "end",
                "source": item.source,
            }
        for table in part.tables:
            follows = {name: target or "end" for name, target in table.next_by_action.items()}
            nodes[table.name] = {**follows, "source": table.source}
        found[part.name] = nodes
    return found


def tables(program: Program) -> Data:
    """Return key, actions, size and default of each table."""
    found: Data = {}
    for table in program.tables:
        default = table.default_action.name if table.default_action else "none"
        found[table.name] = {
            "position": table.position,
            "match": table.kind,
            "key": {part.name: f"{part.kind}, {part.width} bits" for part in table.key},
            "actions": [action.name for action in table.actions],
            "default": default + (" (const)" if table.is_default_action_const else ""),
            "max_entries": table.max_size,
            "const_entries": len(table.entries),
            "direct_counter": table.has_direct_counter,
            "source": table.source,
        }
    return found


def actions(program: Program) -> Data:
    """Return the C function of each action, as lines."""
    text = generate(program)
    found: Data = {}
    for action in program.actions:
        begin = re.search(rf"^.*static void p4_action_{action.position}_.*$", text, re.MULTILINE)
        if begin is not None:
            found[action.name] = text[begin.start() : text.index("\n}", begin.start()) + 2].split(
                "\n"
            )
    return found


def deparser(program: Program) -> Data:
    """Return the headers in the order of emission."""
    item = program.json["deparsers"][0]
    return {"source": source_of(item, "deparser"), "emit": list(item["order"])}


def resources(program: Program) -> Data:
    """Return the numbers of the program's objects, and the memory of its arrays."""
    counters = sum(item.size for item in program.counters)
    registers = {item.name: item.size * ((item.width + 7) // 8) for item in program.registers}
    return {
        "parser states": len(program.json["parsers"][0]["parse_states"]),
        "headers": len([head for head in program.headers if not head.is_metadata]),
        "header and metadata bits": sum(head.width for head in program.headers),
        "tables": len(program.tables),
        "table entries at most": sum(table.max_size for table in program.tables if table.key),
        "actions": len(program.actions),
        "statements": sum(len(action.primitives) for action in program.actions),
        "counter cells": counters,
        "counter bytes": counters * 16,
        "register bytes": sum(registers.values()),
        "C lines": generate(program).count("\n"),
    }


STAGES: dict[str, Callable[[Program], Data]] = {
    "model": model,
    "layout": layout,
    "parser": parser,
    "control": control,
    "tables": tables,
    "actions": actions,
    "deparser": deparser,
    "resources": resources,
}


def format_stage(data: Any, depth: int = 0) -> list[str]:
    """Return data as indented lines."""
    indent = "  " * depth
    lines: list[str] = []
    if isinstance(data, dict):
        items: dict[str, Any] = data  # pyright: ignore[reportUnknownVariableType]
        for key, value in items.items():
            if isinstance(value, (dict, list)):
                lines += [f"{indent}{key}:", *format_stage(value, depth + 1)]
            else:
                lines.append(f"{indent}{key}: {value}")
    elif isinstance(data, list):
        lines += [f"{indent}{item}" for item in data]  # pyright: ignore[reportUnknownVariableType]
    return lines


def dot(stage: str, program: Program) -> str:
    """Return the parser or the controls as a Graphviz graph; ValueError for other stages."""
    if stage not in {"parser", "control"}:
        raise ValueError(f"stage {stage} has no graph; parser and control have one")
    lines = [f'digraph "{program.name} {stage}" {{', "  node [shape=box, fontname=monospace];"]
    if stage == "parser":
        for name, state in parser(program).items():
            edges = state["transitions"].items()
            lines += [f'  "{name}" -> "{target}" [label="{label}"];' for label, target in edges]
    else:
        for part, nodes in control(program).items():
            for name, node in nodes.items():
                shape = "diamond" if "if" in node else "box"
                label = node.get("if", name).replace('"', "'")
                lines.append(f'  "{part}.{name}" [label="{label}", shape={shape}];')
                edges = {key: to for key, to in node.items() if key not in {"if", "source"}}
                for key, target in edges.items():
                    lines.append(f'  "{part}.{name}" -> "{part}.{target}" [label="{key}"];')
    return "\n".join([*lines, "}", ""])
