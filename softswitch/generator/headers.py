# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Headers and metadata as C structures: native integers in host order, equal fields as arrays.

A run of equally wide fields becomes one array, so that code over lanes can be a loop. A field wider
than 64 bits is a string of bytes in network order, its spare high bits 0.
"""

import re
from dataclasses import dataclass

from softswitch.program import Field, Header, Program

MIN_RUN = 8
"""Fields or registers of equal shape that are worth an array."""
MARK = re.compile("\x01([IL])([^\x02]*)\x02")


def index_mark(index: int) -> str:
    """Mark an array index that may become a loop variable."""
    return f"\x01I{index}\x02"


def local_mark(name: str) -> str:
    """Mark the name of a variable of an action."""
    return f"\x01L{name}\x02"


def resolve_marks(text: str) -> str:
    """Replace the marks that no loop took."""
    return MARK.sub(lambda found: found[2], text)


def identifier(name: str) -> str:
    """Make a C identifier part of a P4 name."""
    return re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_") or "x"


def storage_type(width: int, is_signed: bool) -> str:
    """C type that stores a field of at most 64 bits."""
    bits = next(size for size in (8, 16, 32, 64) if width <= size)
    return f"int{bits}_t" if is_signed else f"uint{bits}_t"


@dataclass(frozen=True, kw_only=True)
class Run:
    """Consecutive fields of equal width: one C member, an array if there is more than one field."""

    member: str
    first: int
    """Index of its first field in the header."""
    fields: tuple[Field, ...]

    @property
    def is_array(self) -> bool:
        """Whether the member is an array over fields."""
        return len(self.fields) > 1


@dataclass(frozen=True, kw_only=True)
class Storage:
    """Where a field lives."""

    field: Field
    header: Header
    reference: str
    """C lvalue, with an index mark if it is an element of an array."""

    @property
    def type(self) -> str:
        """C type of a field that is not wide."""
        return storage_type(self.field.width, self.field.is_signed)


class Layout:
    """Storage of all headers of a program."""

    def __init__(self, program: Program) -> None:
        self.headers = program.headers
        self.runs: dict[str, list[Run]] = {}
        self.fields: dict[tuple[str, str], Storage] = {}
        self._members: dict[str, str] = {}
        for header in program.headers:
            self._members[header.name] = f"h{header.position}_{identifier(header.name)}"
            self.runs[header.name] = _runs(header)
            for run in self.runs[header.name]:
                for index, item in enumerate(run.fields):
                    reference = f"p->{self._members[header.name]}.{run.member}"
                    if run.is_array:
                        reference += f"[{index_mark(index)}]"
                    self.fields[header.name, item.name] = Storage(
                        field=item, header=header, reference=reference
                    )

    def member(self, header: str) -> str:
        """C lvalue of a header's structure."""
        return f"p->{self._members[header]}"

    def valid(self, header: str) -> str:
        """C lvalue of a header's validity, 0 or 1."""
        return f"p->v_{self._members[header]}"

    def plain(self, header: str, name: str) -> str:
        """C lvalue of a field, marks resolved."""
        return resolve_marks(self.fields[header, name].reference)

    def emit(self) -> str:
        """Structures of all headers and their members in the phv."""
        text: list[str] = []
        members: list[str] = []
        for header in self.headers:
            name = self._members[header.name]
            text.append(f"typedef struct {{ // {header.name}, {header.width} bits")
            for run in self.runs[header.name]:
                text.append(f"  {_declare(run)}")
            if not header.fields:
                text.append("  uint8_t empty;")
            text.append(f"}} {name}_t;\n")
            members.append(f"  {name}_t {name};")
        valid = [f"  uint8_t v_{self._members[header.name]};" for header in self.headers]
        return "\n".join(
            [*text, "#define PHV_HEADERS \\", *(f"{line} \\" for line in [*valid, *members]), ""]
        )


def _declare(run: Run) -> str:
    item = run.fields[0]
    if item.width > 64:
        return f"uint8_t {run.member}[{(item.width + 7) // 8}]; // {item.width} bits"
    kind = storage_type(item.width, item.is_signed)
    if run.is_array:
        return f"{kind} {run.member}[{len(run.fields)}]; // to {run.fields[-1].name}"
    return f"{kind} {run.member};"


def _runs(header: Header) -> list[Run]:
    runs: list[Run] = []
    start = 0
    fields = header.fields
    while start < len(fields):
        end = start + 1
        shape = (fields[start].width, fields[start].is_signed)
        while end < len(fields) and (fields[end].width, fields[end].is_signed) == shape:
            end += 1
        size = end - start if end - start >= MIN_RUN and shape[0] <= 64 else 1
        runs.append(
            Run(
                member=f"f{start}_{identifier(fields[start].name)}",
                first=start,
                fields=fields[start : start + size],
            )
        )
        start += size
    return runs
