# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Operands: the fields, parameters and constants at the leaves of expressions."""

from typing import Any

from softswitch.generator.context import Context, Refusal
from softswitch.generator.headers import Storage, identifier, local_mark
from softswitch.generator.numbers import Value, constant
from softswitch.program import parse_hex


def unwrap(node: Any) -> Any:
    """Strip the nesting that p4c puts around expressions."""
    while node.get("type") == "expression":
        node = node["value"]
    return node


class Operands:
    """Writes operands in the context of a program or of one action."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def width_of(self, node: Any) -> int | None:
        """Width of a field or parameter, None for anything else."""
        node = unwrap(node)
        match node.get("type"):
            case "field" if node["value"][1] != "$valid$":
                return self._storage(node).field.width
            case "local" | "runtime_data" if self.context.action is not None:
                index: int = node["value"]
                return self.context.action.parameters[index].width
            case _:
                return None

    def _storage(self, node: Any) -> Storage:
        header, name = node["value"]
        found = self.context.layout.fields.get((header, name))
        if found is None:
            raise Refusal(
                f"field {header}.{name}",
                "the JSON does not define it as a plain header field",
                "Use plain header instances",
            )
        return found

    def reference(self, node: Any) -> str:
        """C lvalue of a field."""
        header, name = node["value"]
        if name == "$valid$":
            return self.context.layout.valid(header)
        if (header, name) in self.context.locals and self.context.action is not None:
            return local_mark(local_name(header, name))
        return self._storage(node).reference

    def bytes_of(self, node: Any) -> str | None:
        """C expression of the bytes of a field or parameter wider than 64 bits, else None."""
        node = unwrap(node)
        width = self.width_of(node)
        if width is None or width <= 64:
            return None
        return self.reference(node) if node["type"] == "field" else f"a->p{node['value']}"

    def leaf(self, node: Any) -> Value:
        """Code and range of an operand of at most 64 bits."""
        match node.get("type"):
            case "hexstr":
                value = parse_hex(node["value"])
                return Value(constant(value), value, value)
            case "bool":
                return Value("true" if node["value"] else "false", 0, 1, True)
            case "field" if node["value"][1] == "$valid$":
                return Value(f"(int32_t){self.reference(node)}", 0, 1)
            case "field":
                field = self._storage(node).field
                return self._load(self.reference(node), field.width, field.is_signed)
            case "local" | "runtime_data":
                width = self.width_of(node)
                assert width is not None
                return self._load(f"a->p{node['value']}", width, False)
            case other:
                raise Refusal(
                    f"operand of type '{other}'",
                    "this kind of operand is not supported",
                    "Use plain header instances instead of stacks and unions",
                )

    def _load(self, reference: str, width: int, is_signed: bool) -> Value:
        if width > 64:
            raise Refusal(
                f"arithmetic on a field of {width} bits",
                "wide fields can be assigned, matched and compared for equality only",
                "Split it into fields of 64 bits or less",
            )
        low, high = (
            (-(1 << width - 1), (1 << width - 1) - 1) if is_signed else (0, (1 << width) - 1)
        )
        return Value(f"({Value('', low, high).type}){reference}", low, high)

    def wide_operand(self, node: Any, width: int) -> str:
        """C expression of the bytes of a wide field, parameter or constant of this width."""
        node = unwrap(node)
        if node.get("type") == "hexstr":
            value = parse_hex(node["value"]) & ((1 << width) - 1)
            return (
                '"' + "".join(f"\\{byte:03o}" for byte in value.to_bytes(width // 8, "big")) + '"'
            )
        found = self.bytes_of(node)
        if found is None or self.width_of(node) != width:
            raise Refusal(
                f"value of {width} bits",
                "wide fields can be assigned, matched and compared for equality only",
                "Split it into fields of 64 bits or less",
            )
        return found


def local_name(header: str, name: str) -> str:
    """C name of a scalar that lives in an action."""
    return f"l_{identifier(name)}"
