# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Expressions of the JSON as P4-like text, and their values for a packet."""

import operator
from collections.abc import Callable, Mapping
from typing import Any

from ..program.model import Json
from .snapshot import VALID, Snapshot
from .values import field_name

_BINARY: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "&": int.__and__,
    "|": int.__or__,
    "^": int.__xor__,
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "<": lambda a, b: int(a < b),
    "<=": lambda a, b: int(a <= b),
    ">": lambda a, b: int(a > b),
    ">=": lambda a, b: int(a >= b),
    "and": lambda a, b: int(bool(a) and bool(b)),
    "or": lambda a, b: int(bool(a) or bool(b)),
    "two_comp_mod": lambda a, b: (a + (1 << b - 1)) % (1 << b) - (1 << b - 1),
}
_UNARY: dict[str, Callable[[int], int]] = {
    "not": lambda a: int(not a),
    "d2b": lambda a: int(a != 0),
    "b2d": int,
}
_WORDS = {"and": "&&", "or": "||", "not": "!"}


class JsonExpressions:
    """Formats and evaluates expressions with the parameters of one action."""

    def __init__(self) -> None:
        self.parameters: Mapping[int, tuple[str, int]] = {}
        """Name and value by position."""

    def text(self, node: Any) -> str:  # noqa: PLR0911 - one case per operator
        """Return an expression as P4-like text."""
        item = _json(node)
        if item is None:
            return str(node)
        value: Any = item.get("value")
        match item.get("type"):
            case "field":
                if value[1] == VALID:
                    return f"{value[0]}.isValid()"
                return field_name((value[0], value[1]))
            case "hexstr":
                number = int(value, 16)
                return str(number) if abs(number) < 10 else hex(number)
            case "bool":
                return "true" if value else "false"
            case "string":
                return repr(value)
            case "runtime_data" | "local":
                known = self.parameters.get(value)
                return known[0] if known else f"parameter {value}"
            case "expression":
                return self._text_of_operator(value)
            case "lookahead":
                return f"lookahead({value[1]} bits at {value[0]})"
            case "stack_field":
                return f"{value[0]}.last.{value[1]}"
            case _:
                return str(value)

    def _text_of_operator(self, node: Any) -> str:  # noqa: PLR0911 - one case per operator
        if "op" not in node:
            return self.text(node)
        name = node["op"]
        right = self.text(node.get("right"))
        if name in {"d2b", "b2d"}:
            return right
        if name == "valid":
            return f"{right}.isValid()"
        if name == "?":
            return f"({self.text(node['cond'])} ? {self.text(node['left'])} : {right})"
        if node.get("left") is None:
            return f"{_WORDS.get(name, name)}{right}"
        left = self.text(node["left"])
        if name == "two_comp_mod":
            return left
        return f"({left} {_WORDS.get(name, name)} {right})"

    def value(self, node: Any, snapshot: Snapshot) -> int | None:  # noqa: PLR0911 - one case per operator
        """Return an expression's value; None if headers and metadata do not decide it."""
        item = _json(node)
        if item is None:
            return None
        value: Any = item.get("value")
        match item.get("type"):
            case "field":
                return snapshot.value(value[0], value[1])
            case "hexstr":
                return int(value, 16)
            case "bool":
                return int(value)
            case "runtime_data" | "local":
                known = self.parameters.get(value)
                return known[1] if known else None
            case "expression":
                return self._value_of_operator(value, snapshot)
            case "header":
                return int(snapshot.is_valid(value))
            case _:
                return None

    def _value_of_operator(self, node: Any, snapshot: Snapshot) -> int | None:
        if "op" not in node:
            return self.value(node, snapshot)
        name = node["op"]
        right = self.value(node.get("right"), snapshot)
        if right is None:
            return None
        if name == "valid":
            return right
        if node.get("left") is None:
            unary = _UNARY.get(name)
            return unary(right) if unary else None
        left = self.value(node["left"], snapshot)
        binary = _BINARY.get(name)
        return binary(left, right) if binary and left is not None else None

    def fields(self, node: Any) -> list[tuple[str, str]]:
        """Return the fields that an expression reads, each once."""
        item = _json(node)
        if item is None:
            return []
        value: Any = item.get("value")
        if item.get("type") == "field":
            return [(value[0], value[1])]
        parts: list[Any] = [value, *(item.get(key) for key in ("cond", "left", "right"))]
        return list(dict.fromkeys(name for part in parts for name in self.fields(part)))


def _json(node: Any) -> Json | None:
    return node if isinstance(node, dict) else None  # pyright: ignore[reportUnknownVariableType]
