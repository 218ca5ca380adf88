# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Turns primitives of BMv2's JSON into statements: those of an action, or one by itself."""

from collections.abc import Callable
from typing import Any

from ...program.model import Json, ProgramAction, source_of
from ..context import STANDARD, Context, Refusal
from ..tables.registers import register_blocks
from .jumps import EXITING, Branch, is_jump, structure, target
from .lowering import Lowering, is_field, unwrap
from .operands import Lane, RegisterArray
from .statements import (
    Assign,
    Body,
    If,
    Jump,
    Label,
    Operand,
    PrimitiveCall,
    RegisterRead,
    RegisterWrite,
    ReturnIfExited,
    Statement,
    TraceCall,
)

_Reader = Callable[[Lowering, Any], Operand]


def _name(_lowering: Lowering, node: Any) -> str:
    """Read the name of an array or a calculation."""
    return node["value"]


_value: _Reader = Lowering.expression
_field: _Reader = Lowering.field
_variable: _Reader = Lowering.variable
_header: _Reader = Lowering.header
_union: _Reader = Lowering.union
_stack: _Reader = Lowering.stack

_OPERANDS: dict[str, tuple[_Reader, ...]] = {
    "add_header": (_header,),
    "add_header_fast": (_header,),
    "assert": (_value,),
    "assign_VL": (_value, _value),
    "assign_header": (_header, _header),
    "assign_header_stack": (_stack, _stack),
    "assign_union": (_union, _union),
    "assign_union_stack": (_stack, _stack),
    "assume": (_value,),
    "clone_egress_pkt_to_egress": (_value, _value),
    "clone_ingress_pkt_to_egress": (_value, _value),
    "copy_header": (_header, _header),
    "count": (_name, _value),
    "execute_meter": (_name, _value, _variable),
    "exit": (),
    "generate_digest": (_name, _value),
    "modify_field_rng_uniform": (_field, _value, _value),
    "modify_field_with_hash_based_offset": (_variable, _value, _name, _value),
    "no_op": (),
    "pop": (_stack, _value),
    "push": (_stack, _value),
    "recirculate": (_value,),
    "remove_header": (_header,),
    "resubmit": (_value,),
    "truncate": (_value,),
}
"""How to read the operands of each primitive that is a plain call."""
_DROP_FIELDS = ("egress_spec", "mcast_grp")


class BodyReader(Lowering):
    """Reads statements in the context of a program or of one action."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._arrays = {
            register.name: RegisterArray(block, Lane(lane))
            for block in register_blocks(context.program)
            for lane, register in enumerate(block.registers)
        }

    # ---- bodies ----

    def action(self, action: ProgramAction) -> Body:
        """Read the body of an action; what is refused becomes a problem and is left out."""
        self.context.action = action
        points = self._entry(action)
        blocks = structure(action.primitives, 0, len(action.primitives))
        body = self._with_jumps(action) if blocks is None else self._blocks(blocks, action)
        self.context.action = None
        return (*points, *body)

    def _entry(self, action: ProgramAction) -> list[Statement]:
        """Trace point of the action, with its parameters."""
        trace = self.context.trace
        if trace is None:
            return []
        self.context.enclose(self.context.program.json["actions"][action.position])
        memory = [trace.memory(i, f"a->p{i}") for i in range(len(action.parameters))]
        return [
            *self._points("action", action.name, {}),
            *(TraceCall(code, source=action.source) for code in memory),
        ]

    def _blocks(self, items: list[Json | Branch], action: ProgramAction) -> Body:
        found: list[Statement] = []
        for item in items:
            if isinstance(item, Branch):
                with self.context.refusals(action.source):
                    found.append(self._branch(item, action))
            else:
                found += self._primitive(item, action)
        return tuple(found)

    def _branch(self, branch: Branch, action: ProgramAction) -> If:
        condition = self.expression(branch.condition)
        item = {"expression": branch.condition}
        sides: list[Body] = []
        for is_true, items in (("1", branch.taken), ("0", branch.other)):
            points = self._points("branch", "if", item, is_true)
            sides.append((*points, *self._blocks(items, action)))
        return If(condition, sides[0], sides[1], source=action.source)

    def _with_jumps(self, action: ProgramAction) -> Body:
        """Read statements with labels, for jumps that form loops or other shapes."""
        primitives = action.primitives
        targets = {target(item) for item in primitives if is_jump(item)}
        with self.context.refusals(action.source):
            if any(not 0 <= number <= len(primitives) for number in targets):
                raise Refusal("jump in an action", "it leaves the action", "Compile again")
        found: list[Statement] = []
        for index, item in enumerate(primitives):
            if index in targets:
                found.append(Label(index, source=action.source))
            if not is_jump(item):
                found += self._primitive(item, action)
                continue
            with self.context.refusals(action.source):
                is_always = item["op"] == "_jump"
                condition = None if is_always else self.expression(item["parameters"][0])
                number = target(item)
                found.append(Jump(number, condition, number <= index, source=action.source))
        if len(primitives) in targets:
            found.append(Label(len(primitives), source=action.source))
        return tuple(found)

    def _primitive(self, primitive: Json, action: ProgramAction) -> list[Statement]:
        """Read one primitive of an action, with what follows from it."""
        found: list[Statement] = []
        with self.context.refusals(source_of(primitive, action.source)):
            found.append(self.statement(primitive))
            found += self._points("statement", primitive["op"], primitive)
            if primitive["op"] in EXITING:
                found.append(ReturnIfExited(source=found[0].source))
        return found

    def _points(self, kind: str, name: str, item: Json, *values: str) -> list[Statement]:
        return [
            TraceCall(code, source=name) for code in self.context.point(kind, name, item, *values)
        ]

    # ---- statements ----

    def statement(self, primitive: Json) -> Statement:
        """Read a primitive that is no jump; raises Refusal for one that is not supported."""
        action = self.context.action
        place = source_of(primitive, action.source if action is not None else primitive["op"])
        op: str = primitive["op"]
        parameters: list[Any] = primitive["parameters"]
        match op:
            case "assign":
                return self.assignment(*parameters, source=place)
            case "register_read":
                to, array, index = parameters
                return RegisterRead(
                    self.variable(to), self._array(array), self.expression(index), source=place
                )
            case "register_write":
                array, index, value = parameters
                return RegisterWrite(
                    self._array(array),
                    self.expression(index),
                    self.expression(value),
                    source=place,
                )
            case "log_msg":
                return self._message(*parameters, source=place)
            case "mark_to_drop" | "drop":
                return self._drop(*parameters, source=place)
            case _:
                return PrimitiveCall(op, self._operands(op, parameters), source=place)

    def assignment(self, node: Any, value: Any, *, source: str = "") -> Assign:
        """Read an assignment of an expression to a field."""
        node = unwrap(node)
        if not is_field(node):
            raise Refusal(
                f"assignment to '{node.get('type', node.get('op'))}'",
                "only header fields can be written",
                "Assign to a field",
            )
        return Assign(self.field(node), self.expression(value), source=source)

    def _array(self, node: Any) -> RegisterArray:
        found = self._arrays.get(node["value"])
        if found is None:
            raise Refusal(
                f"register {node['value']}", "the JSON does not define it", "Compile again"
            )
        return found

    def _operands(self, op: str, parameters: list[Any]) -> tuple[Operand, ...]:
        readers = _OPERANDS.get(op)
        if readers is None:
            raise Refusal(
                f"primitive '{op}'",
                "this switch does not support it",
                "Run the program on simple_switch_grpc, or do without it",
            )
        return tuple(read(self, node) for read, node in zip(readers, parameters, strict=True))

    def _message(self, text: Any, values: Any = None, *, source: str) -> PrimitiveCall:
        # p4c writes {} for no values.
        nodes: list[Any] = values["value"] or [] if values is not None else []
        operands = tuple(self.expression(node) for node in nodes)
        return PrimitiveCall("log_msg", (text["value"], operands), source=source)

    def _drop(self, header: Any = None, *, source: str) -> PrimitiveCall:
        if header is None or header["value"] == STANDARD:
            return PrimitiveCall("mark_to_drop", (), source=source)
        # p4c's copy of standard_metadata, where a function has it as a parameter.
        fields = [self._named_field(header["value"], name) for name in _DROP_FIELDS]
        return PrimitiveCall("mark_copy_to_drop", tuple(fields), source=source)
