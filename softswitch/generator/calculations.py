# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Calculations: checksums as sums over fields in place, other hashes over serialised bytes."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from ..program.model import Header, HeaderStack, Json, parse_hex, source_of
from .c_text import comment, identifier
from .context import Context, Refusal
from .headers import Run

_PLAIN = ("csum16", "crc16", "crc32", "crcCCITT", "xor16", "xor32", "identity")
_HASHES = {name: name for name in _PLAIN} | {
    "cksum16": "csum16",
    "crc16_custom": "crc16",
    "crc32_custom": "crc32",
}
"""C function of each algorithm; custom CRCs with the parameters that BMv2 starts with."""


@dataclass(frozen=True)
class _Item:
    """A piece of a calculation's input: a run of fields, or a constant."""

    header: Header | None
    run: Run | None
    offset: int
    """Bits before it in the input when all headers are valid."""
    width: int
    constant: int = 0

    @property
    def gate(self) -> str | None:
        """Header whose fields it holds, unless they are always there."""
        return None if self.header is None or self.header.is_metadata else self.header.name


@dataclass(frozen=True)
class _Input:
    """What a calculation is over. Fields of an invalid header are left out."""

    items: tuple[_Item, ...]
    has_payload: bool

    @property
    def bits(self) -> int:
        """Bits of the items when all headers are valid, without fields of variable length."""
        return sum(item.width for item in self.items)

    @property
    def max_bytes(self) -> int:
        """Most bytes that the items take."""
        varbit = sum(item.run.fields[0].max_bytes for item in self.items if item.run is not None)
        return (self.bits + 7) // 8 + varbit

    @property
    def has_varbit(self) -> bool:
        """Whether a field of variable length is in it."""
        return any(item.run is not None and item.run.fields[0].is_varbit for item in self.items)

    @property
    def gates(self) -> list[str]:
        """Headers whose validity decides what is in it."""
        return list(dict.fromkeys(item.gate for item in self.items if item.gate is not None))

    @property
    def keeps_words(self) -> bool:
        """Whether everything stays aligned to 16 bits when a header is left out."""
        sizes = [
            (gate, sum(item.width for item in group))
            for gate, group in groupby(self.items, key=lambda item: item.gate)
        ]
        return all(size % 16 == 0 for gate, size in sizes if gate is not None)


class Calculations:
    """Writes the calculations of a program: a C function for each."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def _input(self, calculation: Json) -> _Input:
        items: list[_Item] = []
        offset = 0
        has_payload = False
        for part in calculation["input"]:
            match part["type"]:
                case "field":
                    added = [self._field(part["value"], offset)]
                case "header":
                    added = list(self._header(part["value"], offset))
                case "header_stack":
                    added = list(self._stack(part["value"], offset))
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
        return _Input(tuple(items), has_payload)

    def _field(self, value: Any, offset: int) -> _Item:
        header = self.context.program.header(value[0])
        for run in self.context.layout.runs[header.name]:
            for index, field in enumerate(run.fields):
                if field.name == value[1]:
                    member = f"{run.member}[{index}]" if run.is_array else run.member
                    single = Run(member=member, first=run.first + index, fields=(field,))
                    return _Item(header, single, offset, field.width)
        raise Refusal(f"field {'.'.join(value)}", "the JSON does not define it", "Compile again")

    def _header(self, name: str, offset: int) -> Iterator[_Item]:
        header = self.context.program.header(name)
        for run in self.context.layout.runs[name]:
            width = sum(field.width for field in run.fields)
            yield _Item(header, run, offset, width)
            offset += width

    def _stack(self, name: str, offset: int) -> Iterator[_Item]:
        stack = self.context.layout.stack(name)
        for header in stack.headers if isinstance(stack, HeaderStack) else ():
            items = list(self._header(header, offset))
            offset += sum(item.width for item in items)
            yield from items

    def _member(self, item: _Item) -> str:
        assert item.header is not None
        assert item.run is not None
        return f"{self.context.layout.member(item.header.name)}.{item.run.member}"

    def _is_valid(self, gates: list[str]) -> str:
        return " && ".join(f"{self.context.layout.valid(gate)} != 0" for gate in gates) or "true"

    # ---- ones' complement sums ----

    def _csum16(self, data: _Input) -> list[str]:
        text = ["uint64_t sum = 0;"]
        text += [self._guard(item, self._add_item(item)) for item in data.items]
        if data.has_payload:
            rest = "fold_16(sum_bytes(p->payload, p->payload_bytes))"
            is_odd = (data.bits + 7) // 8 % 2 != 0
            text.append(f"sum += {f'__builtin_bswap16({rest})' if is_odd else rest};")
        text.append("return (uint16_t)~fold_16(sum);")
        return text

    def _can_sum_in_place(self, data: _Input) -> bool:
        """Whether a sum needs no copy, at least while all headers are valid."""
        wide = [
            item for item in data.items if item.run is not None and item.run.fields[0].width > 64
        ]
        return not data.has_varbit and all(
            (item.offset % 16, item.width % 16) == (0, 0) for item in wide
        )

    def _guard(self, item: _Item, text: str) -> str:
        if item.gate is None:
            return text
        return f"if ({self.context.layout.valid(item.gate)}) {{ {text} }}"

    def _add_item(self, item: _Item) -> str:
        shift = -(item.offset + item.width) % 16
        if item.run is None or item.header is None:
            folded = item.constant << shift
            while folded >> 16:
                folded = (folded & 0xFFFF) + (folded >> 16)
            return f"sum += {folded};"
        member = self._member(item)
        width = item.run.fields[0].width
        if width > 64:
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

    # ---- serialised input ----

    def _serialise(self, data: _Input) -> list[str]:
        """Statements that append what is there, where `at` counts bits."""
        lines: list[str] = []
        for item in data.items:
            lines.append(self._guard(item, " ".join(self._append(item))))
        return lines

    def _append(self, item: _Item) -> Iterator[str]:
        if item.run is None or item.header is None:
            value = item.constant & ((1 << item.width) - 1)
            for at in range(0, item.width, 64):
                width = min(64, item.width - at)
                part = value >> (item.width - at - width) & ((1 << width) - 1)
                yield f"or_bits(bytes, at + {at}, {width}, UINT64_C({part}));"
            yield f"at += {item.width};"
            return
        member = self._member(item)
        field = item.run.fields[0]
        width = field.width
        if field.is_varbit:
            count = self.context.layout.place(item.header.name).varbit_bytes()
            yield f"or_bytes(bytes, at, {member}, {count}); at += {count} * 8;"
        elif width > 64:
            yield f"insert_bits(bytes, at, {member}, {width}); at += {width};"
        elif item.run.is_array:
            count = len(item.run.fields)
            yield f"for (uint32_t i = 0; i < {count}; i++, at += {width}) "
            yield f"or_bits(bytes, at, {width}, (uint64_t){member}[i]);"
        elif width > 0:
            yield f"or_bits(bytes, at, {width}, (uint64_t){member}); at += {width};"

    # ---- functions ----

    def call(self, name: str) -> str:
        """C expression of a calculation's output, as uint64_t."""
        return f"{self._symbol(name)}(p)"

    def _symbol(self, name: str) -> str:
        """C name of a calculation's function."""
        names = [item["name"] for item in self.context.program.json.get("calculations", [])]
        if name not in names:
            raise Refusal(f"calculation {name}", "the JSON does not define it", "Compile again")
        return f"p4_calculation_{names.index(name)}_{identifier(name)}"

    def emit(self) -> str:
        """All functions."""
        text: list[str] = []
        for calculation in self.context.program.json.get("calculations", []):
            place = source_of(calculation, f"calculation {calculation['name']}")
            with self.context.refusals(place):
                text += self._function(calculation, place)
        return "\n".join(text)

    def _function(self, calculation: Json, place: str) -> list[str]:
        algorithm = _HASHES.get(calculation["algo"])
        if algorithm is None:
            raise Refusal(
                f"hash algorithm '{calculation['algo']}'",
                "it is not supported",
                f"Use one of {', '.join(_HASHES)}",
            )
        data = self._input(calculation)
        name = self._symbol(calculation["name"])
        text = [comment(place), f"P4_UNUSED static uint64_t {name}(const phv_t *p) {{", "(void)p;"]
        if algorithm == "csum16" and self._can_sum_in_place(data):
            if data.keeps_words:
                return [*text, *self._csum16(data), "}", ""]
            # The usual case; without one of the headers, what follows it moves by odd bits.
            text += [f"if ({self._is_valid(data.gates)}) {{", *self._csum16(data), "}"]
        text.append(f"uint8_t bytes[{max(data.max_bytes, 1)}] = {{0}};")
        text.append("uint32_t at = 0;")
        if data.gates and not data.has_varbit:
            # The usual case, with constant offsets.
            text += [f"if ({self._is_valid(data.gates)}) {{"]
            text += [" ".join(self._append(item)) for item in data.items]
            text += ["} else {", *self._serialise(data), "}"]
        else:
            text += self._serialise(data)
        size = "(at + 7) / 8"
        if data.has_payload:
            code = f"hash_tail_{algorithm}(bytes, {size}, p->payload, p->payload_bytes)"
        else:
            code = f"hash_{algorithm}(bytes, {size})"
        return [*text, f"return {code};", "}", ""]


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
