# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Actions: a structure for the parameters and a function for the body of each."""

from ...program.model import ProgramAction
from ..c_text import comment, identifier
from ..context import Context
from ..expressions.numbers import store
from ..headers import storage_type
from ..ir.bodies import BodyReader
from ..ir.loops import find_loops
from ..ir.operands import Local, Node, RegisterArray, walk
from ..ir.scalars import find_local_scalars, use_locals
from ..ir.statements import Body, Jump, Loop
from .primitives import Primitives

CASES_MAX = 256
"""Actions that a function of the generated code tells apart."""
MAX_TURNS = 1 << 20
"""Jumps backwards that an action may make for one packet; then the packet is dropped."""


def action_symbol(action: ProgramAction) -> str:
    """C name of an action's function; with _t it is the type of its parameters."""
    return f"p4_action_{action.position}_{identifier(action.name)}"


def params_bytes(action: ProgramAction) -> int:
    """Bytes of an action's parameters at the seam."""
    return sum((parameter.width + 7) // 8 for parameter in action.parameters)


class ActionWriter:
    """Writes the actions of a program."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.bodies = BodyReader(context)
        self.scalars: frozenset[tuple[str, str]] = frozenset()
        """Header and name of the scalars that live in variables of an action."""
        self.primitives = Primitives(context)

    def emit(self) -> str:
        """All actions, in the order of the JSON."""
        program, layout = self.context.program, self.context.layout
        bodies = [self.bodies.action(action) for action in program.actions]
        if self.context.trace is None:  # which shows scalars like all other fields
            self.scalars = find_local_scalars(program, bodies)
        return "\n".join(
            self._action(action, find_loops(use_locals(body, self.scalars, layout)))
            for action, body in zip(program.actions, bodies, strict=True)
        )

    def _action(self, action: ProgramAction, body: Body) -> str:
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
        nodes = list(walk(body))
        has_loop = any(isinstance(node, Loop) for node in nodes)
        self.primitives.has_local_addresses = has_loop
        text += [
            f"{'P4_APART ' * has_loop}P4_UNUSED static void {symbol}(pipeline_t *restrict s, "
            f"phv_t *restrict p, const {symbol}_t *restrict a) {{",
            *(_addresses(nodes) if has_loop else []),
            "(void)s; (void)p; (void)a;",
            *self._variables(nodes),
            self.primitives.body(body),
            "}",
            "",
        ]
        self.primitives.has_local_addresses = False
        self.context.action = None
        return "\n".join(text)

    def _variables(self, nodes: list[Node]) -> list[str]:
        """C declarations of what the nodes of a body use."""
        names = {node.name for node in nodes if isinstance(node, Local)}
        storages = [self.context.layout.fields[key] for key in sorted(self.scalars)]
        lines = [
            f"{item.type} {item.local_name} = 0; (void){item.local_name};"
            for item in storages
            if item.local_name in names
        ]
        if any(isinstance(node, Jump) for node in nodes):
            lines.append(f"uint32_t turns = {MAX_TURNS}; (void)turns;")
        return lines

    def emit_decoder(self) -> str:
        """C function that turns parameters at the seam into an action's structure."""
        return "// Bytes of the decoded structure, or a P_ code.\n" + _by_action(
            "static int p4_decode",
            "uint32_t action, const uint8_t *from, uint32_t bytes, void *to",
            {item.position: self._decoder_case(item) for item in self.context.program.actions},
            "P_BAD_ARGUMENT",
        )

    def _decoder_case(self, action: ProgramAction) -> str:
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

    def _encoder_case(self, action: ProgramAction) -> str:
        text = [f"case {action.position}: {{", f"const {action_symbol(action)}_t *a = from;"]
        offset = 0
        for index, parameter in enumerate(action.parameters):
            text.append(_encode(index, parameter.width, offset))
            offset += (parameter.width + 7) // 8
        return "\n".join([*text, f"return {params_bytes(action)}; }}"])


def _addresses(nodes: list[Node]) -> list[str]:
    """Take the addresses of registers out of loops: C compilers vectorise no load of an address."""
    members = [node.block.member for node in nodes if isinstance(node, RegisterArray)]
    return [f"__typeof__(s->{name}) const {name} = s->{name};" for name in dict.fromkeys(members)]


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
