# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Names of a program may have any characters: its C text still compiles and does the same."""

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline_driver import PROGRAMS
from switchfold.softswitch import Switch, compile_program
from switchfold.softswitch.generator import generate
from switchfold.softswitch.generator.c_text import c_string, comment
from switchfold.softswitch.program.model import Json

ODD = '\n#error text \\ ??/ " */ // int \u00e9\U0001f600 { %s \x01L0\x02 \\'
FIXED = ("algo", "op", "type", "match_type")
KINDS = ("headers", "actions", "register_arrays", "counter_arrays", "meter_arrays", "calculations")


def renamed(program: str, suffix: str) -> Json:
    """Return the JSON of a program with a suffix on all of its names."""
    data = json.loads((PROGRAMS / f"{program}.json").read_text(encoding="utf-8"))
    names = {item["name"] for kind in KINDS for item in data.get(kind, [])}
    names |= {item["name"] for parser in data["parsers"] for item in parser["parse_states"]}
    for pipeline in data["pipelines"]:
        for kind in ("tables", "conditionals", "action_profiles"):
            names |= {item["name"] for item in pipeline.get(kind, [])}
    for kind in data["header_types"]:
        if kind["name"] != "standard_metadata":
            names |= {field[0] for field in kind["fields"]}
    kept = {field[0] for kind in data["header_types"] for field in kind["fields"]
            if kind["name"] == "standard_metadata"}  # fmt: skip
    actions = {item["name"] for item in data["actions"]}  # keys of next_tables
    names -= kept | {"standard_metadata", "scalars"}

    def change(node: Any) -> Any:
        if isinstance(node, str):
            return node + suffix if node in names else node
        if isinstance(node, list):
            items: list[Any] = node  # pyright: ignore[reportUnknownVariableType]
            return [change(item) for item in items]
        if isinstance(node, dict):
            held: Json = node  # pyright: ignore[reportUnknownVariableType]
            keys = {key: key + suffix if key in actions else key for key in held}
            return {keys[k]: v if k in FIXED else change(v) for k, v in held.items()}
        return node

    return change(data)


def outputs(path: Path, frames: list[bytes]) -> list[list[tuple[int, bytes]]]:
    with Switch(compile_program(path, cflags=("-Werror",))) as switch:
        switch.ports.add(1, "mem")
        switch.ports.add(2, "mem")
        return [switch.process(1, frame) for frame in frames]


@pytest.mark.parametrize("program", ["control_plane", "externs"])
def test_every_character_in_every_name(program: str, tmp_path: Path) -> None:
    path = tmp_path / 'odd "name\\.json'
    path.write_text(json.dumps(renamed(program, ODD)), encoding="utf-8")
    frames = [bytes([number]) * 64 for number in range(8)]
    assert outputs(path, frames) == outputs(PROGRAMS / f"{program}.json", frames)


def test_names_that_differ_in_odd_characters_only(tmp_path: Path) -> None:
    data = json.loads((PROGRAMS / "operators.json").read_text(encoding="utf-8"))
    scalars = next(kind for kind in data["header_types"] if kind["name"].startswith("scalars"))
    names = [field[0] for field in scalars["fields"]]
    text = json.dumps(data)
    for index, name in enumerate(names):
        text = text.replace(json.dumps(name), json.dumps("a" + "." * index + "b"))
    path = tmp_path / "operators.json"
    path.write_text(text, encoding="utf-8")
    frames = [bytes([number]) * 64 for number in range(8)]
    assert len(names) > 1
    assert outputs(path, frames) == outputs(PROGRAMS / "operators.json", frames)


def test_text_of_names() -> None:
    assert comment("a\nb\\") == "// a_b_"
    assert comment("what??/") == "// what_?/"
    assert c_string(b'a"\\\n1?') == '"a\\042\\134\\0121\\077"'


def test_a_long_name(tmp_path: Path) -> None:
    path = tmp_path / f"{'long' * 60}.json"
    path.write_bytes((PROGRAMS / "forward.json").read_bytes())
    assert compile_program(path, cache_dir=tmp_path).library.exists()
    assert "long" in generate(compile_program(path, cache_dir=tmp_path).model)
