# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Scalars become variables of an action only where no value leaves it."""

from typing import Any

from switchfold.softswitch.generator.headers import HeaderLayout
from switchfold.softswitch.generator.ir.operands import (
    Constant,
    FieldOperand,
    Instance,
    Lane,
    Local,
    Target,
)
from switchfold.softswitch.generator.ir.scalars import find_local_scalars, use_locals
from switchfold.softswitch.generator.ir.statements import Assign, Body, If, Jump, Statement
from switchfold.softswitch.program.model import Field, Header, Program

WIDTHS = {"tmp": 32, "other": 16, "wide": 72}


def program(**json: Any) -> Program:
    fields = (
        Field(name=name, width=width, is_signed=False, offset=0, max_bytes=0)
        for name, width in WIDTHS.items()
    )
    scalars = Header(
        name="scalars", position=0, is_metadata=True, fields=tuple(fields), max_bytes=0
    )
    return Program(
        name="sample",
        headers=(scalars,),
        actions=(),
        controls=(),
        counters=(),
        registers=(),
        action_profiles=(),
        meters=(),
        json=json,
    )


LAYOUT = HeaderLayout(program())


def scalar(name: str) -> FieldOperand:
    storage = LAYOUT.fields["scalars", name]
    return FieldOperand(Instance("scalars"), storage.run, Lane(storage.index))


TMP, OTHER, WIDE = scalar("tmp"), scalar("other"), scalar("wide")
ONE = Constant(1)


def assign(target: Target, value: Constant | FieldOperand) -> Assign:
    return Assign(target, value, source="")


def branch(taken: list[Statement], other: list[Statement]) -> If:
    return If(ONE, tuple(taken), tuple(other), source="")


def local_names(*bodies: Body, **json: Any) -> set[str]:
    return {name for _, name in find_local_scalars(program(**json), bodies)}


def test_scalar_written_before_it_is_read() -> None:
    assert local_names((assign(TMP, ONE), assign(OTHER, TMP))) == {"tmp", "other"}


def test_scalar_read_before_it_is_written() -> None:
    assert local_names((assign(OTHER, TMP), assign(TMP, ONE))) == {"other"}


def test_scalar_that_another_action_reads() -> None:
    assert local_names((assign(TMP, ONE),), (assign(OTHER, TMP),)) == {"other"}


def test_scalar_that_the_parser_names() -> None:
    parsers = [{"parse_states": [{"type": "field", "value": ["scalars", "tmp"]}]}]
    assert local_names((assign(TMP, ONE),), parsers=parsers) == {"other"}


def test_scalar_written_in_one_branch_only() -> None:
    read = assign(OTHER, TMP)
    assert local_names((branch([assign(TMP, ONE)], []), read)) == {"other"}
    assert local_names((branch([assign(TMP, ONE)], [assign(TMP, ONE)]), read)) == {"tmp", "other"}


def test_wide_scalars_and_actions_with_jumps() -> None:
    assert "wide" not in local_names((assign(WIDE, ONE),))
    assert local_names((assign(TMP, ONE), Jump(0, None, True, source=""))) == {"other"}


def test_variables_take_the_place_of_scalars() -> None:
    names = frozenset({("scalars", "tmp")})
    found = use_locals((branch([assign(TMP, ONE)], []), assign(OTHER, TMP)), names, LAYOUT)
    variable = Local("l0_tmp", 32, False)
    assert found == (branch([assign(variable, ONE)], []), Assign(OTHER, variable, source=""))
