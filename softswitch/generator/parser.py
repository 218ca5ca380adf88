# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The parser: a function whose labels are the states."""

from typing import Any

from softswitch.generator.context import Context, Refusal
from softswitch.generator.headers import Run, identifier, resolve_marks, storage_type
from softswitch.generator.numbers import bytes_constant, store
from softswitch.generator.operands import memory, unwrap
from softswitch.generator.primitives import Primitives
from softswitch.program import Header, Json, parse_hex, source_of

_MAX_STATES = 4096
"""States that one packet may pass through in a parser with a cycle."""


class ParserWriter:
    """Writes the parser of a program."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.primitives = Primitives(context)
        self.expressions = self.primitives.expressions
        self.labels: dict[str, str] = {}

    def emit(self) -> str:
        """C function p4_parse."""
        parser = self.context.program.json["parsers"][0]
        states = {state["name"]: state for state in parser["parse_states"]}
        for index, name in enumerate(states):
            self.labels[name] = f"state_{index}_{identifier(name)}"
        reached = _reachable(states, parser["init_state"])
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
            text.append(f"{self.labels[name]}: // {place}")
            self.context.enclose(state)
            text += self.context.point("state", name, state, "at")
            short = self._error("ParserTimeout")
            text.append(f"if (++steps > {_MAX_STATES}) {{ {short} }}")
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
        return resolve_marks("\n".join(text))

    def _error(self, name: str) -> str:
        return f"error = {self.context.error_code(name)}; goto done;"

    # ---- operations ----

    def _operation(self, operation: Json) -> str:
        parameters = operation["parameters"]
        match operation["op"]:
            case "extract":
                return self._extract(parameters[0])
            case "set":
                return self._set(parameters[0], parameters[1])
            case "verify":
                test = self.expressions.condition(parameters[0])
                code = self.expressions.low_bits(parameters[1], 32)
                return f"if (!({test})) {{ error = {code}; goto done; }}"
            case "shift":
                return self._advance(str(int(parameters[0]) * 8))
            case "advance":
                return self._advance(self.expressions.low_bits(parameters[0], 32))
            case "primitive":
                return self.primitives.statement(parameters[0])
            case other:
                raise Refusal(
                    f"parser operation '{other}'",
                    "this switch does not support it",
                    "Use headers of fixed length",
                )

    def _advance(self, bits: str) -> str:
        return (
            f"{{ const uint32_t bits = {bits};\n"
            f"if (bits > end - at) {{ {self._error('PacketTooShort')} }}\n"
            f"if (bits % 8 != 0) {{ {self._error('ParserInvalidArgument')} }}\n"
            "at += bits; }"
        )

    def _extract(self, parameter: Any) -> str:
        if parameter["type"] != "regular":
            raise Refusal(
                f"extract into '{parameter['type']}'",
                "header stacks and unions are not supported",
                "Use one header instance per layer",
            )
        header = self.context.program.header(parameter["value"])
        if any(field.width == 0 for field in header.fields) or header.width % 8 != 0:
            raise Refusal(
                f"extract of header {header.name}",
                "it is not a fixed number of whole bytes",
                "Use fields of fixed length that fill whole bytes",
            )
        layout = self.context.layout
        lines = [f"if ({header.width} > end - at) {{ {self._error('PacketTooShort')} }}"]
        lines.append("{ const uint8_t *from = frame + at / 8;")
        for run in layout.runs[header.name]:
            lines.append(self._load_run(header, run))
        if not header.fields:
            lines.append("(void)from;")
        lines.append(f"at += {header.width}; {layout.valid(header.name)} = 1; }}")
        return "\n".join(lines)

    def _load_run(self, header: Header, run: Run) -> str:
        member = f"{self.context.layout.member(header.name)}.{run.member}"
        field = run.fields[0]
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
            return self.primitives.assign(target, value)
        header, name = target["value"]
        field = self.context.layout.fields[header, name].field
        reference = self.expressions.reference(target)
        check = self._check_lookahead(value["value"])
        width = value["value"][1]
        if width > 64:
            text = self.expressions.put(
                reference, field.width, field.is_signed, memory("ahead", width)
            )
            return f"{check}{{ {self._wide_lookahead('ahead', value['value'])}{text} }}"
        code = self._lookahead(value["value"])
        return check + store(reference, field.width, field.is_signed, code)

    # ---- transitions ----

    def _transition(self, state: Json) -> str:
        keys: list[tuple[str, int]] = []
        lines: list[str] = ["{"]
        for index, part in enumerate(state["transition_key"]):
            match part["type"]:
                case "field":
                    width = self.expressions.width_of(part) or 1
                    if width > 64:
                        wide = self.expressions.bytes_of(part)
                        lines.append(f"const uint8_t *k{index} = {wide};")
                        keys.append((f"k{index}", width))
                        continue
                    code = self.expressions.low_bits(part, width)
                case "lookahead":
                    width = part["value"][1]
                    lines.append(self._check_lookahead(part["value"]))
                    if width > 64:
                        lines.append(self._wide_lookahead(f"k{index}", part["value"]))
                        keys.append((f"k{index}", width))
                        continue
                    code = self._lookahead(part["value"])
                case other:
                    raise Refusal(
                        f"select on '{other}'",
                        "header stacks and unions are not supported",
                        "Select on fields of plain headers",
                    )
            mask = f"low_mask({width})"
            lines.append(f"const uint64_t k{index} = (uint64_t)({code}) & {mask};")
            keys.append((f"k{index}", width))
        has_default = False
        for transition in state["transitions"]:
            target = transition["next_state"]
            jump = f"goto {'done' if target is None else self.labels[target]};"
            if transition["type"] == "default":
                lines.append(jump)
                has_default = True
                break
            if transition["type"] != "hexstr":
                raise Refusal(
                    f"transition on '{transition['type']}'",
                    "value sets are not supported",
                    "Select on constants",
                )
            lines.append(f"if ({_match(transition, keys)}) {jump}")
        if not has_default:
            error = "" if not state["transitions"] else self._error("NoMatch")
            lines.append(error or "goto done;")
        return "\n".join([*lines, "}"])


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
