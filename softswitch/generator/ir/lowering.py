# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Turns expressions of BMv2's JSON into operands and expressions of the representation."""

from typing import Any

from ...program.model import HeaderStack, HeaderUnionStack, parse_hex
from ..context import Context, Refusal
from .operands import (
    Constant,
    Element,
    Expression,
    FieldOperand,
    HeaderOperand,
    Instance,
    Lane,
    OperatorExpression,
    ParameterOperand,
    Stack,
    Truth,
    UnionElement,
    UnionInstance,
    UnionMember,
    UnionOperand,
    Validity,
)

_DEREFERENCES = ("dereference_header_stack", "dereference_stack")
_STACK_SIZES = ("last_stack_index", "size_stack")


def unwrap(node: Any) -> Any:
    """Strip the nesting that p4c puts around expressions."""
    while node.get("type") == "expression":
        node = node["value"]
    return node


def is_field(node: Any) -> bool:
    """Whether a node without nesting is a field, wherever it lives."""
    return node.get("type") in ("field", "stack_field") or node.get("op") == "access_field"


class Lowering:
    """Reads expressions in the context of a program or of one action."""

    def __init__(self, context: Context) -> None:
        self.context = context

    # ---- expressions ----

    def expression(self, node: Any) -> Expression:  # noqa: PLR0911 - one case per kind of node
        """Read an expression."""
        node = unwrap(node)
        if is_field(node):
            return self.field(node)
        match node.get("type", node.get("op")):
            case "hexstr":
                return Constant(parse_hex(node["value"]))
            case "bool":
                return Truth(node["value"])
            case "local" | "runtime_data":
                return self._parameter(node["value"])
            case "header" | "dereference_header_stack" | "dereference_stack":
                return self.header(node)
            case "access_union_header":
                return self.header(node)
            case "header_union" | "dereference_union_stack":
                return self.union(node)
            case "header_stack" | "header_union_stack":
                return self.stack(node)
            case _:
                pass
        if "op" not in node:
            raise Refusal(
                f"operand of type '{node.get('type')}'",
                "this kind of operand is not supported",
                "Use header fields, parameters and constants",
            )
        return self._operation(node)

    def _operation(self, node: Any) -> OperatorExpression:
        op: str = node["op"]
        right: Any = node["right"]
        if op == "valid":
            return OperatorExpression(op, None, self.header(right))
        if op == "valid_union":
            return OperatorExpression(op, None, self.union(right))
        if op in _STACK_SIZES:
            return OperatorExpression(op, None, self.stack(right))
        return OperatorExpression(
            op,
            None if node.get("left") is None else self.expression(node["left"]),
            self.expression(right),
            self.expression(node["cond"]) if op == "?" else None,
        )

    def _parameter(self, index: int) -> ParameterOperand:
        action = self.context.action
        assert action is not None
        is_signed = (action.position, index) in self.context.signed
        return ParameterOperand(index, action.parameters[index].width, is_signed)

    # ---- fields ----

    def field(self, node: Any) -> FieldOperand | Validity:
        """Read what names a field."""
        node = unwrap(node)
        match node.get("type", node.get("op")):
            case "field":
                return self._named_field(*node["value"])
            case "stack_field":
                stack = self.context.layout.stack(node["value"][0])
                if isinstance(stack, HeaderStack):
                    return self._field_of(Element(stack, None), stack.headers[0], node["value"][1])
            case "union_stack_field":
                stack = self.context.layout.stack(node["value"][0])
                if isinstance(stack, HeaderUnionStack):
                    return self._last_union_field(stack, node["value"][1], node["value"][2])
            case "access_field":
                header = self.header(node["left"])
                name = self._type_of(header)
                fields = self.context.program.header(name).fields
                return self._field_of(header, name, fields[int(node["right"])].name)
            case _:
                pass
        raise _unknown("field", node)

    def variable(self, node: Any) -> FieldOperand:
        """Read a field that is no validity."""
        found = self.field(node)
        if isinstance(found, Validity):
            raise _unknown("field", unwrap(node))
        return found

    def _named_field(self, header: Any, name: str) -> FieldOperand | Validity:
        layout = self.context.layout
        if name == "$valid$":
            if isinstance(header, dict):  # p4c's form of an element at a run-time index
                return Validity(self.header(header))
            return Validity(self.header({"type": "header", "value": header}))
        if (header, name) in layout.fields:
            return self._field_of(Instance(header), header, name)
        stack = layout.stack(header)
        if isinstance(stack, HeaderUnionStack):  # p4c's form of a field of the last union
            return self._last_union_field(stack, *name.split("."))
        raise _unknown("field", {"value": [header, name]})

    def _field_of(self, header: HeaderOperand, type_of: str, name: str) -> FieldOperand:
        """Field of a header that has the type of the named one."""
        storage = self.context.layout.fields[type_of, name]
        return FieldOperand(header, storage.run, Lane(storage.index))

    def _last_union_field(self, stack: HeaderUnionStack, member: str, name: str) -> FieldOperand:
        union = stack.unions[0]
        position = union.members.index(member)
        header = UnionMember(UnionElement(stack, None), position)
        return self._field_of(header, union.headers[position], name)

    # ---- headers, unions and stacks ----

    def _type_of(self, header: HeaderOperand) -> str:
        """Name of a header of the same type."""
        match header:
            case Instance(name):
                return name
            case Element(stack):
                return stack.headers[0]
            case UnionMember(UnionElement(stack), position):
                return stack.unions[0].headers[position]
            case UnionMember(UnionInstance(union), position):
                return union.headers[position]
            case _:
                raise AssertionError(header)

    def stack(self, node: Any) -> Stack:
        """Read the name of a stack."""
        node = unwrap(node)
        if node.get("type") in ("header_stack", "header_union_stack"):
            found = self.context.layout.stack(node["value"])
            if found is not None:
                return Stack(found)
        raise _unknown("stack", node)

    def header(self, node: Any) -> HeaderOperand:
        """Read what names a header."""
        node = unwrap(node)
        layout = self.context.layout
        if node.get("type") == "header" and layout.has_header(node["value"]):
            return Instance(node["value"])
        if node.get("op") in _DEREFERENCES:
            stack = self.stack(node["left"]).stack
            assert isinstance(stack, HeaderStack)
            return Element(stack, self.expression(node["right"]))
        if node.get("type") == "stack_field" and node["value"][1] == "last":
            stack = layout.stack(node["value"][0])
            if isinstance(stack, HeaderStack):
                return Element(stack, None)
        if node.get("op") == "access_union_header":
            return UnionMember(self.union(node["left"]), int(node["right"]))
        raise _unknown("header", node)

    def union(self, node: Any) -> UnionOperand:
        """Read what names a union."""
        node = unwrap(node)
        if node.get("type") == "header_union":
            union = self.context.layout.union(node["value"])
            if union is not None:
                return UnionInstance(union)
        elif node.get("op") == "dereference_union_stack":
            stack = self.stack(node["left"]).stack
            assert isinstance(stack, HeaderUnionStack)
            return UnionElement(stack, self.expression(node["right"]))
        raise _unknown("union", node)


def _unknown(what: str, node: Any) -> Refusal:
    name = node.get("value", node.get("op", node.get("type")))
    return Refusal(f"{what} {name}", "the JSON does not define it", "Compile again")
