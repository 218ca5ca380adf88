# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Finds scalars whose values never leave an action: they become variables of the C function.

Such a scalar is written before it is read in every action that reads it, and nothing outside of
actions reads it. Most are temporaries of p4c.
"""

from collections.abc import Iterable
from typing import Any

from ...program.model import Json, Program
from ..headers import HeaderLayout
from .operands import FieldOperand, Instance, Local, Node, rebuild, walk
from .statements import Assign, Body, If, Jump, PrimitiveCall, RegisterRead, Statement

FieldName = tuple[str, str]
_HASH = "modify_field_with_hash_based_offset"


def find_local_scalars(program: Program, bodies: Iterable[Body]) -> frozenset[FieldName]:
    """Return header and name of the scalars that can live in an action's own variables."""
    scalars = {
        (header.name, field.name)
        for header in program.headers
        if header.name == "scalars"
        for field in header.fields
        if field.width <= 64
    }
    escaping = _outside_of_actions(program)
    for body in bodies:
        if any(isinstance(item, Jump) for item in body):
            escaping |= _fields(body)
        else:
            _exposed(body, set(), escaping)
    return frozenset(scalars - escaping)


def use_locals(body: Body, names: frozenset[FieldName], layout: HeaderLayout) -> Body:
    """Put variables of the action in place of these scalars."""

    def change(node: Node) -> Node | None:
        name = _name(node)
        if name is None or name not in names:
            return None
        storage = layout.fields[name]
        return Local(storage.local_name, storage.field.width, storage.field.is_signed)

    return rebuild(body, change)


def _outside_of_actions(program: Program) -> set[FieldName]:
    """Fields that anything but an action names."""
    found = {meter.target for meter in program.meters if meter.target is not None}
    for profile in program.action_profiles:
        found |= set(profile.selector.input if profile.selector is not None else ())
    for key in ("parsers", "deparsers", "calculations", "checksums", "learn_lists", "field_lists"):
        found |= _named_in_json(program.json.get(key, []))
    for control in program.controls:
        for table in control.tables:
            found |= {part.target for part in table.key}
        for conditional in control.conditionals:
            found |= _named_in_json(conditional.expression)
    return found


def _named_in_json(node: Any) -> set[FieldName]:
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


def _name(node: object) -> FieldName | None:
    """Header and name of a field of a header instance."""
    if isinstance(node, FieldOperand) and isinstance(node.header, Instance):
        return node.header.name, node.field.name
    return None


def _fields(item: object) -> set[FieldName]:
    return {name for node in walk(item) if (name := _name(node)) is not None}


def _effect(item: Statement) -> tuple[FieldName | None, object]:
    """Field that a statement writes, and what it reads."""
    match item:
        case Assign(target, value):
            written, reads = _name(target), value
        case RegisterRead(target, _, index):
            written, reads = _name(target), index
        case PrimitiveCall(op, operands) if op == _HASH:
            written, reads = _name(operands[0]), operands[1:]
        case _:
            return None, item
    return (None, item) if written is None else (written, reads)


def _exposed(body: Body, written: set[FieldName], escaping: set[FieldName]) -> set[FieldName]:
    """Add to escaping what the body reads before it writes; return what it surely writes."""
    for item in body:
        if isinstance(item, If):
            escaping |= _fields(item.condition) - written
            taken = _exposed(item.taken, set(written), escaping)
            other = _exposed(item.other, set(written), escaping)
            written |= taken & other
            continue
        target, reads = _effect(item)
        escaping |= _fields(reads) - written
        if target is not None:
            written.add(target)
    return written
