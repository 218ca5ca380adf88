# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Actions: a structure for the parameters and a function for the body of each."""

import re

from ...program.model import Action, Json
from ..c_text import comment, identifier
from ..context import Context, Refusal
from ..expressions.numbers import store
from ..expressions.operands import local_name
from ..headers import storage_type
from .lanes import LOOP, count_locals, finish, roll
from .primitives import (
    EXITING,
    Branch,
    Primitives,
    is_jump,
    structure,
    target,
)

REGISTER = re.compile(r"\bs->(r\d+)\[")
CASES_MAX = 256
"""Actions that a function of the generated code tells apart."""
MAX_TURNS = 1 << 20
"""Jumps backwards that an action may make for one packet; then the packet is dropped."""


def action_symbol(action: Action) -> str:
    """C name of an action's function; with _t it is the type of its parameters."""
    return f"p4_action_{action.position}_{identifier(action.name)}"


def params_bytes(action: Action) -> int:
    """Bytes of an action's parameters at the seam."""
    return sum((parameter.width + 7) // 8 for parameter in action.parameters)


class ActionWriter:
    """Writes the actions of a program."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.primitives = Primitives(context)

    def emit(self) -> str:
        """All actions, in the order of the JSON."""
        return "\n".join(self._action(action) for action in self.context.program.actions)

    def _action(self, action: Action) -> str:
        symbol = action_symbol(action)
        self.context.action = action
        text = [comment(f"{action.name}, {action.source}"), "typedef struct {"]
        for index, parameter in enumerate(action.parameters):
            if parameter.width > 64:
                note = comment(parameter.name)
                text.append(f"uint8_t p{index}[{(parameter.width + 7) // 8}]; {note}")
            else:
                kind = storage_type(
                    parameter.width, (action.position, index) in self.context.signed
                )
                note = comment(f"{parameter.name}, {parameter.width} bits")
                text.append(f"{kind} p{index}; {note}")
        if not action.parameters:
            text.append("uint8_t empty;")
        text.append(f"}} {symbol}_t;\n")
        lines = ["(void)s; (void)p; (void)a;", *self._trace(action)]
        with self.context.refusals(action.source):
            lines += self._body(action)
        is_loop = any(LOOP in line for line in lines)
        if is_loop:
            lines = _with_local_registers(lines)
        text.append(
            f"{'P4_APART ' * is_loop}P4_UNUSED static void {symbol}(pipeline_t *restrict s, "
            f"phv_t *restrict p, const {symbol}_t *restrict a) {{"
        )
        text += [*lines, "}", ""]
        self.context.action = None
        return "\n".join(text)

    def _body(self, action: Action) -> list[str]:
        body = structure(action.primitives, 0, len(action.primitives))
        if body is None:
            return [finish(self._with_jumps(action))]
        statements = self._statements(body)
        totals = count_locals(statements)
        return [*self._declare(totals), finish(roll(statements, totals))]

    def _with_jumps(self, action: Action) -> list[str]:
        """Statements with labels and gotos, for jumps that form loops or other shapes."""
        primitives = action.primitives
        targets = {target(item) for item in primitives if is_jump(item)}
        if any(not 0 <= number <= len(primitives) for number in targets):
            raise Refusal("jump in an action", "it leaves the action", "Compile again")
        text = [f"uint32_t turns = {MAX_TURNS}; (void)turns;"]
        for index, item in enumerate(primitives):
            if index in targets:
                text.append(f"at_{index}:;")
            if not is_jump(item):
                text += self._statements([item])
                continue
            jump = f"goto at_{target(item)};"
            if target(item) <= index:
                fate = self.primitives.give_up("loop without end")
                jump = f"if (--turns == 0) {{ {fate} return; }}\n{jump}"
            if item["op"] == "_jump_if_zero":
                test = self.primitives.expressions.condition(item["parameters"][0])
                jump = f"if (!({test})) {{\n{jump}\n}}"
            text.append(jump)
        if len(primitives) in targets:
            text.append(f"at_{len(primitives)}:;")
        return text

    def _trace(self, action: Action) -> list[str]:
        trace = self.context.trace
        if trace is None:
            return []
        self.context.enclose(self.context.program.json["actions"][action.position])
        lines = self.context.point("action", action.name, {})
        return lines + [trace.memory(i, f"a->p{i}") for i in range(len(action.parameters))]

    def _declare(self, names: dict[str, int]) -> list[str]:
        lines: list[str] = []
        for header, name in sorted(self.context.locals):
            storage = self.context.layout.fields[header, name]
            symbol = local_name(storage)
            if symbol in names:
                lines.append(f"{storage.type} {symbol} = 0; (void){symbol};")
        return lines

    def _statements(self, body: list[Json | Branch]) -> list[str]:
        result: list[str] = []
        for item in body:
            if isinstance(item, Branch):
                result.append(self._branch(item))
                continue
            with self.context.refusals(self.primitives.where(item)):
                result.append(self.primitives.statement(item))
                result += self.context.point("statement", item["op"], item)
                if item["op"] in EXITING:
                    result.append("if (p->exited) return;")
        return result

    def _branch(self, branch: Branch) -> str:
        condition = self.primitives.expressions.condition(branch.condition)
        item = {"expression": branch.condition}
        taken = "\n".join(
            [*self.context.point("branch", "if", item, "1"), self._roll(branch.taken)]
        )
        points = self.context.point("branch", "if", item, "0")
        if not branch.other and not points:
            return f"if ({condition}) {{\n{taken}\n}}"
        other = "\n".join([*points, self._roll(branch.other)])
        return f"if ({condition}) {{\n{taken}\n}} else {{\n{other}\n}}"

    def _roll(self, body: list[Json | Branch]) -> str:
        # Variables of a branch may be used behind it: without totals only unrenamed ones repeat.
        return "\n".join(roll(self._statements(body), count_locals([])))

    def emit_decoder(self) -> str:
        """C function that turns parameters at the seam into an action's structure."""
        return "// Bytes of the decoded structure, or a P_ code.\n" + _by_action(
            "static int p4_decode",
            "uint32_t action, const uint8_t *from, uint32_t bytes, void *to",
            {item.position: self._decoder_case(item) for item in self.context.program.actions},
            "P_BAD_ARGUMENT",
        )

    def _decoder_case(self, action: Action) -> str:
        symbol = action_symbol(action)
        text = [f"case {action.position}: {{"]
        text.append(f"if (bytes != {params_bytes(action)}) return P_BAD_ARGUMENT;")
        if action.parameters:
            text.append(f"{symbol}_t *a = to; memset(a, 0, sizeof *a);")
        offset = 0
        for index, parameter in enumerate(action.parameters):
            is_signed = (action.position, index) in self.context.signed
            text.append(_decode(index, parameter.width, offset, is_signed))
            offset += (parameter.width + 7) // 8
        size = f"(int)sizeof({symbol}_t)" if action.parameters else "0"
        return "\n".join([*text, f"return {size}; }}"])

    def emit_encoder(self) -> str:
        """C function that turns an action's structure into parameters at the seam; bytes."""
        actions = [item for item in self.context.program.actions if item.parameters]
        return _by_action(
            "static uint32_t p4_encode",
            "uint32_t action, const void *from, uint8_t *to",
            {item.position: self._encoder_case(item) for item in actions},
            "0",
        )

    def _encoder_case(self, action: Action) -> str:
        text = [f"case {action.position}: {{", f"const {action_symbol(action)}_t *a = from;"]
        offset = 0
        for index, parameter in enumerate(action.parameters):
            text.append(_encode(index, parameter.width, offset))
            offset += (parameter.width + 7) // 8
        return "\n".join([*text, f"return {params_bytes(action)}; }}"])


def _by_action(start: str, parameters: str, cases: dict[int, str], otherwise: str) -> str:
    """C function with a case per action; of many actions, it asks functions for some of them each.

    A compiler's time for a function grows faster than the function.
    """
    names = [word.split()[-1].lstrip("*") for word in parameters.split(",")]
    voids = " ".join(f"(void){name};" for name in names[1:])
    parts: dict[int, list[str]] = {}
    for position, case in cases.items():
        parts.setdefault(position // CASES_MAX, []).append(case)
    text: list[str] = []
    if len(parts) > 1:
        for part, body in parts.items():
            text.append(f"P4_COLD {start}_{part}({parameters}) {{\n{voids}\nswitch (action) {{")
            text += [*body, f"default: return {otherwise};", "}", "}", ""]
    ask = f"{start.rsplit(maxsplit=1)[-1]}_{{}}({', '.join(names)});"
    text.append(f"{start}({parameters}) {{\n{voids}")
    if len(parts) > 1:
        text.append(f"switch (action / {CASES_MAX}) {{")
        text += [f"case {part}: return {ask.format(part)}" for part in parts]
    else:
        text += ["switch (action) {", *cases.values()]
    return "\n".join([*text, f"default: return {otherwise};", "}", "}", ""])


def _encode(index: int, width: int, offset: int) -> str:
    size = (width + 7) // 8
    if width > 64:
        return f"memcpy(to + {offset}, a->p{index}, {size});"
    return f"store_be(to + {offset}, {size}, (uint64_t)a->p{index} & low_mask({width}));"


def _decode(index: int, width: int, offset: int, is_signed: bool) -> str:
    size = (width + 7) // 8
    spare = size * 8 - width
    check = f"if (from[{offset}] >> {8 - spare}) return P_BAD_ARGUMENT;\n" if spare else ""
    if width > 64:
        return f"{check}memcpy(a->p{index}, from + {offset}, {size});"
    number = f"load_be(from + {offset}, {size})"
    if is_signed:
        return check + store(f"a->p{index}", width, True, number)
    return f"{check}a->p{index} = ({storage_type(width, False)}){number};"


def _with_local_registers(lines: list[str]) -> list[str]:
    """Take the addresses of registers out of loops: C compilers vectorise no load of an address."""
    found = REGISTER.findall("\n".join(lines))
    declared = [f"__typeof__(s->{name}) const {name} = s->{name};" for name in dict.fromkeys(found)]
    return [*declared, *(REGISTER.sub(r"\1[", line) for line in lines)]
