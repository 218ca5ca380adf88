# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Headers and metadata as C structures: native integers in host order, equal fields as arrays.

The elements of a stack are an array, with a spare element behind the last one for indices that are
out of range. A field of variable length is an array of bytes with a count.
A run of equally wide fields becomes one array, so that code over lanes can be a loop. A field wider
than 64 bits is a string of bytes in network order, its spare high bits 0.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ..program.model import (
    Field,
    Header,
    HeaderStack,
    HeaderUnion,
    HeaderUnionStack,
    Program,
)
from .c_text import comment, identifier

MIN_RUN = 8
"""Fewest fields or registers of equal shape that become an array."""
LINE_BYTES = 64
"""Bytes of a cache line. Long arrays begin at one: a vector across two costs twice as much."""


def storage_type(width: int, is_signed: bool) -> str:
    """C type that stores a field of at most 64 bits."""
    bits = storage_bits(width)
    return f"int{bits}_t" if is_signed else f"uint{bits}_t"


def storage_bits(width: int) -> int:
    """Bits of the C type that stores a field of at most 64 bits."""
    return next(size for size in (8, 16, 32, 64) if width <= size)


@dataclass(frozen=True, kw_only=True, eq=False)
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

    def element(self, place: "HeaderPlace", index: str) -> str:
        """C lvalue of one of its fields; the index is C code."""
        reference = f"{place.member}.{self.member}"
        return f"{reference}[{index}]" if self.is_array else reference


@dataclass(frozen=True, kw_only=True)
class Storage:
    """Where a field lives."""

    header: Header
    run: Run
    index: int
    """Index of the field in its run."""
    reference: str
    """C lvalue."""

    @property
    def field(self) -> Field:
        """The field itself."""
        return self.run.fields[self.index]

    @property
    def type(self) -> str:
        """C type of a field that is not wide."""
        return storage_type(self.field.width, self.field.is_signed)

    @property
    def local_name(self) -> str:
        """C name of a scalar that lives in an action."""
        return f"l{self.run.first + self.index}_{identifier(self.field.name)}"


@dataclass(frozen=True, kw_only=True)
class HeaderPlace:
    """Where a header lives, which may depend on an index at run time."""

    header: Header
    """The header, or one of the same type."""
    member: str
    """C lvalue of its structure."""
    valid: str
    """C lvalue of its validity, 0 or 1."""
    others: tuple[str, ...] = ()
    """Validity of the other headers of its union."""

    def make_valid(self) -> str:
        """C statements that make it valid, and the other headers of its union invalid."""
        return " ".join([f"{self.valid} = 1;", *(f"{other} = 0;" for other in self.others)])

    def varbit_bytes(self) -> str | None:
        """C lvalue of the length of its field of variable length, if it has one."""
        field = self.header.varbit
        if field is None:
            return None
        return f"{self.member}.{count_member(self.header.fields.index(field))}"


@dataclass(frozen=True, kw_only=True)
class _Array:
    """Headers of one type that are reached by an index: elements of a stack."""

    member: str
    headers: tuple[str, ...]


def count_member(index: int) -> str:
    """C member that holds the bytes in use of the field of variable length at this index."""
    return f"n{index}"


class HeaderLayout:
    """Storage of all headers of a program."""

    def __init__(self, program: Program) -> None:
        self.headers = program.headers
        self.runs: dict[str, list[Run]] = {}
        self.fields: dict[tuple[str, str], Storage] = {}
        self._members: dict[str, str] = {}
        self._valid: dict[str, str] = {}
        self._types: dict[str, str] = {}
        self._by_name = {header.name: header for header in program.headers}
        self._stacks: dict[str, HeaderStack | HeaderUnionStack] = {}
        self._stacks.update({item.name: item for item in program.stacks})
        self._stacks.update({item.name: item for item in program.union_stacks})
        self._unions = {item.name: item for item in program.unions}
        self._others: dict[str, tuple[str, ...]] = {}
        self._arrays = list(_arrays(program))
        for header in program.headers:
            name = f"h{header.position}_{identifier(header.name)}"
            self._members[header.name] = name
            self._valid[header.name] = f"v_{name}"
            self._types[header.name] = f"{name}_t"
        for array in self._arrays:
            for index, name in enumerate(array.headers):
                self._members[name] = f"{array.member}[{index}]"
                self._valid[name] = f"v_{array.member}[{index}]"
                self._types[name] = self._types[array.headers[0]]
        for union in program.unions:
            for name in union.headers:
                self._others[name] = tuple(other for other in union.headers if other != name)
        for header in program.headers:
            self.runs[header.name] = _runs(header)
            place = self.place(header.name)
            for run in self.runs[header.name]:
                for index, item in enumerate(run.fields):
                    self.fields[header.name, item.name] = Storage(
                        header=header,
                        run=run,
                        index=index,
                        reference=run.element(place, str(index)),
                    )

    def member(self, header: str) -> str:
        """C lvalue of a header's structure."""
        return f"p->{self._members[header]}"

    def valid(self, header: str) -> str:
        """C lvalue of a header's validity, 0 or 1."""
        return f"p->{self._valid[header]}"

    def has_header(self, name: str) -> bool:
        """Whether there is a header instance of this name."""
        return name in self._by_name

    def place(self, header: str) -> HeaderPlace:
        """Where a header instance lives."""
        return HeaderPlace(
            header=self._by_name[header],
            member=self.member(header),
            valid=self.valid(header),
            others=tuple(self.valid(other) for other in self._others.get(header, ())),
        )

    # ---- stacks and unions ----

    def stack(self, name: str) -> HeaderStack | HeaderUnionStack | None:
        """Return the stack of this name."""
        return self._stacks.get(name)

    def union(self, name: str) -> HeaderUnion | None:
        """Return the union of this name."""
        return self._unions.get(name)

    def size(self, stack: HeaderStack | HeaderUnionStack) -> int:
        """Elements that a stack holds."""
        return len(stack.headers if isinstance(stack, HeaderStack) else stack.unions)

    def next_index(self, stack: HeaderStack | HeaderUnionStack) -> str:
        """C lvalue of the index of a stack's next element."""
        return f"p->{self._next_member(stack)}"

    def _next_member(self, stack: HeaderStack | HeaderUnionStack) -> str:
        return f"next_{identifier(stack.name)}_{list(self._stacks).index(stack.name)}"

    def element(self, stack: HeaderStack, index: str) -> HeaderPlace:
        """Place of a stack's element; the index is C code, at most the size."""
        return self._at(stack.headers[0], index)

    def union_element(self, stack: HeaderUnionStack, member: int, index: str) -> HeaderPlace:
        """Place of a member of a union in a stack; the index is C code, at most the size."""
        heads = stack.unions[0].headers
        others = (self._at(name, index).valid for name in heads if name != heads[member])
        place = self._at(heads[member], index)
        return HeaderPlace(
            header=place.header, member=place.member, valid=place.valid, others=tuple(others)
        )

    def _at(self, first: str, index: str) -> HeaderPlace:
        array = next(item for item in self._arrays if item.headers[0] == first)
        return HeaderPlace(
            header=self._by_name[first],
            member=f"p->{array.member}[{index}]",
            valid=f"p->v_{array.member}[{index}]",
        )

    def emit(self) -> str:
        """Structures of all headers and their members in the phv."""
        text: list[str] = []
        members: list[str] = []
        valid: list[str] = []
        arrays = {name: item for item in self._arrays for name in item.headers}
        for header in self.headers:
            array = arrays.get(header.name)
            if array is not None and array.headers[0] != header.name:
                continue
            text.append(f"typedef struct {{ {comment(f'{header.name}, {header.width} bits')}")
            for run in self.runs[header.name]:
                text.append(f"  {_declare(run)}")
            if not header.fields:
                text.append("  uint8_t empty;")
            text.append(f"}} {self._types[header.name]};\n")
            size = f"[{len(array.headers) + 1}]" if array is not None else ""
            name = array.member if array is not None else self._members[header.name]
            members.append(f"  {self._types[header.name]} {name}{size};")
            valid.append(f"  uint8_t v_{name}{size};")
        nexts = [f"  uint32_t {self._next_member(item)};" for item in self._stacks.values()]
        lines = [*valid, *nexts, *members]
        return "\n".join([*text, "#define PHV_HEADERS \\", *(f"{line} \\" for line in lines), ""])


def _arrays(program: Program) -> Iterator[_Array]:
    positions = {header.name: header.position for header in program.headers}
    series = [stack.headers for stack in program.stacks]
    for stack in program.union_stacks:
        series += zip(*(union.headers for union in stack.unions), strict=True)
    for heads in series:
        yield _Array(member=f"s{positions[heads[0]]}_{identifier(heads[0])}", headers=heads)


def _declare(run: Run) -> str:
    item = run.fields[0]
    if item.is_varbit:
        return f"uint32_t {count_member(run.first)}; uint8_t {run.member}[{item.max_bytes}];"
    if item.width > 64:
        return f"uint8_t {run.member}[{(item.width + 7) // 8}]; // {item.width} bits"
    kind = storage_type(item.width, item.is_signed)
    if run.is_array:
        is_long = len(run.fields) * storage_bits(item.width) >= 8 * LINE_BYTES
        last = comment(f"to {run.fields[-1].name}")
        return f"{'P4_ALIGNED ' * is_long}{kind} {run.member}[{len(run.fields)}]; {last}"
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
        size = end - start if end - start >= MIN_RUN and 0 < shape[0] <= 64 else 1
        runs.append(
            Run(
                member=f"f{start}_{identifier(fields[start].name)}",
                first=start,
                fields=fields[start : start + size],
            )
        )
        start += size
    return runs
