# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Repetition becomes loops only where that is sound."""

from switchfold.softswitch.generator.actions.lanes import count_locals, finish, roll
from switchfold.softswitch.generator.headers import index_mark, local_mark


def rolled(statements: list[str]) -> str:
    return finish(roll(statements, count_locals(statements)))


def test_consecutive_lanes_become_one_loop() -> None:
    text = rolled([f"a[{index_mark(i)}] = b[{index_mark(i + 2)}];" for i in range(32)])
    assert text == "for (size_t i = 0; i < 32; i++) {\na[i] = b[2 + i];\n}"


def test_few_statements_stay() -> None:
    text = rolled([f"a[{index_mark(i)}] = 0;" for i in range(7)])
    assert "for" not in text


def test_irregular_steps_stay() -> None:
    text = rolled([f"a[{index_mark(i * i)}] = 0;" for i in range(16)])
    assert "for" not in text


def test_two_statements_and_a_private_variable() -> None:
    statements: list[str] = []
    for i in range(8):
        name = local_mark(f"l_{i}")
        statements += [f"{name} = a[{index_mark(i)}];", f"b[{index_mark(i)}] = {name};"]
    text = rolled(statements)
    assert text == "for (size_t i = 0; i < 8; i++) {\nl_0 = a[i];\nb[i] = l_0;\n}"


def test_variable_used_behind_its_block_stays() -> None:
    statements: list[str] = []
    for i in range(8):
        name = local_mark(f"l_{i}")
        statements += [f"{name} = a[{index_mark(i)}];", f"b[{index_mark(i)}] = {name};"]
    assert "for" not in rolled([*statements, *(f"c = {local_mark(f'l_{i}')};" for i in range(8))])


def test_loop_keeps_to_one_lane_when_the_first_lane_differs() -> None:
    statements = [f"x = a[{index_mark(0)}];", "s = x;", f"b[{index_mark(0)}] = x;"]
    for i in range(1, 9):
        statements += [f"x = a[{index_mark(i)}];", "s = s | x;", f"b[{index_mark(i)}] = x;"]
    text = rolled(statements)
    assert "for (size_t i = 0; i < 8; i++) {\nx = a[1 + i];\ns = s | x;\nb[1 + i] = x;\n}" in text
