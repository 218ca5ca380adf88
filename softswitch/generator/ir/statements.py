# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Statements of the intermediate representation: the body of an action is a tuple of them."""

from dataclasses import dataclass, field

from .operands import Expression, Node, RegisterArray, Target, Variable

Operand = Node | str | tuple[Expression, ...]
"""An operand of a call: a node, a name or text, or the values of a message."""


@dataclass(frozen=True)
class Statement(Node):
    """A statement; its place in the P4 program is no part of its value."""

    source: str = field(compare=False, kw_only=True)


Body = tuple[Statement, ...]


@dataclass(frozen=True)
class Assign(Statement):
    """Assignment of an expression, which is cut to the target's width."""

    parts = ("target", "value")

    target: Target
    value: Expression


@dataclass(frozen=True)
class RegisterRead(Statement):
    """Read of a register; an index out of range leaves the target as it was."""

    parts = ("target", "array", "index")

    target: Variable
    array: RegisterArray
    index: Expression


@dataclass(frozen=True)
class RegisterWrite(Statement):
    """Write of a register; an index out of range writes nothing."""

    parts = ("array", "index", "value")

    array: RegisterArray
    index: Expression
    value: Expression


@dataclass(frozen=True)
class PrimitiveCall(Statement):
    """Any other primitive of BMv2, by its name."""

    parts = ("operands",)

    op: str
    operands: tuple[Operand, ...]


@dataclass(frozen=True)
class If(Statement):
    """A condition with what follows from it."""

    parts = ("condition", "taken", "other")

    condition: Expression
    taken: Body
    other: Body


@dataclass(frozen=True)
class Loop(Statement):
    """A body that runs `count` times; lanes with a step move from turn to turn."""

    parts = ("body",)

    count: int
    body: Body


@dataclass(frozen=True)
class Label(Statement):
    """The place that jumps with this number lead to."""

    number: int


@dataclass(frozen=True)
class Jump(Statement):
    """A jump to a label: always, or if the condition is false."""

    parts = ("condition",)

    number: int
    condition: Expression | None
    is_backwards: bool


@dataclass(frozen=True)
class ReturnIfExited(Statement):
    """The end of the action if the statement before ended the control."""


@dataclass(frozen=True)
class TraceCall(Statement):
    """A trace point of a traced build, as C text; no two are equal."""

    code: str
