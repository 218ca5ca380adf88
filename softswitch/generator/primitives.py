# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Primitives of actions, one C statement each, and the structure that their jumps stand for."""

from dataclasses import dataclass
from typing import Any

from softswitch.generator.calculations import Calculations
from softswitch.generator.context import Context, Refusal
from softswitch.generator.header_primitives import HeaderPrimitives
from softswitch.generator.numbers import store
from softswitch.generator.operands import memory
from softswitch.generator.registers import register_blocks, register_element
from softswitch.generator.structures import is_field, unwrap
from softswitch.program import Json, parse_hex, source_of


@dataclass(frozen=True)
class Branch:
    """An if inside an action: jumps put back into blocks."""

    condition: Any
    taken: "list[Json | Branch]"
    other: "list[Json | Branch]"


def _target(primitive: Json, slot: int) -> int:
    return parse_hex(primitive["parameters"][slot]["value"])


def structure(primitives: tuple[Json, ...], start: int, end: int) -> "list[Json | Branch]":
    """Turn the jumps of primitives [start, end) into branches."""
    result: list[Json | Branch] = []
    at = start
    while at < end:
        primitive = primitives[at]
        if primitive["op"] == "_jump":
            raise _bad_jump()
        if primitive["op"] != "_jump_if_zero":
            result.append(primitive)
            at += 1
            continue
        middle = _target(primitive, 1)
        if not at < middle <= end:
            raise _bad_jump()
        after = middle
        then_end = middle
        last = primitives[middle - 1]
        if middle - 1 > at and last["op"] == "_jump":
            after = _target(last, 0)
            then_end = middle - 1
            if not middle <= after <= end:
                raise _bad_jump()
        taken = structure(primitives, at + 1, then_end)
        other = structure(primitives, middle, after)
        result.append(Branch(primitive["parameters"][0], taken, other))
        at = after
    return result


_CLONE = (
    "clones",
    "send copies with a multicast group, to the CPU port with a replica of it",
)
_REFUSED = {
    "clone_ingress_pkt_to_egress": _CLONE,
    "clone_egress_pkt_to_egress": _CLONE,
    "resubmit": ("resubmission", "do all of the packet's work in one pass"),
    "recirculate": ("recirculation", "do all of the packet's work in one pass"),
    "generate_digest": ("digests", "send the packet to the CPU port as a packet-in"),
    "truncate": ("truncation", "emit the headers that you need, without the rest"),
    "execute_meter": ("meters", "limit rates outside, by an impairment of the port"),
    "modify_field_rng_uniform": ("random numbers", "use a hash of the packet's fields"),
}
"""What the replication engine would have to do, and what a program can do instead."""


def _bad_jump() -> Refusal:
    return Refusal(
        "jump in an action", "its jumps do not form blocks", "Compile with an unmodified p4c"
    )


class Primitives(HeaderPrimitives):
    """Writes the statements of actions."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.calculations = Calculations(context)
        self.blocks = register_blocks(context.program)

    def statement(self, primitive: Json) -> str:
        """C text of one primitive, marks and all."""
        writer = getattr(self, f"_op_{primitive['op']}", None)
        if writer is None:
            what, remedy = _REFUSED.get(primitive["op"], ("it", "do without it"))
            raise Refusal(
                f"primitive '{primitive['op']}'",
                f"this switch does not support {what}",
                f"Run the program on simple_switch_grpc, or {remedy}",
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

    def _op_mark_to_drop(self, _header: Any = None) -> str:
        text = f"{self.context.standard('egress_spec')} = (uint16_t)s->drop_port;"
        if self.context.has_standard("mcast_grp"):
            text += f" {self.context.standard('mcast_grp')} = 0;"
        return text

    _op_drop = _op_mark_to_drop

    def _op_exit(self) -> str:
        return "p->exited = 1;"

    def _op_assert(self, condition: Any) -> str:
        test = self.expressions.condition(condition)
        return f"if (!({test})) {{ {self._op_mark_to_drop()} p->exited = 1; }}"

    _op_assume = _op_assert

    def _op_no_op(self) -> str:
        return ";"

    def _op_log_msg(self, *_arguments: Any) -> str:
        return ";"
