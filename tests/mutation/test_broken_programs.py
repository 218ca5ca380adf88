# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A damaged JSON is refused with a typed error, or becomes C that compiles."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path

import pytest

from mutation.program_mutator import mutate
from switchfold.softswitch.compilation.compiler import INCLUDES, find_compiler
from switchfold.softswitch.errors import ProgramError
from switchfold.softswitch.generator import generate
from switchfold.softswitch.program.bmv2_json import read_program

PROGRAMS = Path(__file__).parents[1] / "pipeline" / "programs"
NAMES = ("externs", "forward", "header_stacks", "tables")
MUTATIONS = 60


def _check_syntax(text: str, folder: Path) -> None:
    source = folder / "pipeline.c"
    source.write_text(text, encoding="utf-8")
    command = [*find_compiler(), "-std=c11", "-fsyntax-only", *INCLUDES, str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_damaged_program_is_refused_or_compiles(name: str, tmp_path: Path) -> None:
    whole = json.loads((PROGRAMS / f"{name}.json").read_text(encoding="utf-8"))
    path = tmp_path / "damaged.json"
    refused: list[ProgramError] = []
    for seed in range(MUTATIONS):
        path.write_text(json.dumps(mutate(whole, random.Random(seed))), encoding="utf-8")
        try:
            text = generate(read_program(path))
        except ProgramError as exc:
            refused.append(exc)
        else:
            _check_syntax(text, tmp_path)
    assert 0 < len(refused) < MUTATIONS
    assert all(error.problems for error in refused)


@pytest.mark.parametrize("name", NAMES)
def test_truncated_program_is_refused(name: str, tmp_path: Path) -> None:
    text = (PROGRAMS / f"{name}.json").read_text(encoding="utf-8").rstrip()
    path = tmp_path / "truncated.json"
    for length in (0, 1, len(text) // 3, len(text) // 2, len(text) - 1):
        path.write_text(text[:length], encoding="utf-8")
        with pytest.raises(ProgramError, match="cannot be loaded"):
            read_program(path)


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        (("header_types", 0, "fields", 0, 1), 1 << 40, "width of field"),
        (("register_arrays", 0, "size"), 1 << 40, "size of total"),
        (("register_arrays", 0, "bitwidth"), True, "bitwidth in register_arrays"),
        (("actions", 0, "id"), "1", "id in actions"),
    ],
)
def test_number_out_of_bounds_is_named(
    place: tuple[str | int, ...], value: object, reason: str, tmp_path: Path
) -> None:
    program = json.loads((PROGRAMS / "externs.json").read_text(encoding="utf-8"))
    held = program
    for key in place[:-1]:
        held = held[key]
    held[place[-1]] = value
    path = tmp_path / "odd.json"
    path.write_text(json.dumps(program), encoding="utf-8")
    with pytest.raises(ProgramError, match=reason):
        read_program(path)
