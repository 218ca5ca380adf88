# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Operands: the fields, parameters and constants at the leaves of expressions."""

from typing import Any

from ...program.model import Json, parse_hex
from ..c_text import identifier
from ..context import Refusal
from ..headers import Storage, local_mark
from ..structures import Structures, is_field, unwrap
from .numbers import Value, bytes_constant, constant, kind_of


def memory(reference: str, width: int) -> Json:
    """Node of an unsigned operand that is not in the JSON: a C lvalue stored like a field."""
    return {"type": "memory", "value": (reference, width)}


class Operands(Structures):
    """Writes operands in the context of a program or of one action."""

    def width_of(self, node: Any) -> int | None:
        """Width of a field or parameter, None for anything else."""
        node = unwrap(node)
        if is_field(node):
            is_valid = node.get("value", ("", ""))[1] == "$valid$"
            return None if is_valid else self.field(node).field.width
        match node.get("type"):
            case "local" | "runtime_data" if self.context.action is not None:
                index: int = node["value"]
                return self.context.action.parameters[index].width
            case "memory":
                return node["value"][1]
            case _:
                return None

    def reference(self, node: Any) -> str:
        """C lvalue of a field."""
        if node.get("type") == "field":
            header, name = node["value"]
            if name == "$valid$":
                if isinstance(header, dict):  # p4c's words for an element at an index of the packet
                    return self.header(header).valid
                return self.context.layout.valid(header)
            if (header, name) in self.context.locals and self.context.action is not None:
                return local_mark(local_name(self.context.layout.fields[header, name]))
        return self.field(node).reference

    def bytes_of(self, node: Any) -> str | None:
        """C expression of the bytes of a field or parameter wider than 64 bits, else None."""
        node = unwrap(node)
        width = self.width_of(node)
        if width is None or width <= 64:
            return None
        if is_field(node):
            return self.reference(node)
        if node["type"] == "memory":
            reference: str = node["value"][0]
            return reference
        return f"a->p{node['value']}"

    def leaf(self, node: Any) -> Value:
        """Code and range of an operand."""
        if is_field(node) and self.width_of(node) is not None:
            field = self.field(node).field
            return self._load(self.reference(node), field.width, field.is_signed)
        match node.get("type"):
            case "hexstr":
                value = parse_hex(node["value"])
                return Value(constant(value), value, value)
            case "bool":
                return Value("true" if node["value"] else "false", 0, 1, True)
            case "field" if node["value"][1] == "$valid$":
                return Value(f"(int32_t){self.reference(node)}", 0, 1)
            case "local" | "runtime_data":
                width = self.width_of(node)
                assert width is not None
                return self._load(f"a->p{node['value']}", width, self.is_signed(node))
            case "memory":
                return self._load(node["value"][0], node["value"][1], False)
            case other:
                raise Refusal(
                    f"operand of type '{other}'",
                    "this kind of operand is not supported",
                    "Use header fields, parameters and constants",
                )

    def _load(self, reference: str, width: int, is_signed: bool) -> Value:
        low, high = (
            (-(1 << width - 1), (1 << width - 1) - 1) if is_signed else (0, (1 << width) - 1)
        )
        kind = kind_of(low, high)
        size = (width + 7) // 8
        if kind.limbs:
            name = "wide_load_signed" if is_signed else "wide_load"
            code = f"{name}(WIDE({kind.limbs}), {kind.limbs}, {reference}, {width})"
        elif width > 64:
            code = f"load_be_128({reference}, {size})"
            code = f"sign_extend_128({code}, {width})" if is_signed else f"(wide_int_t){code}"
        else:
            code = f"({kind.name}){reference}"
        return Value(code, low, high)

    def low_part(self, node: Any, lowest: int, bits: int) -> str | None:
        """C expression of at most 128 bits of a field or parameter wider than 64, else None.

        The bits start at the lowest and lie within the field.
        """
        reference = self.bytes_of(node)
        width = self.width_of(node)
        if reference is None or width is None or lowest + bits > width:
            return None
        size = (width + 7) // 8
        if bits <= 64 and (lowest, bits % 8) == (0, 0):
            return f"load_be({reference} + {size - bits // 8}, {bits // 8})"
        if bits <= 64:
            return f"load_bits({reference}, {size * 8 - lowest - bits}, {bits})"
        if lowest == 0 and bits <= 128:
            start = max(size - 16, 0)
            return f"load_be_128({reference} + {start}, {size - start})"
        return None

    def wide_operand(self, node: Any, width: int) -> str | None:
        """C expression of the bytes of a field, parameter or constant of this width, else None."""
        node = unwrap(node)
        if node.get("type") == "hexstr":
            return bytes_constant(parse_hex(node["value"]), width)
        return self.bytes_of(node) if self.width_of(node) == width else None

    def is_signed(self, node: Any) -> bool:
        """Whether an operand is a signed field or parameter."""
        node = unwrap(node)
        action = self.context.action
        if node.get("type") in ("local", "runtime_data") and action is not None:
            return (action.position, node["value"]) in self.context.signed
        if not is_field(node) or self.width_of(node) is None:
            return False
        return self.field(node).field.is_signed


def local_name(scalar: Storage) -> str:
    """C name of a scalar that lives in an action."""
    return f"l{scalar.index}_{identifier(scalar.field.name)}"
