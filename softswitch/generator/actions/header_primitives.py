# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Primitives on headers, stacks, unions and fields of variable length."""

from ...program.model import HeaderStack, HeaderUnionStack
from ..context import Context, Refusal
from ..expressions.expressions import Expressions
from ..headers import HeaderPlace
from ..ir.operands import Expression, HeaderOperand, Stack, UnionOperand


class HeaderPrimitives:
    """Writes the statements that act on whole headers and structures of them."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.expressions = Expressions(context)

    # ---- headers ----

    def _op_add_header(self, node: HeaderOperand) -> str:
        place = self.expressions.header(node)
        count = place.varbit_bytes()
        keep, restore = "", ""
        if count is not None:  # its length stays, its value becomes 0
            keep, restore = f"const uint32_t kept = {count};", f"{count} = kept;"
        member = place.member
        length = self._length_change(place, "+")
        return (
            f"if (!{place.valid}) {{ {keep} memset(&{member}, 0, sizeof {member}); {restore} "
            f"{place.make_valid()}{length} }}"
        )

    def _op_add_header_fast(self, node: HeaderOperand) -> str:
        return self.expressions.header(node).make_valid()

    def _op_remove_header(self, node: HeaderOperand) -> str:
        place = self.expressions.header(node)
        length = self._length_change(place, "-")
        if not length:
            return f"{place.valid} = 0;"
        return f"if ({place.valid}) {{ {place.valid} = 0;{length} }}"

    def _length_change(self, place: HeaderPlace, sign: str) -> str:
        if not self.context.counts_length:
            return ""
        size = str(place.header.width // 8)
        if (count := place.varbit_bytes()) is not None:
            size += f" + {count}"
        return f" p->length_change {sign}= {size};"

    def _op_assign_header(self, target: HeaderOperand, source: HeaderOperand) -> str:
        return _assign(self.expressions.header(target), self.expressions.header(source))

    _op_copy_header = _op_assign_header

    def _op_assign_union(self, target: UnionOperand, source: UnionOperand) -> str:
        pairs = zip(self.expressions.union(target), self.expressions.union(source), strict=True)
        return "\n".join(_assign(to, origin) for to, origin in pairs)

    def _op_assign_VL(  # noqa: N802 - BMv2's name
        self, target: Expression, source: Expression
    ) -> str:
        to, origin = self.expressions.varbit(target), self.expressions.varbit(source)
        if to is None or origin is None:
            raise Refusal("assign_VL", "an operand is no field of variable length", "Compile again")
        return f"varbit_assign({to[0]}, &{to[1]}, {to[2]}, {origin[0]}, {origin[1]});"

    # ---- stacks ----

    def _arrays(self, stack: HeaderStack | HeaderUnionStack) -> list[tuple[HeaderPlace, bool]]:
        """First elements of the arrays behind a stack, and whether shifts invalidate them."""
        layout = self.context.layout
        if isinstance(stack, HeaderStack):
            return [(layout.element(stack, "0"), True)]
        # Shifts of a stack of unions leave what they uncover as it was, as BMv2 does.
        members = range(len(stack.unions[0].headers))
        return [(layout.union_element(stack, member, "0"), False) for member in members]

    def _shift(self, function: str, node: Stack, count: Expression) -> str:
        stack = node.stack
        layout = self.context.layout
        size = layout.size(stack)
        lines = [f"{{ const uint64_t count = {self.expressions.index(count)};"]
        for place, is_cleared in self._arrays(stack):
            lines.append(
                f"{function}(&{place.member}, sizeof {place.member}, &{place.valid}, {size}, "
                f"count, {'true' if is_cleared else 'false'});"
            )
        following = layout.next_index(stack)
        lines.append(f"{following} = {function}_next({following}, {size}, count); }}")
        return "\n".join(lines)

    def _op_push(self, stack: Stack, count: Expression) -> str:
        return self._shift("stack_push", stack, count)

    def _op_pop(self, stack: Stack, count: Expression) -> str:
        return self._shift("stack_pop", stack, count)

    def _op_assign_header_stack(self, target: Stack, source: Stack) -> str:
        to, origin = target.stack, source.stack
        layout = self.context.layout
        lines = [f"{layout.next_index(to)} = {layout.next_index(origin)};"]
        for index in range(layout.size(to)):
            if isinstance(to, HeaderStack) and isinstance(origin, HeaderStack):
                place = layout.element(to, str(index))
                lines.append(_assign(place, layout.element(origin, str(index))))
            elif isinstance(to, HeaderUnionStack) and isinstance(origin, HeaderUnionStack):
                for member in range(len(to.unions[0].headers)):
                    place = layout.union_element(to, member, str(index))
                    lines.append(_assign(place, layout.union_element(origin, member, str(index))))
        return "\n".join(lines)

    _op_assign_union_stack = _op_assign_header_stack


def _shape(place: HeaderPlace) -> list[tuple[int, int]]:
    return [(field.width, field.max_bytes) for field in place.header.fields]


def _assign(to: HeaderPlace, origin: HeaderPlace) -> str:
    if _shape(to) != _shape(origin):
        raise Refusal("header assignment", "the headers differ in type", "Compile again")
    copy = f"memmove(&{to.member}, &{origin.member}, sizeof {to.member});"
    if origin.header.is_metadata:
        return copy if to.header.is_metadata else f"{copy} {to.make_valid()}"
    if to.others:
        return f"if ({origin.valid}) {{ {copy} {to.make_valid()} }} else {to.valid} = 0;"
    return f"{to.valid} = {origin.valid};\nif ({to.valid}) {copy}"
