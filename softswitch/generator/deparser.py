# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The deparser: valid headers in order, then the rest of the packet."""

from ..program.model import Field, Header, source_of
from .actions.primitives import Primitives
from .c_text import comment
from .context import Context, Refusal
from .headers import HeaderPlace, Run
from .ir.bodies import BodyReader


class DeparserWriter:
    """Writes the deparser of a program."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.bodies = BodyReader(context)
        self.primitives = Primitives(context)

    def emit(self) -> str:
        """C function p4_write: bytes written, or P_FULL if they exceed the capacity."""
        deparser = self.context.program.json["deparsers"][0]
        layout = self.context.layout
        text = [
            "static int p4_write(pipeline_t *s, phv_t *p, uint8_t *out, uint32_t capacity) {",
            "uint32_t at = 0;",
            "(void)s;",
        ]
        place = source_of(deparser, "deparser")
        for primitive in deparser.get("primitives", []):
            with self.context.refusals(source_of(primitive, place)):
                text.append(self.primitives.statement(self.bodies.statement(primitive)))
        for name in deparser["order"]:
            with self.context.refusals(place):
                if not layout.has_header(name):
                    raise Refusal(f"emit of {name}", "the JSON does not define it", "Compile again")
                text += self._emit(layout.place(name))
        text += [
            "if (p->payload_bytes > capacity - at) return P_FULL;",
            "if (p->payload_bytes != 0) memcpy(out + at, p->payload, p->payload_bytes);",
            "return (int)(at + p->payload_bytes);",
            "}",
            "",
        ]
        return "\n".join(text)

    def _emit(self, place: HeaderPlace) -> list[str]:
        header = place.header
        if header.width % 8 != 0:
            raise Refusal(
                f"emit of header {header.name}", "it is not whole bytes", "Add padding fields"
            )
        test = "true" if header.is_metadata else place.valid
        if header.width == 0 and header.varbit is None:
            return []
        size = str(header.width // 8)
        if (count := place.varbit_bytes()) is not None:
            size = f"({size} + {count})"
        return [
            f"if ({test}) {{ {comment(header.name)}",
            f"if ({size} > capacity - at) return P_FULL;",
            "uint8_t *to = out + at; (void)to;",
            *(self._header(header) if count is None else self._long_header(place, size)),
            *self.context.point("emit", header.name, {}, "at", size),
            f"at += {size}; }}",
        ]

    def _long_header(self, place: HeaderPlace, size: str) -> list[str]:
        """Header with a field of variable length, bit by bit."""
        lines = [f"memset(to, 0, {size});"]
        for field in place.header.fields:
            reference = self.context.layout.fields[place.header.name, field.name].reference
            if field.is_varbit:
                count = place.varbit_bytes()
                lines.append(f"or_bytes(to, {field.offset}, {reference}, {count}); to += {count};")
            elif field.width > 64:
                lines.append(f"insert_bits(to, {field.offset}, {reference}, {field.width});")
            elif field.width > 0:
                lines.append(f"or_bits(to, {field.offset}, {field.width}, (uint64_t){reference});")
        return lines

    def _header(self, header: Header) -> list[str]:
        lines: list[str] = []
        pending: list[tuple[str, Field]] = []
        member = self.context.layout.member(header.name)
        for run in self.context.layout.runs[header.name]:
            reference = f"{member}.{run.member}"
            if run.fields[0].width == 0:
                continue
            is_whole = run.fields[0].offset % 8 == 0 and run.fields[0].width % 8 == 0
            if not pending and is_whole:
                lines.append(_whole(reference, run))
                continue
            for index, field in enumerate(run.fields):
                pending.append((f"{reference}[{index}]" if run.is_array else reference, field))
                if (field.offset + field.width) % 8 == 0:
                    lines += _packed(pending)
                    pending = []
        return lines


def _store(address: str, size: int, value: str) -> str:
    if size == 1:
        return f"*({address}) = (uint8_t){value};"
    if size in (2, 4, 8):
        return f"store_be{size * 8}({address}, (uint{size * 8}_t){value});"
    return f"store_be({address}, {size}, (uint64_t){value});"


def _whole(reference: str, run: Run) -> str:
    field = run.fields[0]
    size, first = field.width // 8, field.offset // 8
    if field.width > 64:
        return f"memcpy(to + {first}, {reference}, {size});"
    if not run.is_array:
        return _store(f"to + {first}", size, reference)
    body = _store(f"to + {first} + i * {size}", size, f"{reference}[i]")
    return f"for (size_t i = 0; i < {len(run.fields)}; i++) {body}"


def _packed(pending: list[tuple[str, Field]]) -> list[str]:
    start = pending[0][1].offset
    last = pending[-1][1]
    bits = last.offset + last.width - start
    if start % 8 or bits > 64:
        size = (bits + start % 8) // 8
        base = start // 8
        lines = [f"memset(to + {base}, 0, {size});"]
        for reference, field in pending:
            if field.width > 64:
                lines.append(f"insert_bits(to, {field.offset}, {reference}, {field.width});")
                continue
            lines.append(f"or_bits(to, {field.offset}, {field.width}, (uint64_t){reference});")
        return lines
    value = "0"
    for reference, field in pending:
        shift = start + bits - field.offset - field.width
        part = f"((uint64_t){reference} & low_mask({field.width}))"
        shifted = f"{part} << {shift}" if shift else part
        value = shifted if value == "0" else f"{value} | {shifted}"
    return [_store(f"to + {start // 8}", bits // 8, f"({value})")]
