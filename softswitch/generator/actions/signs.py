# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Finds out which parameters of actions are signed: the JSON has only their widths.

P4 operands have the type of their neighbours, and p4c writes every change of type as an operation.
A parameter is therefore signed if it is assigned unchanged to a signed field, stands beside a
signed operand, or gets a negative value from the program itself.
"""

from collections.abc import Iterator
from typing import Any

from ...program.model import Json, Program, ProgramAction, parse_hex
from ..ir.lowering import unwrap

_SAME_TYPE = ("+", "-", "*", "&", "|", "^", "==", "!=", "<", "<=", ">", ">=", "?")
_LEFT_TYPE = ("<<", ">>")
_SIGNED = ("two_comp_mod", "sat_cast")


def signed_parameters(program: Program) -> frozenset[tuple[int, int]]:
    """Positions of actions and indices of their parameters that are signed."""
    signed = {
        (header.name, field.name)
        for header in program.headers
        for field in header.fields
        if field.is_signed
    }
    found = set(_negative_values(program))
    for action in program.actions:
        for primitive in action.primitives:
            found |= {(action.position, index) for index in _Uses(signed).of(primitive)}
    return frozenset(found)


def _negative_values(program: Program) -> Iterator[tuple[int, int]]:
    by_id: dict[int, ProgramAction] = {action.id: action for action in program.actions}
    for pipeline in program.json["pipelines"]:
        for table in pipeline["tables"]:
            entries: list[Json] = [entry["action_entry"] for entry in table.get("entries", [])]
            for entry in [*entries, table.get("default_entry") or {}]:
                for index, value in enumerate(entry.get("action_data", [])):
                    if parse_hex(value) < 0:
                        yield by_id[entry["action_id"]].position, index


class _Uses:
    """Looks for parameters in places of signed type."""

    def __init__(self, signed: set[tuple[str, str]]) -> None:
        self.signed = signed
        self.found: set[int] = set()

    def of(self, primitive: Json) -> set[int]:
        """Indices of parameters that a primitive shows to be signed."""
        nodes: list[Any] = primitive["parameters"]
        if primitive["op"] == "assign" and self._is_signed(nodes[0]):
            self._mark(nodes[1])
        for node in nodes:
            self._visit(node)
        return self.found

    def _mark(self, node: Any) -> None:
        node = unwrap(node)
        if node.get("type") in ("local", "runtime_data"):
            self.found.add(node["value"])
        elif node.get("op") in (*_SAME_TYPE[:6], "?"):
            self._mark(node["left"] or {})
            self._mark(node["right"])
        elif node.get("op") in _LEFT_TYPE:
            self._mark(node["left"])

    def _is_signed(self, node: Any) -> bool:
        node = unwrap(node)
        if node.get("type") == "field":
            return tuple(node["value"]) in self.signed
        if node.get("type") == "hexstr":
            return parse_hex(node["value"]) < 0
        return node.get("op") in _SIGNED

    def _visit(self, node: Any) -> None:
        node = unwrap(node)
        op = node.get("op")
        if op is None or not isinstance(node.get("right"), dict):
            return
        left: Any = node.get("left")
        sides = [node["right"]] if left is None else [left, node["right"]]
        if op in _SAME_TYPE and any(self._is_signed(side) for side in sides):
            for side in sides:
                self._mark(side)
        if op in _SIGNED and unwrap(left).get("op") in ("+", "-", "*", "<<", ">>"):
            self._mark(left)
        for side in [*sides, node.get("cond")]:
            if isinstance(side, dict):
                self._visit(side)  # pyright: ignore[reportUnknownArgumentType]
