# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Places of headers and fields in stacks and unions, which may depend on an index at run time."""

from abc import ABC, abstractmethod

from ..program.model import HeaderStack, HeaderUnionStack
from .context import Context
from .headers import HeaderPlace, count_member
from .ir.operands import (
    Element,
    Expression,
    FieldOperand,
    HeaderOperand,
    Instance,
    UnionInstance,
    UnionMember,
    UnionOperand,
)


class Structures(ABC):
    """Writes what reaches headers, stacks and unions."""

    def __init__(self, context: Context) -> None:
        self.context = context

    @abstractmethod
    def index(self, node: Expression) -> str:
        """C code of an index as uint64_t."""

    def header(self, node: HeaderOperand) -> HeaderPlace:
        """Place of a header."""
        match node:
            case Instance(name):
                return self.context.layout.place(name)
            case Element(stack, index):
                return self.context.layout.element(stack, self._index(stack, index))
            case UnionMember(union, position):
                return self.union(union)[position]

    def union(self, node: UnionOperand) -> tuple[HeaderPlace, ...]:
        """Places of the headers of a union."""
        layout = self.context.layout
        if isinstance(node, UnionInstance):
            return tuple(layout.place(name) for name in node.union.headers)
        index = self._index(node.stack, node.index)
        members = range(len(node.stack.unions[0].headers))
        return tuple(layout.union_element(node.stack, member, index) for member in members)

    def _index(self, stack: HeaderStack | HeaderUnionStack, node: Expression | None) -> str:
        """C code of an element's index, that of the spare element if there is none."""
        layout = self.context.layout
        code = f"(uint64_t){layout.next_index(stack)} - 1" if node is None else self.index(node)
        return f"stack_index({code}, {layout.size(stack)})"

    def varbit(self, node: Expression) -> tuple[str, str, int] | None:
        """C lvalues of the bytes and their count, and the capacity, of a field of variable length.

        None if the node is anything else.
        """
        if not isinstance(node, FieldOperand) or not node.field.is_varbit:
            return None
        place = self.header(node.header)
        count = place.varbit_bytes()
        assert count is not None
        return node.run.element(place, node.lane.code), count, node.field.max_bytes

    # ---- comparison ----

    def same_structures(self, left: Expression, right: Expression) -> str | None:
        """C truth value of the equality of two headers, unions or fields of variable length.

        None if the nodes are none of these.
        """
        if isinstance(left, HeaderOperand) and isinstance(right, HeaderOperand):
            return self._same_headers(self.header(left), self.header(right))
        if isinstance(left, UnionOperand) and isinstance(right, UnionOperand):
            pairs = zip(self.union(left), self.union(right), strict=True)
            return f"({' || '.join(self._same_headers(*pair) for pair in pairs)})"
        first, second = self.varbit(left), self.varbit(right)
        if first is None or second is None:
            return None
        return f"varbit_equal({first[0]}, {first[1]}, {second[0]}, {second[1]})"

    def _same_headers(self, left: HeaderPlace, right: HeaderPlace) -> str:
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
