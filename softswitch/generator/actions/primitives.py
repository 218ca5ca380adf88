# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Statements in C."""

from ..calculations import Calculations
from ..context import Context, Refusal
from ..expressions.numbers import store
from ..ir.operands import Expression, Memory, RegisterArray, Target, Validity, Variable
from ..ir.statements import (
    Assign,
    Body,
    If,
    Jump,
    Label,
    Loop,
    PrimitiveCall,
    RegisterRead,
    RegisterWrite,
    ReturnIfExited,
    Statement,
    TraceCall,
)
from .header_primitives import HeaderPrimitives
from .requests import Requests


class Primitives(Requests, HeaderPrimitives):
    """Writes statements in the context of a program or of one action."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.calculations = Calculations(context)
        self.has_local_addresses = False
        """Whether variables of the C function hold the addresses of registers."""

    def body(self, body: Body) -> str:
        """C text of statements; what is refused becomes a problem and is left out."""
        lines: list[str] = []
        for item in body:
            with self.context.refusals(item.source):
                lines.append(self.statement(item))
        return "\n".join(lines)

    def statement(self, item: Statement) -> str:  # noqa: PLR0911 - one case per kind of statement
        """C text of a statement."""
        match item:
            case Assign(target, value):
                return self.assign(target, value)
            case RegisterRead(target, array, index):
                return self._read(target, array, index)
            case RegisterWrite(array, index, value):
                return self._write(array, index, value)
            case PrimitiveCall(op, operands):
                return getattr(self, f"_op_{op}")(*operands)
            case If():
                return self._if(item)
            case Loop(count, body):
                return f"for (size_t i = 0; i < {count}; i++) {{\n{self.body(body)}\n}}"
            case Label(number):
                return f"at_{number}:;"
            case Jump():
                return self._jump(item)
            case ReturnIfExited():
                return "if (p->exited) return;"
            case TraceCall(code):
                return code
            case _:
                raise AssertionError(item)

    # ---- fields ----

    def assign(self, target: Target, value: Expression) -> str:
        """Assign an expression to a field."""
        reference = self.expressions.reference(target)
        if isinstance(target, Validity):
            return f"{reference} = (uint8_t)(({self.expressions.low_bits(value, 32)}) & 1);"
        if self.expressions.varbit(target) is not None:
            return self._op_assign_VL(target, value)
        return self.expressions.put(reference, target.width, target.is_signed, value)

    def _store(self, target: Variable, code: str) -> str:
        """Store a native unsigned value in a field."""
        return store(self.expressions.reference(target), target.width, target.is_signed, code)

    # ---- control flow ----

    def _if(self, item: If) -> str:
        head = f"if ({self.expressions.condition(item.condition)}) {{\n{self.body(item.taken)}\n}}"
        return f"{head} else {{\n{self.body(item.other)}\n}}" if item.other else head

    def _jump(self, item: Jump) -> str:
        text = f"goto at_{item.number};"
        if item.is_backwards:
            fate = self.give_up("loop without end")
            text = f"if (--turns == 0) {{ {fate} return; }}\n{text}"
        if item.condition is None:
            return text
        return f"if (!({self.expressions.condition(item.condition)})) {{\n{text}\n}}"

    # ---- registers, counters, hashes ----

    def _element(self, array: RegisterArray) -> str:
        member = array.block.member
        address = member if self.has_local_addresses else f"s->{member}"
        return array.block.element(address, "(size_t)at", array.lane.code)

    def _at(self, index: Expression, size: int, text: str) -> str:
        """C text that runs only with an index in range, which it calls `at`."""
        return (
            f"{{ const uint64_t at = {self.expressions.index(index)};\nif (at < {size}) {text} }}"
        )

    def _read(self, target: Variable, array: RegisterArray, index: Expression) -> str:
        element = self._element(array)
        if target.width <= 64 and array.width <= 64:
            text = self._store(target, element)
        else:
            text = self.assign(target, Memory(element, array.width))
        return self._at(index, array.size, text)

    def _write(self, array: RegisterArray, index: Expression, value: Expression) -> str:
        text = self.expressions.put(self._element(array), array.width, False, value)
        return self._at(index, array.size, text)

    def _op_count(self, array: str, index: Expression) -> str:
        for counter in self.context.program.counters:
            if counter.name == array and counter.table is None:
                return (
                    f"count_packet(s->c{counter.position}, {counter.size}, "
                    f"{self.expressions.index(index)}, p->counted_bytes);"
                )
        raise Refusal(f"counter {array}", "it is not a counter array", "Compile again")

    def _op_execute_meter(self, array: str, index: Expression, target: Variable) -> str:
        for meter in self.context.program.meters:
            if meter.name == array and meter.table is None:
                units = "1" if meter.counts_packets else "p->counted_bytes"
                colour = f"meter_execute(&s->m{meter.position}[at], p->now_us, {units})"
                return self._at(index, meter.size, f"{{ {self._store(target, colour)} }}")
        raise Refusal(f"meter {array}", "it is not a meter array", "Compile again")

    def _op_modify_field_with_hash_based_offset(
        self, target: Variable, base: Expression, calculation: str, size: Expression
    ) -> str:
        digest = self.calculations.call(calculation)
        code = (
            f"{self.expressions.low_bits(base, 64)} + "
            f"remainder_of_hash({digest}, {self.expressions.low_bits(size, 64)})"
        )
        return self._store(target, code)

    # ---- fate of the packet ----

    def _op_exit(self) -> str:
        return "p->exited = 1;"

    def _op_no_op(self) -> str:
        return ";"
