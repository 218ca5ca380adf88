# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Operands and expressions of the intermediate representation.

Nodes are compared by value. Runs of fields and blocks of registers are compared by identity: the
program has each of them once.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar, cast

from ...program.model import Field, HeaderStack, HeaderUnion, HeaderUnionStack
from ..headers import Run
from ..tables.registers import RegisterBlock

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Node:
    """Part of a statement."""

    parts: ClassVar[tuple[str, ...]] = ()
    """Names of the attributes that hold further nodes, or tuples of them."""


def walk(item: object) -> Iterator[Node]:
    """Yield a node, or the nodes of a tuple, with everything below them."""
    if isinstance(item, tuple):
        parts: tuple[object, ...] = item  # pyright: ignore[reportUnknownVariableType]
        for part in parts:
            yield from walk(part)
    elif isinstance(item, Node):
        yield item
        for name in item.parts:
            yield from walk(getattr(item, name))


def rebuild(item: _Item, change: Callable[[Node], Node | None]) -> _Item:
    """Copy a node, or a tuple of nodes, with what `change` returns in place of nodes below.

    Where it returns None, the node stays, and the nodes below it are asked for.
    """
    if isinstance(item, tuple):
        members: tuple[object, ...] = item  # pyright: ignore[reportUnknownVariableType]
        return cast("_Item", tuple(rebuild(member, change) for member in members))
    if not isinstance(item, Node):
        return item
    changed = change(item)
    if changed is not None:
        return cast("_Item", changed)
    if not item.parts:
        return item
    return replace(item, **{name: rebuild(getattr(item, name), change) for name in item.parts})


@dataclass(frozen=True)
class Lane(Node):
    """Index into an array of equal fields or registers.

    In a loop it is `start` in the first turn and grows by `step` in each further one.
    """

    start: int
    step: int = 0

    @property
    def code(self) -> str:
        """C code of the index; the variable of the loop is `i`."""
        if self.step == 0:
            return str(self.start)
        term = "i" if abs(self.step) == 1 else f"i * {abs(self.step)}"
        if self.step < 0:
            return f"{self.start} - {term}"
        return term if self.start == 0 else f"{self.start} + {term}"


# ---- headers, unions and stacks ----


@dataclass(frozen=True)
class Instance(Node):
    """A header instance of the program."""

    name: str


@dataclass(frozen=True)
class Element(Node):
    """An element of a header stack; without an index the last one."""

    parts = ("index",)

    stack: HeaderStack
    index: "Expression | None"


@dataclass(frozen=True)
class UnionInstance(Node):
    """A header union of the program."""

    union: HeaderUnion


@dataclass(frozen=True)
class UnionElement(Node):
    """An element of a stack of unions; without an index the last one."""

    parts = ("index",)

    stack: HeaderUnionStack
    index: "Expression | None"


UnionOperand = UnionInstance | UnionElement


@dataclass(frozen=True)
class UnionMember(Node):
    """A header of a union."""

    parts = ("union",)

    union: UnionOperand
    position: int


HeaderOperand = Instance | Element | UnionMember


@dataclass(frozen=True)
class Stack(Node):
    """A whole stack."""

    stack: HeaderStack | HeaderUnionStack


# ---- what holds a value ----


@dataclass(frozen=True)
class FieldOperand(Node):
    """A field of a header: one of a run of equal fields."""

    parts = ("header", "lane")

    header: HeaderOperand
    run: Run
    lane: Lane

    @property
    def field(self) -> Field:
        """The field, or in a loop that of its first turn."""
        return self.run.fields[self.lane.start]

    @property
    def width(self) -> int:
        """Bits."""
        return self.field.width

    @property
    def is_signed(self) -> bool:
        """Whether it holds a signed number."""
        return self.field.is_signed


@dataclass(frozen=True)
class Local(Node):
    """A scalar that lives in a variable of the action's C function."""

    name: str
    width: int
    is_signed: bool


Variable = FieldOperand | Local


@dataclass(frozen=True)
class Validity(Node):
    """Whether a header is valid, as a field of one bit."""

    parts = ("header",)

    header: HeaderOperand


Target = Variable | Validity
"""What an assignment writes."""


@dataclass(frozen=True)
class ParameterOperand(Node):
    """A parameter of the action."""

    index: int
    width: int
    is_signed: bool


@dataclass(frozen=True)
class Memory(Node):
    """An unsigned operand that the program does not name: a C lvalue stored like a field."""

    code: str
    width: int


@dataclass(frozen=True)
class RegisterArray(Node):
    """A register array: one of a block of equal ones."""

    parts = ("lane",)

    block: RegisterBlock
    lane: Lane

    @property
    def size(self) -> int:
        """Elements."""
        return self.block.registers[0].size

    @property
    def width(self) -> int:
        """Bits of an element."""
        return self.block.registers[0].width


# ---- expressions ----


@dataclass(frozen=True)
class Constant(Node):
    """A number."""

    value: int


@dataclass(frozen=True)
class Truth(Node):
    """True or false."""

    value: bool


@dataclass(frozen=True)
class OperatorExpression(Node):
    """An operator of BMv2's JSON with its operands; `condition` is that of `?` only."""

    parts = ("left", "right", "condition")

    op: str
    left: "Expression | None"
    right: "Expression"
    condition: "Expression | None" = None


Expression = (
    Constant
    | Truth
    | FieldOperand
    | Local
    | Validity
    | ParameterOperand
    | Memory
    | OperatorExpression
    | HeaderOperand
    | UnionOperand
    | Stack
)
