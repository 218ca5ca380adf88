# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Primitives of actions, one C statement each, and the structure that their jumps stand for."""

from dataclasses import dataclass
from typing import Any

from ...program.model import Json, parse_hex, source_of
from ..calculations import Calculations
from ..context import Context, Refusal
from ..expressions.numbers import store
from ..expressions.operands import memory
from ..structures import is_field, unwrap
from ..tables.registers import register_blocks, register_element
from .header_primitives import HeaderPrimitives
from .requests import Requests


@dataclass(frozen=True)
class Branch:
    """An if inside an action: jumps put back into blocks."""

    condition: Any
    taken: "list[Json | Branch]"
    other: "list[Json | Branch]"


def is_jump(primitive: Json) -> bool:
    """Whether a primitive is a jump within its action."""
    return primitive["op"] in ("_jump", "_jump_if_zero")


def target(primitive: Json) -> int:
    """Index of the primitive that a jump leads to."""
    return parse_hex(primitive["parameters"][-1]["value"])


EXITING = ("exit", "assert", "assume")
"""Primitives that may end the control."""


def can_exit(primitives: tuple[Json, ...]) -> bool:
    """Whether an action may end the control: by a statement, or for a loop without end."""
    return any(
        item["op"] in EXITING or (is_jump(item) and target(item) <= index)
        for index, item in enumerate(primitives)
    )


def structure(primitives: tuple[Json, ...], start: int, end: int) -> "list[Json | Branch] | None":
    """Turn the jumps of primitives [start, end) into branches; None if they form no blocks."""
    result: list[Json | Branch] = []
    at = start
    while at < end:
        primitive = primitives[at]
        if not is_jump(primitive):
            result.append(primitive)
            at += 1
            continue
        middle = target(primitive)
        if primitive["op"] == "_jump" or not at < middle <= end:
            return None
        after = middle
        then_end = middle
        last = primitives[middle - 1]
        if middle - 1 > at and last["op"] == "_jump":
            after = target(last)
            then_end = middle - 1
            if not middle <= after <= end:
                return None
        taken = structure(primitives, at + 1, then_end)
        other = structure(primitives, middle, after)
        if taken is None or other is None:
            return None
        result.append(Branch(primitive["parameters"][0], taken, other))
        at = after
    return result


class Primitives(Requests, HeaderPrimitives):
    """Writes the statements of actions."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.calculations = Calculations(context)
        self.blocks = register_blocks(context.program)

    def statement(self, primitive: Json) -> str:
        """C text of one primitive, marks and all."""
        writer = getattr(self, f"_op_{primitive['op']}", None)
        if writer is None:
            raise Refusal(
                f"primitive '{primitive['op']}'",
                "this switch does not support it",
                "Run the program on simple_switch_grpc, or do without it",
            )
        return writer(*primitive["parameters"])

    def where(self, primitive: Json) -> str:
        """Name the place of a primitive for a problem."""
        action = self.context.action
        return source_of(primitive, action.source if action is not None else primitive["op"])

    # ---- fields ----

    def assign(self, target: Any, value: Any) -> str:
        """Assign an expression to a field."""
        target = unwrap(target)
        if not is_field(target):
            raise Refusal(
                f"assignment to '{target.get('type', target.get('op'))}'",
                "only header fields can be written",
                "Assign to a field",
            )
        if self.expressions.varbit(target) is not None:
            return self._op_assign_VL(target, value)
        width = self.expressions.width_of(target)
        reference = self.expressions.reference(target)
        if width is None:
            return f"{reference} = (uint8_t)(({self.expressions.low_bits(value, 32)}) & 1);"
        is_signed = self.expressions.field(target).field.is_signed
        return self.expressions.put(reference, width, is_signed, value)

    def _op_assign(self, target: Any, value: Any) -> str:
        return self.assign(target, value)

    # ---- registers, counters, hashes ----

    def _register(self, node: Any) -> Any:
        for register in self.context.program.registers:
            if register.name == node["value"]:
                return register
        raise Refusal(f"register {node['value']}", "the JSON does not define it", "Compile again")

    def _op_register_read(self, target: Any, array: Any, index: Any) -> str:
        register = self._register(array)
        element = register_element(self.blocks, register, "(size_t)at")
        target = unwrap(target)
        field = self.expressions.field(target).field
        reference = self.expressions.reference(target)
        if field.width <= 64 and register.width <= 64:
            text = store(reference, field.width, field.is_signed, element)
        else:
            value = memory(element, register.width)
            text = self.expressions.put(reference, field.width, field.is_signed, value)
        return (
            f"{{ const uint64_t at = {self.expressions.index(index)};\n"
            f"if (at < {register.size}) {text} }}"
        )

    def _op_register_write(self, array: Any, index: Any, value: Any) -> str:
        register = self._register(array)
        element = register_element(self.blocks, register, "(size_t)at")
        text = self.expressions.put(element, register.width, False, value)
        return (
            f"{{ const uint64_t at = {self.expressions.index(index)};\n"
            f"if (at < {register.size}) {text} }}"
        )

    def _op_count(self, array: Any, index: Any) -> str:
        for counter in self.context.program.counters:
            if counter.name == array["value"] and counter.table is None:
                return (
                    f"count_packet(s->c{counter.position}, {counter.size}, "
                    f"{self.expressions.index(index)}, p->counted_bytes);"
                )
        raise Refusal(f"counter {array['value']}", "it is not a counter array", "Compile again")

    def _op_execute_meter(self, array: Any, index: Any, target: Any) -> str:
        for meter in self.context.program.meters:
            if meter.name == array["value"] and meter.table is None:
                target = unwrap(target)
                header, name = target["value"]
                field = self.context.layout.fields[header, name].field
                units = "1" if meter.counts_packets else "p->counted_bytes"
                colour = f"meter_execute(&s->m{meter.position}[at], p->now_us, {units})"
                reference = self.expressions.reference(target)
                text = store(reference, field.width, field.is_signed, colour)
                return (
                    f"{{ const uint64_t at = {self.expressions.index(index)};\n"
                    f"if (at < {meter.size}) {{ {text} }} }}"
                )
        raise Refusal(f"meter {array['value']}", "it is not a meter array", "Compile again")

    def _op_modify_field_with_hash_based_offset(
        self, target: Any, base: Any, calculation: Any, size: Any
    ) -> str:
        target = unwrap(target)
        field = self.expressions.field(target).field
        digest = self.calculations.call(calculation["value"])
        code = (
            f"{self.expressions.low_bits(base, 64)} + "
            f"remainder_of_hash({digest}, {self.expressions.low_bits(size, 64)})"
        )
        reference = self.expressions.reference(target)
        return store(reference, field.width, field.is_signed, code)

    # ---- fate of the packet ----

    def _op_exit(self) -> str:
        return "p->exited = 1;"

    def _op_no_op(self) -> str:
        return ";"
