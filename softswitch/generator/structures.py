# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Places of headers and fields in stacks and unions, which may depend on an index at run time."""

from abc import ABC, abstractmethod
from typing import Any

from ..program.model import HeaderStack, HeaderUnionStack
from .context import Context, Refusal
from .headers import Place, Storage, count_member

_HEADERS = {"header", "dereference_header_stack", "dereference_stack", "access_union_header"}
_UNIONS = {"header_union", "dereference_union_stack"}


def unwrap(node: Any) -> Any:
    """Strip the nesting that p4c puts around expressions."""
    while node.get("type") == "expression":
        node = node["value"]
    return node


def is_field(node: Any) -> bool:
    """Whether a node without nesting is a field, wherever it lives."""
    return node.get("type") in ("field", "stack_field") or node.get("op") == "access_field"


class Structures(ABC):
    """Resolves the nodes that name headers, stacks and unions."""

    def __init__(self, context: Context) -> None:
        self.context = context

    @abstractmethod
    def index(self, node: Any) -> str:
        """C code of an index as uint64_t."""

    def stack(self, node: Any) -> HeaderStack | HeaderUnionStack:
        """Stack that a node names."""
        node = unwrap(node)
        name = node.get("value")
        if node.get("type") in ("header_stack", "header_union_stack"):
            found = self.context.layout.stack(name)
            if found is not None:
                return found
        raise _unknown("stack", node)

    def header(self, node: Any) -> Place:
        """Place of the header that a node names."""
        node = unwrap(node)
        layout = self.context.layout
        if node.get("type") == "header" and layout.has_header(node["value"]):
            return layout.place(node["value"])
        if node.get("op") in ("dereference_header_stack", "dereference_stack"):
            stack = self.stack(node["left"])
            assert isinstance(stack, HeaderStack)
            return layout.element(stack, self._index(stack, node["right"]))
        if node.get("type") == "stack_field" and node["value"][1] == "last":
            stack = layout.stack(node["value"][0])
            if isinstance(stack, HeaderStack):
                return layout.element(stack, self.last_index(stack))
        if node.get("op") == "access_union_header":
            return self.union(node["left"])[int(node["right"])]
        raise _unknown("header", node)

    def union(self, node: Any) -> tuple[Place, ...]:
        """Places of the headers of the union that a node names."""
        node = unwrap(node)
        layout = self.context.layout
        if node.get("type") == "header_union":
            union = layout.union(node["value"])
            if union is not None:
                return tuple(layout.place(name) for name in union.headers)
        if node.get("op") == "dereference_union_stack":
            stack = self.stack(node["left"])
            assert isinstance(stack, HeaderUnionStack)
            index = self._index(stack, node["right"])
            members = range(len(stack.unions[0].headers))
            return tuple(layout.union_element(stack, member, index) for member in members)
        raise _unknown("union", node)

    def _index(self, stack: HeaderStack | HeaderUnionStack, node: Any) -> str:
        return f"stack_index({self.index(node)}, {self.context.layout.size(stack)})"

    def last_index(self, stack: HeaderStack | HeaderUnionStack) -> str:
        """C code of the index of a stack's last element; that of the spare one if it is empty."""
        layout = self.context.layout
        return f"stack_index((uint64_t){layout.next_index(stack)} - 1, {layout.size(stack)})"

    def field(self, node: Any) -> Storage:
        """Where the field lives that a node without nesting names."""
        layout = self.context.layout
        match node.get("type", node.get("op")):
            case "field":
                header, name = node["value"]
                found = layout.fields.get((header, name))
                if found is not None:
                    return found
                stack = layout.stack(header)
                if isinstance(stack, HeaderUnionStack):  # p4c's words for a field of the last union
                    return self._union_field(stack, *name.split("."))
            case "stack_field":
                stack = layout.stack(node["value"][0])
                if isinstance(stack, HeaderStack):
                    place = layout.element(stack, self.last_index(stack))
                    return layout.field_of(place, node["value"][1])
            case "union_stack_field":
                stack = layout.stack(node["value"][0])
                if isinstance(stack, HeaderUnionStack):
                    return self._union_field(stack, node["value"][1], node["value"][2])
            case "access_field":
                place = self.header(node["left"])
                return layout.field_of(place, place.header.fields[int(node["right"])].name)
            case _:
                pass
        raise _unknown("field", node)

    def _union_field(self, stack: HeaderUnionStack, member: str, name: str) -> Storage:
        index = stack.unions[0].members.index(member)
        place = self.context.layout.union_element(stack, index, self.last_index(stack))
        return self.context.layout.field_of(place, name)

    def varbit(self, node: Any) -> tuple[str, str, int] | None:
        """C lvalues of the bytes and their count, and the capacity, of a field of variable length.

        None if the node is anything else.
        """
        node = unwrap(node)
        if not is_field(node) or node.get("value", ("", ""))[1] == "$valid$":
            return None
        storage = self.field(node)
        if not storage.field.is_varbit:
            return None
        structure = storage.reference.rpartition(".")[0]
        count = Place(header=storage.header, member=structure, valid="").varbit_bytes()
        assert count is not None
        return storage.reference, count, storage.field.max_bytes

    # ---- comparison ----

    def same_structures(self, left: Any, right: Any) -> str | None:
        """C truth value of the equality of two headers, unions or fields of variable length.

        None if the nodes are none of these.
        """
        left, right = unwrap(left), unwrap(right)
        kinds = {left.get("type", left.get("op")), right.get("type", right.get("op"))}
        if kinds <= _HEADERS:
            return self._same_headers(self.header(left), self.header(right))
        if kinds <= _UNIONS:
            pairs = zip(self.union(left), self.union(right), strict=True)
            return f"({' || '.join(self._same_headers(*pair) for pair in pairs)})"
        first, second = self.varbit(left), self.varbit(right)
        if first is None or second is None:
            return None
        return f"varbit_equal({first[0]}, {first[1]}, {second[0]}, {second[1]})"

    def _same_headers(self, left: Place, right: Place) -> str:
        tests = ["true"]
        if not left.header.is_metadata:
            tests += [f"{left.valid} != 0", f"{right.valid} != 0"]
        for run in self.context.layout.runs[left.header.name]:
            one, other = f"{left.member}.{run.member}", f"{right.member}.{run.member}"
            if run.fields[0].is_varbit:
                count = count_member(run.first)
                sizes = f"{left.member}.{count}", f"{right.member}.{count}"
                tests.append(f"varbit_equal({one}, {sizes[0]}, {other}, {sizes[1]})")
            else:
                tests.append(f"memcmp(&{one}, &{other}, sizeof {one}) == 0")
        return f"({' && '.join(tests)})"


def _unknown(what: str, node: Any) -> Refusal:
    name = node.get("value", node.get("op", node.get("type")))
    return Refusal(f"{what} {name}", "the JSON does not define it", "Compile again")
