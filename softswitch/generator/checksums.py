# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Calculations: checksums as sums over fields in place, other hashes over serialised bytes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from softswitch.generator.context import Context, Refusal
from softswitch.generator.expressions import Expressions
from softswitch.generator.headers import Run, resolve_marks
from softswitch.generator.numbers import store
from softswitch.program import Header, Json, parse_hex, source_of

_HASHES = ("csum16", "crc16", "crc32", "crcCCITT", "xor16", "identity")


@dataclass(frozen=True)
class _Item:
    """A piece of a calculation's input: a run of fields, or a constant."""

    header: Header | None
    run: Run | None
    offset: int
    """Bits before it in the input."""
    width: int
    constant: int = 0


class Calculations:
    """Writes the calculations of a program."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def _items(self, calculation: Json) -> tuple[list[_Item], int, bool]:
        """Return the pieces of an input, its bits, and whether the payload follows."""
        items: list[_Item] = []
        offset = 0
        has_payload = False
        for part in calculation["input"]:
            if has_payload:
                raise Refusal("calculation", "fields follow its payload", "Put the payload last")
            match part["type"]:
                case "field":
                    added = [self._field(part["value"], offset)]
                case "header":
                    added = list(self._header(part["value"], offset))
                case "hexstr":
                    width = part.get("bitwidth", (len(part["value"]) - 2) * 4)
                    added = [_Item(None, None, offset, width, parse_hex(part["value"]))]
                case "payload":
                    has_payload = True
                    added = []
                case other:
                    raise Refusal(
                        f"calculation over '{other}'", "it is not supported", "Use plain fields"
                    )
            items += added
            offset += sum(item.width for item in added)
        if offset % 8 != 0:
            raise Refusal("calculation", "its input is not whole bytes", "Add padding bits")
        return items, offset, has_payload

    def _field(self, value: Any, offset: int) -> _Item:
        header = self.context.program.header(value[0])
        for run in self.context.layout.runs[header.name]:
            for index, field in enumerate(run.fields):
                if field.name == value[1]:
                    member = f"{run.member}[{index}]" if run.is_array else run.member
                    single = Run(member=member, first=0, fields=(field,))
                    return _Item(header, single, offset, field.width)
        raise Refusal(f"field {'.'.join(value)}", "the JSON does not define it", "Compile again")

    def _header(self, name: str, offset: int) -> Iterator[_Item]:
        header = self.context.program.header(name)
        for run in self.context.layout.runs[name]:
            width = sum(field.width for field in run.fields)
            yield _Item(header, run, offset, width)
            offset += width

    # ---- ones' complement sums ----

    def _csum16(self, items: list[_Item], bits: int, has_payload: bool, result: str) -> str:
        text = ["uint64_t sum = 0;"]
        for item in items:
            text.append(self._guard(item, self._add_item(item)))
        if has_payload:
            if bits % 16 != 0:
                raise Refusal(
                    "checksum with payload",
                    "an odd number of bytes comes before the payload",
                    "Add a padding byte",
                )
            text.append("sum += fold_16(sum_bytes(p->payload, p->payload_bytes));")
        text.append(f"const uint64_t {result} = (uint16_t)~fold_16(sum);")
        return "\n".join(text)

    def _guard(self, item: _Item, text: str) -> str:
        if item.header is None or item.header.is_metadata:
            return text
        return f"if ({self.context.layout.valid(item.header.name)}) {{ {text} }}"

    def _add_item(self, item: _Item) -> str:
        shift = -(item.offset + item.width) % 16
        if item.run is None or item.header is None:
            folded = item.constant << shift
            while folded >> 16:
                folded = (folded & 0xFFFF) + (folded >> 16)
            return f"sum += {folded};"
        member = f"{self.context.layout.member(item.header.name)}.{item.run.member}"
        width = item.run.fields[0].width
        if width > 64:
            if (item.offset % 16, width % 16) != (0, 0):
                raise Refusal(
                    "checksum over a wide field", "it is not aligned to 16 bits", "Add padding bits"
                )
            return f"sum += fold_16(sum_bytes({member}, {width // 8}));"
        if not item.run.is_array:
            return f"sum += {_term(member, width, shift)};"
        lines: list[str] = []
        count = len(item.run.fields)
        steps = next(n for n in (1, 2, 4, 8, 16) if n * width % 16 == 0)
        for step in range(min(steps, count)):
            end = item.offset + width * (step + 1)
            index = "i" if steps == 1 else f"i * {steps} + {step}"
            times = (count - step + steps - 1) // steps
            term = _term(f"{member}[{index}]", width, -end % 16)
            lines.append(f"for (size_t i = 0; i < {times}; i++) sum += {term};")
        return " ".join(lines)

    # ---- other hashes ----

    def _serialise(self, items: list[_Item], bits: int) -> str:
        size = max(bits // 8, 1)
        text = [f"uint8_t bytes[{size}] = {{0}};"]
        for item in items:
            text.append(self._guard(item, self._put(item)))
        return "\n".join(text)

    def _put(self, item: _Item) -> str:
        if item.run is None or item.header is None:
            value = item.constant & ((1 << item.width) - 1)
            lines: list[str] = []
            for at in range(0, item.width, 64):
                width = min(64, item.width - at)
                part = value >> (item.width - at - width) & ((1 << width) - 1)
                lines.append(f"or_bits(bytes, {item.offset + at}, {width}, UINT64_C({part}));")
            return " ".join(lines)
        member = f"{self.context.layout.member(item.header.name)}.{item.run.member}"
        width = item.run.fields[0].width
        if width > 64:
            if item.offset % 8 != 0:
                raise Refusal("hash over a wide field", "it is not byte-aligned", "Add padding")
            return f"memcpy(bytes + {item.offset // 8}, {member}, {width // 8});"
        if not item.run.is_array:
            return f"or_bits(bytes, {item.offset}, {width}, (uint64_t){member});"
        return (
            f"for (uint32_t i = 0; i < {len(item.run.fields)}; i++) "
            f"or_bits(bytes, {item.offset} + i * {width}, {width}, (uint64_t){member}[i]);"
        )

    def hash(self, name: str, result: str) -> str:
        """C statements that leave a calculation's output in a new uint64_t variable."""
        calculation = self.context.calculation(name)
        algorithm = calculation["algo"]
        items, bits, has_payload = self._items(calculation)
        if algorithm == "csum16":
            return self._csum16(items, bits, has_payload, result)
        if algorithm not in _HASHES or has_payload:
            raise Refusal(
                f"hash algorithm '{algorithm}'{' over the payload' if has_payload else ''}",
                "it is not supported",
                f"Use one of {', '.join(_HASHES)} over fields",
            )
        body = self._serialise(items, bits)
        return f"{body}\nconst uint64_t {result} = hash_{algorithm}(bytes, {bits // 8});"

    # ---- the program's checksums ----

    def emit(self, is_verify: bool) -> str:
        """C function that verifies or updates all checksums, in the order of the JSON."""
        name = "p4_verify_checksums" if is_verify else "p4_update_checksums"
        text = [f"static void {name}(phv_t *p) {{", "(void)p;"]
        for checksum in self.context.program.json.get("checksums", []):
            wanted = checksum.get("verify", False) if is_verify else checksum.get("update", True)
            if not wanted:
                continue
            place = source_of(checksum, f"checksum {checksum['name']}")
            with self.context.refusals(place):
                text.append(f"// {place}")
                text.append(self._checksum(checksum, is_verify))
                kind = "verify" if is_verify else "update"
                text += self.context.point(kind, checksum["name"], checksum)
        return "\n".join([*text, "}", ""])

    def _checksum(self, checksum: Json, is_verify: bool) -> str:
        expressions = Expressions(self.context)
        header, name = checksum["target"]
        storage = self.context.layout.fields[header, name]
        condition = checksum.get("if_cond")
        guards: list[str] = []
        if condition is not None:
            guards.append(expressions.condition(condition))
        if not storage.header.is_metadata:
            guards.append(f"{self.context.layout.valid(header)} != 0")
        body = self.hash(checksum["calculation"], "computed")
        target = resolve_marks(storage.reference)
        width = storage.field.width
        if is_verify:
            mask = f"low_mask({width})"
            error = self.context.standard("checksum_error")
            body += f"\nif ((computed & {mask}) != ((uint64_t){target} & {mask})) {error} = 1;"
        else:
            body += f"\n{store(target, width, storage.field.is_signed, 'computed')}"
        test = " && ".join(f"({guard})" for guard in guards) or "true"
        return resolve_marks(f"if ({test}) {{\n{body}\n}}")


def _term(code: str, width: int, shift: int) -> str:
    """C expression of a field's part of a sum; wide ones are folded first, so that sums fit."""
    kind = {8: "uint8_t", 16: "uint16_t", 32: "uint32_t", 64: "uint64_t"}
    size = next(bits for bits in kind if width <= bits)
    value = f"(uint64_t)({kind[size]}){code}"
    if width < size:
        value = f"({value} & low_mask({width}))"
    if width > 32:
        value = f"(uint64_t)fold_16({value})"
    return f"({value} << {shift})" if shift else value
