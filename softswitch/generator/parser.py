# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The parser: a function whose labels are the states."""

from typing import Any

from ..program.model import HeaderStack, HeaderUnionStack, Json, parse_hex, source_of
from .actions.primitives import Primitives
from .c_text import comment, identifier
from .context import Context, Refusal
from .expressions.numbers import bytes_constant, store
from .headers import HeaderPlace, Run, storage_type
from .ir.bodies import BodyReader
from .ir.lowering import unwrap
from .ir.operands import Memory
from .tables.value_sets import ValueSetWriter

_MAX_STATES = 1 << 16
"""States within cycles that one packet may enter; the longest frame has fewer bytes."""


class ParserWriter:
    """Writes the parser of a program."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.bodies = BodyReader(context)
        self.primitives = Primitives(context)
        self.expressions = self.primitives.expressions
        self.value_sets = ValueSetWriter(context)
        self.labels: dict[str, str] = {}

    def emit(self) -> str:
        """C function p4_parse."""
        parser = self.context.program.json["parsers"][0]
        states = {state["name"]: state for state in parser["parse_states"]}
        for index, name in enumerate(states):
            self.labels[name] = f"state_{index}_{identifier(name)}"
        reached = _reachable(states, parser["init_state"])
        cyclic = {name for name in reached if name in _behind(states, name)}
        text = [
            "static void p4_parse(pipeline_t *s, phv_t *p, const uint8_t *frame, uint32_t bytes) {",
            "uint32_t at = 0; // bits taken",
            "const uint32_t end = bytes * 8;",
            "uint32_t error = 0;",
            "uint32_t steps = 0;",
            "(void)s; (void)steps; (void)end; (void)frame;",
        ]
        if parser["init_state"] is not None:
            text.append(f"goto {self.labels[parser['init_state']]};")
        for name in reached:
            state = states[name]
            place = source_of(state, f"parser state {name}")
            text.append(f"{self.labels[name]}: {comment(place)}")
            self.context.enclose(state)
            text += self.context.point("state", name, state, "at")
            if name in cyclic:
                late = self._error("ParserTimeout")
                text.append(f"if (++steps > {_MAX_STATES}) {{ {late} }}")
            for operation in state["parser_ops"]:
                where = source_of(operation, place)
                with self.context.refusals(where):
                    text.append(self._operation(operation))
                    text += self.context.point("operation", name, operation, "at")
            text += self.context.point("select", name, state, "at")
            with self.context.refusals(place):
                text.append(self._transition(state))
        if self.context.has_standard("parser_error"):
            text += ["done:", f"{self.context.standard('parser_error')} = error;"]
        else:
            text += ["done:", "(void)error;"]
        if self.context.has_counts:
            text.append("p4_parser_errors[error & 255]++;")
        text += self.context.point("end", "parser", {}, "at", "error")
        text += ["p->payload = frame + at / 8;", "p->payload_bytes = bytes - at / 8;", "}", ""]
        return "\n".join(text)

    def _error(self, name: str) -> str:
        return f"error = {self.context.error_code(name)}; goto done;"

    # ---- operations ----

    def _operation(self, operation: Json) -> str:  # noqa: PLR0911 - one case per operation
        parameters = operation["parameters"]
        match operation["op"]:
            case "extract":
                return self._extract(parameters[0], None)
            case "extract_VL":
                return self._extract(parameters[0], parameters[1])
            case "set":
                return self._check_stacks(parameters) + self._set(parameters[0], parameters[1])
            case "verify":
                test = self.expressions.condition(self.bodies.expression(parameters[0]))
                code = self.expressions.low_bits(self.bodies.expression(parameters[1]), 32)
                return f"if (!({test})) {{ error = {code}; goto done; }}"
            case "shift":
                return self._advance(str(int(parameters[0]) * 8))
            case "advance":
                return self._advance(self.expressions.index(self.bodies.expression(parameters[0])))
            case "primitive":
                statement = self.bodies.statement(parameters[0])
                return self._check_stacks(parameters) + self.primitives.statement(statement)
            case other:
                raise Refusal(
                    f"parser operation '{other}'",
                    "this switch does not support it",
                    "Compile with an unmodified p4c",
                )

    def _advance(self, bits: str) -> str:
        return (
            f"{{ const uint64_t bits = {bits};\n"
            f"if (bits % 8 != 0) {{ {self._error('ParserInvalidArgument')} }}\n"
            f"if (bits > end - at) {{ {self._error('PacketTooShort')} }}\n"
            "at += (uint32_t)bits; }"
        )

    def _check_stacks(self, node: Any) -> str:
        """Statements that stop when an empty stack's last element is read."""
        layout = self.context.layout
        lines = ""
        for name in dict.fromkeys(_stacks_read(node)):
            stack = layout.stack(name)
            if stack is not None:
                error = self._error("StackOutOfBounds")
                lines += f"if ({layout.next_index(stack)} == 0) {{ {error} }}\n"
        return lines

    def _extract(self, parameter: Any, length: Any) -> str:
        layout = self.context.layout
        value = parameter["value"]
        if parameter["type"] == "regular":
            return self._extract_to(layout.place(value), length)
        stack = layout.stack(value if parameter["type"] == "stack" else value[0])
        if isinstance(stack, HeaderStack):
            place = layout.element(stack, "slot")
        elif isinstance(stack, HeaderUnionStack):
            member = stack.unions[0].members.index(value[1])
            place = layout.union_element(stack, member, "slot")
        else:
            raise Refusal(
                f"extract into '{parameter['type']}'", "it is no header or stack", "Compile again"
            )
        following = layout.next_index(stack)
        return (
            f"{{ const uint32_t slot = {following};\n"
            f"if (slot >= {layout.size(stack)}) {{ {self._error('StackOutOfBounds')} }}\n"
            f"{self._extract_to(place, length)}\n{following} = slot + 1; }}"
        )

    def _extract_to(self, place: HeaderPlace, length: Any) -> str:
        header = place.header
        if header.width % 8 != 0:
            raise Refusal(
                f"extract of header {header.name}",
                "it is not a number of whole bytes",
                "Use fields that fill whole bytes",
            )
        varbit = header.varbit
        if (varbit is None) != (length is None):
            raise Refusal(
                f"extract of header {header.name}",
                "its field of variable length and the length do not fit",
                "Use extract with a length for headers with a varbit field",
            )
        lines: list[str] = []
        size = f"{header.width}"
        if length is not None and varbit is not None:
            size = f"({header.width} + length)"
            bits = self.expressions.index(self.bodies.expression(length))
            lines += [
                f"const uint64_t length = {bits};",
                f"if (length % 8 != 0) {{ {self._error('ParserInvalidArgument')} }}",
            ]
        if size != "0":
            lines.append(f"if ({size} > end - at) {{ {self._error('PacketTooShort')} }}")
        lines.append("const uint8_t *from = frame + at / 8;")
        if varbit is not None:
            most = varbit.max_bytes * 8
            lines.append(f"if (length > {most}) {{ {self._error('HeaderTooShort')} }}")
        for run in self.context.layout.runs[header.name]:
            lines.append(self._load_run(place, run))
        lines.append("(void)from;")
        step = size if varbit is None else f"(uint32_t){size}"
        return "\n".join(["{", *lines, f"at += {step}; {place.make_valid()} }}"])

    def _load_run(self, place: HeaderPlace, run: Run) -> str:
        member = f"{place.member}.{run.member}"
        field = run.fields[0]
        if field.is_varbit:
            count = place.varbit_bytes()
            return (
                f"{count} = (uint32_t)length / 8; "
                f"load_bytes({member}, {count}, from, {field.offset}); from += {count};"
            )
        if field.width == 0:
            return ""
        if field.width > 64:
            if field.offset % 8 or field.width % 8:
                return f"extract_bits({member}, from, {field.offset}, {field.width});"
            return f"memcpy({member}, from + {field.offset // 8}, {field.width // 8});"
        if not run.is_array:
            code = _load(field.offset, field.width)
            return store(member, field.width, field.is_signed, code)
        count, width = len(run.fields), field.width
        if field.offset % 8 == 0 and width % 8 == 0:
            size = width // 8
            kind = storage_type(width, field.is_signed)
            load = _load_bytes(f"from + {field.offset // 8} + i * {size}", size)
            if field.is_signed:
                body = store(f"{member}[i]", width, True, load)
            else:
                body = f"{member}[i] = ({kind}){load};"
        else:
            code = f"load_bits(from, {field.offset} + (uint32_t)i * {width}, {width})"
            body = store(f"{member}[i]", width, field.is_signed, code)
        return f"for (size_t i = 0; i < {count}; i++) {{ {body} }}"

    def _lookahead(self, value: Any) -> str:
        offset, width = value
        return f"load_bits(frame, at + {offset}, {width})"

    def _wide_lookahead(self, name: str, value: Any) -> str:
        """C statements that declare the bytes of a lookahead of more than 64 bits."""
        offset, width = value
        return (
            f"uint8_t {name}[{(width + 7) // 8}];\n"
            f"extract_bits({name}, frame, at + {offset}, {width});\n"
        )

    def _check_lookahead(self, value: Any) -> str:
        offset, width = value
        return f"if ({offset + width} > end - at) {{ {self._error('PacketTooShort')} }}\n"

    def _set(self, target: Any, value: Any) -> str:
        value = unwrap(value)
        if value.get("type") != "lookahead":
            return self.primitives.statement(self.bodies.assignment(target, value))
        field = self.bodies.variable(target)
        reference = self.expressions.reference(field)
        check = self._check_lookahead(value["value"])
        width = value["value"][1]
        if width > 64:
            text = self.primitives.assign(field, Memory("ahead", width))
            return f"{check}{{ {self._wide_lookahead('ahead', value['value'])}{text} }}"
        code = self._lookahead(value["value"])
        return check + store(reference, field.width, field.is_signed, code)

    # ---- transitions ----

    def _transition(self, state: Json) -> str:
        keys: list[tuple[str, int]] = []
        lines: list[str] = ["{", self._check_stacks(state["transition_key"])]
        for index, part in enumerate(state["transition_key"]):
            name = f"k{index}"
            width, code = self._select_key(name, part)
            keys.append((name, width))
            lines += code
        for transition in state["transitions"]:
            target = transition["next_state"]
            jump = f"goto {'done' if target is None else self.labels[target]};"
            if transition["type"] == "default":
                lines.append(jump)
                break
            lines.append(f"if ({self._test(transition, keys)}) {jump}")
        else:
            # As in BMv2, a select that matches nothing ends the parser without an error.
            lines.append("goto done;")
        return "\n".join([*lines, "}"])

    def _select_key(self, name: str, part: Json) -> tuple[int, list[str]]:
        """Bits of a part of a select's key, and C statements that declare it."""
        if part["type"] == "lookahead":
            ahead = part["value"]
            width, check = ahead[1], self._check_lookahead(ahead)
            if width > 64:
                return width, [check, self._wide_lookahead(name, ahead), f"(void){name};"]
            lines, code = [check], self._lookahead(ahead)
        else:
            node = self.bodies.expression(part)
            # An expression is over indices of stacks.
            width = 32 if part["type"] == "expression" else self.expressions.width_of(node) or 1
            if width > 64:
                address = self.expressions.bytes_of(node)
                return width, [f"const uint8_t *{name} = {address};", f"(void){name};"]
            lines, code = [], self.expressions.low_bits(node, width)
        value = f"(uint64_t)({code}) & low_mask({width})"
        return width, [*lines, f"const uint64_t {name} = {value}; (void){name};"]

    def _test(self, transition: Json, keys: list[tuple[str, int]]) -> str:
        if transition["type"] == "hexstr":
            return _match(transition, keys)
        if transition["type"] != "parse_vset" or transition["mask"] is not None:
            raise Refusal(
                f"transition on '{transition['type']}'",
                "its type or its mask is not known",
                "Compile with an unmodified p4c",
            )
        return self.value_sets.test(transition["value"], keys)


def _match(transition: Json, keys: list[tuple[str, int]]) -> str:
    value = parse_hex(transition["value"])
    mask = parse_hex(transition["mask"]) if transition["mask"] is not None else None
    tests: list[str] = []
    for name, width in reversed(keys):
        padded = (width + 7) // 8 * 8
        ones = (1 << width) - 1
        part = value & ones
        bits = ones if mask is None else mask & ones
        if width > 64:
            pair = f"{bytes_constant(part, width)}, {bytes_constant(bits, width)}"
            tests.append(f"bytes_match({name}, {pair}, {padded // 8})")
        elif mask is None:
            tests.append(f"{name} == UINT64_C({part})")
        else:
            tests.append(f"({name} & UINT64_C({bits})) == UINT64_C({part & bits})")
        mask = None if mask is None else mask >> padded
        value >>= padded
    return " && ".join(reversed(tests)) or "true"


def _load_bytes(address: str, size: int) -> str:
    return f"load_be{size * 8}({address})" if size in (2, 4, 8) else f"load_be({address}, {size})"


def _load(offset: int, width: int) -> str:
    if offset % 8 == 0 and width % 8 == 0:
        return _load_bytes(f"from + {offset // 8}", width // 8)
    first, end = offset // 8, (offset + width + 7) // 8
    if end - first > 8:
        return f"load_bits(from, {offset}, {width})"
    return f"load_be(from + {first}, {end - first}) >> {end * 8 - offset - width}"


def _reachable(states: dict[str, Json], start: str | None) -> list[str]:
    found: list[str] = []
    waiting = [start] if start is not None else []
    while waiting:
        name = waiting.pop(0)
        if name in found:
            continue
        found.append(name)
        waiting += [
            item["next_state"]
            for item in states[name]["transitions"]
            if item["next_state"] is not None
        ]
    return found


def _behind(states: dict[str, Json], name: str) -> set[str]:
    """States that can follow a state, at any distance."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for item in states[waiting.pop()]["transitions"]:
            target = item["next_state"]
            if target is not None and target not in found:
                found.add(target)
                waiting.append(target)
    return found


def _stacks_read(node: Any) -> list[str]:
    """Names of the stacks whose last element a node reads."""
    if isinstance(node, list):
        items: list[Any] = node  # pyright: ignore[reportUnknownVariableType]
        return [name for item in items for name in _stacks_read(item)]
    if not isinstance(node, dict):
        return []
    entry: Json = node  # pyright: ignore[reportUnknownVariableType]
    if entry.get("type") in ("stack_field", "union_stack_field"):
        return [entry["value"][0]]
    return [name for item in entry.values() for name in _stacks_read(item)]
