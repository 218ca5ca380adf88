# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Repetition becomes loops only where that is sound."""

from switchfold.softswitch.generator.headers import Run
from switchfold.softswitch.generator.ir.loops import find_loops
from switchfold.softswitch.generator.ir.operands import (
    Constant,
    Expression,
    FieldOperand,
    Instance,
    Lane,
    Local,
    OperatorExpression,
    RegisterArray,
    Target,
    walk,
)
from switchfold.softswitch.generator.ir.statements import (
    Assign,
    Body,
    If,
    Loop,
    RegisterRead,
    RegisterWrite,
    Statement,
)
from switchfold.softswitch.generator.tables.registers import RegisterBlock
from switchfold.softswitch.program.model import Field, Register


def run_of(name: str) -> Run:
    fields = (
        Field(name=f"{name}{i}", width=32, is_signed=False, offset=32 * i, max_bytes=0)
        for i in range(512)
    )
    return Run(member=name, first=0, fields=tuple(fields))


A, B = run_of("a"), run_of("b")
REGISTERS = RegisterBlock(
    member="r0",
    registers=tuple(Register(name=f"r{i}", position=i, size=8, width=32) for i in range(64)),
)
X, S = Local("x", 32, False), Local("s", 32, False)
ZERO = Constant(0)


def field(run: Run, start: int, step: int = 0) -> FieldOperand:
    return FieldOperand(Instance("lanes"), run, Lane(start, step))


def register(start: int, step: int = 0) -> RegisterArray:
    return RegisterArray(REGISTERS, Lane(start, step))


def local(number: int) -> Local:
    return Local(f"l_{number}", 32, False)


def assign(target: Target, value: Expression) -> Assign:
    return Assign(target, value, source="test.p4(1)")


def loop(count: int, *body: Statement) -> Loop:
    return Loop(count, body, source="test.p4(1)")


def private_copies() -> list[Statement]:
    """Return copies of eight lanes, each through a variable of its own."""
    body: list[Statement] = []
    for i in range(8):
        body += [assign(local(i), field(A, i)), assign(field(B, i), local(i))]
    return body


def has_loop(body: Body) -> bool:
    return any(isinstance(node, Loop) for node in walk(body))


def test_consecutive_lanes_become_one_loop() -> None:
    body = tuple(assign(field(A, i), field(B, i + 2)) for i in range(32))
    assert find_loops(body) == (loop(32, assign(field(A, 0, 1), field(B, 2, 1))),)


def test_index_of_a_lane_in_c() -> None:
    lanes = [Lane(3), Lane(0, 1), Lane(2, 1), Lane(0, 4), Lane(5, 4), Lane(9, -1), Lane(9, -2)]
    codes = ["3", "i", "2 + i", "i * 4", "5 + i * 4", "9 - i", "9 - i * 2"]
    assert [lane.code for lane in lanes] == codes


def test_few_statements_stay() -> None:
    body = tuple(assign(field(A, i), ZERO) for i in range(7))
    assert find_loops(body) == body


def test_irregular_steps_stay() -> None:
    body = tuple(assign(field(A, i * i), ZERO) for i in range(16))
    assert find_loops(body) == body


def test_different_constants_and_fields_stay() -> None:
    assert not has_loop(find_loops(tuple(assign(field(A, i), Constant(i)) for i in range(16))))
    single = [run_of(f"f{i}") for i in range(16)]
    assert not has_loop(find_loops(tuple(assign(field(run, 0), ZERO) for run in single)))


def test_reads_and_writes_of_registers_become_a_loop() -> None:
    body: list[Statement] = []
    for i in range(8):
        body.append(RegisterRead(X, register(i), ZERO, source=f"test.p4({i})"))
        body.append(RegisterWrite(register(i), ZERO, field(A, 7 - i), source=f"test.p4({i})"))
    assert find_loops(tuple(body)) == (
        loop(
            8,
            RegisterRead(X, register(0, 1), ZERO, source=""),
            RegisterWrite(register(0, 1), ZERO, field(A, 7, -1), source=""),
        ),
    )


def test_two_statements_and_a_private_variable() -> None:
    expected = loop(8, assign(local(0), field(A, 0, 1)), assign(field(B, 0, 1), local(0)))
    assert find_loops(tuple(private_copies())) == (expected,)


def test_variable_used_behind_its_block_stays() -> None:
    later = [assign(S, OperatorExpression("+", S, local(i))) for i in range(8)]
    assert not has_loop(find_loops((*private_copies(), *later)))


def test_private_variables_of_different_width_stay() -> None:
    body: list[Statement] = []
    for i in range(8):
        variable = Local(f"l_{i}", 8 + i, False)
        body += [assign(variable, field(A, i)), assign(field(B, i), variable)]
    assert not has_loop(find_loops(tuple(body)))


def test_a_branch_has_loops_of_its_own() -> None:
    copies = tuple(private_copies())
    body = (If(field(A, 0), copies, (), source=""),)
    expected = loop(8, assign(local(0), field(A, 0, 1)), assign(field(B, 0, 1), local(0)))
    assert find_loops(body) == (If(field(A, 0), (expected,), (), source=""),)


def test_variable_of_a_branch_used_behind_it_stays() -> None:
    branch = If(field(A, 0), tuple(private_copies()), (), source="")
    later = [assign(S, OperatorExpression("+", S, local(i))) for i in range(8)]
    assert not has_loop(find_loops((branch, *later)))


def test_branches_become_a_loop() -> None:
    body = tuple(If(field(A, i), (assign(field(B, i), ZERO),), (), source="") for i in range(8))
    inside = If(field(A, 0, 1), (assign(field(B, 0, 1), ZERO),), (), source="")
    assert find_loops(body) == (loop(8, inside),)


def test_branches_that_hold_loops_stay() -> None:
    def copies(start: int) -> Body:
        return tuple(assign(field(A, start + i), field(B, i)) for i in range(16))

    body = tuple(If(field(A, 0), copies(16 * k), (), source="") for k in range(16))
    found = find_loops(body)
    assert len(found) == 16
    assert all(isinstance(item, If) and isinstance(item.taken[0], Loop) for item in found)


def test_loop_keeps_to_one_lane_when_the_first_lane_differs() -> None:
    body: list[Statement] = []
    for i in range(9):
        total = OperatorExpression("|", S, X) if i else X
        body += [assign(X, field(A, i)), assign(S, total), assign(field(B, i), X)]
    expected = loop(
        8,
        assign(X, field(A, 1, 1)),
        assign(S, OperatorExpression("|", S, X)),
        assign(field(B, 1, 1), X),
    )
    assert find_loops(tuple(body)) == (*body[:3], expected)
