# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Finds scalars whose values never leave an action: they become variables of the C function.

Such a scalar is written before it is read in every action that reads it, and nothing outside of
actions reads it. Most are temporaries of p4c.
"""

from typing import Any

from ...program.model import Json, Program
from ..ir.jumps import Branch, structure

FieldName = tuple[str, str]


def local_scalars(program: Program) -> frozenset[FieldName]:
    """Names of the scalars that can live in an action's own variables."""
    scalars = {
        (header.name, field.name)
        for header in program.headers
        if header.name == "scalars"
        for field in header.fields
        if field.width <= 64
    }
    escaping: set[FieldName] = set()
    json = program.json
    escaping |= {meter.target for meter in program.meters if meter.target is not None}
    for profile in program.action_profiles:
        escaping |= set(profile.selector.input if profile.selector is not None else ())
    for key in ("parsers", "deparsers", "calculations", "checksums", "learn_lists", "field_lists"):
        escaping |= _mentioned(json.get(key, []))
    for control in program.controls:
        for table in control.tables:
            escaping |= {part.target for part in table.key}
        for conditional in control.conditionals:
            escaping |= _mentioned(conditional.expression)
    for action in program.actions:
        body = structure(action.primitives, 0, len(action.primitives))
        if body is None:
            escaping |= _mentioned(list(action.primitives))
            continue
        _exposed(body, set(), escaping)
    return frozenset(scalars - escaping)


def _mentioned(node: Any) -> set[FieldName]:
    found: set[FieldName] = set()
    waiting: list[Any] = [node]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            entry: Json = item  # pyright: ignore[reportUnknownVariableType]
            if entry.get("type") == "field" and isinstance(entry["value"][0], str):
                found.add((entry["value"][0], entry["value"][1]))
            target = entry.get("target")
            if isinstance(target, list):
                found.add((target[0], target[1]))  # pyright: ignore[reportUnknownArgumentType]
            waiting += entry.values()
        elif isinstance(item, list):
            waiting += item  # pyright: ignore[reportUnknownArgumentType]
    return found


def _written(primitive: Json) -> FieldName | None:
    parameters = primitive["parameters"]
    if primitive["op"] in ("assign", "register_read", "modify_field_with_hash_based_offset"):
        target = parameters[0]
        if target.get("type") == "field":
            return target["value"][0], target["value"][1]
    return None


def _exposed(
    body: list[Json | Branch], written: set[FieldName], escaping: set[FieldName]
) -> set[FieldName]:
    """Add to escaping what the body reads before it writes; return what it surely writes."""
    for item in body:
        if isinstance(item, Branch):
            escaping |= _mentioned(item.condition) - written
            taken = _exposed(item.taken, set(written), escaping)
            other = _exposed(item.other, set(written), escaping)
            written |= taken & other
            continue
        target = _written(item)
        reads = item["parameters"][1:] if target is not None else item["parameters"]
        escaping |= _mentioned(reads) - written
        if target is not None:
            written.add(target)
    return written
