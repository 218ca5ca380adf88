# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The typed model of a BMv2 JSON program: what the generator and the control plane need.

Positions count from 0 in the order of the JSON; they are the ids of the pipeline seam. Widths are
in bits.
"""

from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Field:
    """A field of a header or of metadata."""

    name: str
    width: int
    is_signed: bool
    offset: int
    """Bits before it in its header, without fields of variable length."""
    max_bytes: int = 0
    """Most bytes of a field of variable length, whose width is 0; 0 for a fixed length."""

    @property
    def is_varbit(self) -> bool:
        """Whether its length is known only at run time."""
        return self.max_bytes > 0


@dataclass(frozen=True, kw_only=True)
class Header:
    """A header or metadata instance."""

    name: str
    position: int
    is_metadata: bool
    fields: tuple[Field, ...]
    max_bytes: int = 0
    """Most bytes of a header with a field of variable length; 0 without such a field."""

    @property
    def width(self) -> int:
        """Bits of all fields of fixed length."""
        return sum(item.width for item in self.fields)

    @property
    def varbit(self) -> Field | None:
        """Its field of variable length, if it has one."""
        return next((item for item in self.fields if item.is_varbit), None)


@dataclass(frozen=True, kw_only=True)
class HeaderStack:
    """A stack of headers of one type."""

    name: str
    headers: tuple[str, ...]
    """Names of its elements, from the first."""


@dataclass(frozen=True, kw_only=True)
class HeaderUnion:
    """A union: at most one of its headers is valid."""

    name: str
    members: tuple[str, ...]
    """Names of the members in the union's type."""
    headers: tuple[str, ...]
    """Names of the header instances, one per member."""


@dataclass(frozen=True, kw_only=True)
class HeaderUnionStack:
    """A stack of unions of one type."""

    name: str
    unions: tuple[HeaderUnion, ...]


@dataclass(frozen=True, kw_only=True)
class ProgramValueSet:
    """A set of values that the control plane writes and a parser state selects on."""

    name: str
    position: int
    max_size: int
    """Most members; 0 if the program sets no limit."""
    widths: tuple[int, ...]
    """Bits of each field of a member, as in the select's key; empty if no state uses the set."""

    @property
    def member_bytes(self) -> int:
        """Bytes of a value or of a mask."""
        return sum((width + 7) // 8 for width in self.widths)


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A parameter of an action."""

    name: str
    width: int


@dataclass(frozen=True, kw_only=True)
class ProgramAction:
    """An action; `position` is the seam's action_id."""

    name: str
    id: int
    position: int
    parameters: tuple[Parameter, ...]
    primitives: tuple[Json, ...]
    source: str


@dataclass(frozen=True, kw_only=True)
class KeyField:
    """One field of a table's key; kind is exact, lpm, ternary, range or optional."""

    name: str
    kind: str
    width: int
    target: tuple[str, str]
    mask: int | None


@dataclass(frozen=True, kw_only=True)
class ConstEntry:
    """A table entry that the program declares; byte strings as in the seam."""

    key: bytes
    mask: bytes
    prefix_len: int
    priority: int
    action: int
    params: bytes


@dataclass(frozen=True, kw_only=True)
class ProgramTable:
    """A match-action table; `position` is the seam's table number."""

    name: str
    id: int
    position: int
    pipeline: str
    kind: str
    """Match type of the whole table: exact, lpm, ternary or range."""
    key: tuple[KeyField, ...]
    actions: tuple[ProgramAction, ...]
    max_size: int
    has_direct_counter: bool
    default_action: ProgramAction | None
    default_params: bytes
    is_default_action_const: bool
    is_default_entry_const: bool
    entries: tuple[ConstEntry, ...]
    has_const_entries: bool
    action_profile: int | None
    """Position of the profile that holds its actions."""
    direct_meter: int | None
    """Position of its direct meter."""
    has_timeout: bool
    """Whether entries may have an idle timeout."""
    next_by_action: dict[str, str | None]
    default_next: str | None
    source: str

    @property
    def has_priorities(self) -> bool:
        """Whether entries are ordered by priority."""
        return self.kind in ("ternary", "range")


@dataclass(frozen=True, kw_only=True)
class Selector:
    """How an action selector chooses: a hash over fields, in order."""

    algorithm: str
    input: tuple[tuple[str, str], ...]
    """(header, field) pairs."""


@dataclass(frozen=True, kw_only=True)
class ActionProfile:
    """Members that tables share; with a selector also groups of them."""

    name: str
    id: int
    position: int
    max_size: int
    selector: Selector | None


@dataclass(frozen=True, kw_only=True)
class ProgramMeter:
    """A meter array; a direct one names its table and the field that gets the colour."""

    name: str
    id: int
    position: int
    size: int
    counts_packets: bool
    """Whether rates and bursts are in packets; otherwise they are in bytes."""
    table: str | None
    target: tuple[str, str] | None


@dataclass(frozen=True, kw_only=True)
class Conditional:
    """An if of a control."""

    name: str
    expression: Any
    true_next: str | None
    false_next: str | None
    source: str


@dataclass(frozen=True, kw_only=True)
class Control:
    """A pipeline: ingress or egress."""

    name: str
    init: str | None
    tables: tuple[ProgramTable, ...]
    conditionals: tuple[Conditional, ...]


@dataclass(frozen=True, kw_only=True)
class Counter:
    """A counter array; a direct one names its table and has no size."""

    name: str
    position: int
    size: int
    table: str | None


@dataclass(frozen=True, kw_only=True)
class Register:
    """A register array."""

    name: str
    position: int
    size: int
    width: int


@dataclass(frozen=True, kw_only=True)
class Program:
    """A whole program; tables are those of ingress, then those of egress."""

    name: str
    headers: tuple[Header, ...]
    actions: tuple[ProgramAction, ...]
    controls: tuple[Control, ...]
    counters: tuple[Counter, ...]
    registers: tuple[Register, ...]
    action_profiles: tuple[ActionProfile, ...]
    """Those of ingress, then those of egress."""
    meters: tuple[ProgramMeter, ...]
    stacks: tuple[HeaderStack, ...] = ()
    unions: tuple[HeaderUnion, ...] = ()
    union_stacks: tuple[HeaderUnionStack, ...] = ()
    value_sets: tuple[ProgramValueSet, ...] = ()
    json: Json = field(repr=False)

    @property
    def tables(self) -> tuple[ProgramTable, ...]:
        """All tables, by position."""
        return tuple(table for control in self.controls for table in control.tables)

    def header(self, name: str) -> Header:
        """Return the header instance of this name; KeyError if there is none."""
        return self._headers[name]

    def __post_init__(self) -> None:
        object.__setattr__(self, "_headers", {item.name: item for item in self.headers})

    _headers: dict[str, Header] = field(init=False, repr=False, default_factory=dict[str, Header])


def source_of(item: Json, fallback: str) -> str:
    """Return the P4 source position of a JSON object as file(line), or the fallback."""
    info = item.get("source_info")
    if not isinstance(info, dict):
        return fallback
    known: dict[str, Any] = info  # pyright: ignore[reportUnknownVariableType]
    return f"{known.get('filename', '?')}({known.get('line', '?')})"


def pack_number(value: int, width: int) -> bytes:
    """Return a number as big-endian bytes of this width; a negative one in two's complement."""
    return (value & ((1 << width) - 1)).to_bytes((width + 7) // 8, "big")


def parse_hex(text: str) -> int:
    """Return the number of a JSON hexstr, which may be negative."""
    return int(text, 16)
