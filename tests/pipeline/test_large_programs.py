# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Programs of many actions: their text grows as they do, they compile, and every action works."""

import copy
import json
import re
from pathlib import Path

from pipeline_driver import PROGRAMS
from switchfold.softswitch import Switch, compile_program
from switchfold.softswitch.generator import generate
from switchfold.softswitch.generator.actions.actions import CASES_MAX
from switchfold.softswitch.program.bmv2_json import read_program
from switchfold.softswitch.switch.table_entries import Match


def program_of_actions(folder: Path, count: int) -> Path:
    """Write `forward` with this many actions like forward(bit<9> port) in its table."""
    data = json.loads((PROGRAMS / "forward.json").read_text())
    table = data["pipelines"][0]["tables"][0]
    name = "ForwardIngress.forward"
    first = next(item for item in data["actions"] if item["name"] == name)
    base = len(data["actions"])
    for number in range(count - 1):
        action = copy.deepcopy(first) | {"name": f"{name}_{number}", "id": base + number}
        data["actions"].append(action)
        table["actions"].append(action["name"])
        table["action_ids"].append(action["id"])
        table["next_tables"][action["name"]] = table["next_tables"][name]
    path = folder / f"forward_{count}.json"
    path.write_text(json.dumps(data))
    return path


def test_text_grows_with_the_number_of_actions(tmp_path: Path) -> None:
    sizes = {
        count: len(generate(read_program(program_of_actions(tmp_path, count))))
        for count in (1, 20, 40)
    }
    assert sizes[40] - sizes[20] < 1.2 * (sizes[20] - sizes[1])
    library = compile_program(
        program_of_actions(tmp_path, 40), cache_dir=tmp_path, cflags=("-O1", "-Werror")
    ).library
    assert library.exists()


def test_no_function_has_a_case_for_each_of_very_many_actions(tmp_path: Path) -> None:
    text = generate(read_program(program_of_actions(tmp_path, 3 * CASES_MAX)))
    for name in ("p4_decode", "p4_encode"):
        bodies = re.findall(rf"^[^\n]* {name}\w*\(.*?^}}", text, re.MULTILINE | re.DOTALL)
        assert sum(body.count("case ") for body in bodies) > 3 * CASES_MAX
        assert max(body.count("case ") for body in bodies) <= CASES_MAX


def test_parameters_of_very_many_actions_come_back(tmp_path: Path) -> None:
    path = program_of_actions(tmp_path, CASES_MAX + 40)
    program = compile_program(path, cache_dir=tmp_path, cflags=("-O1", "-Werror"))
    wanted = (0, 1, CASES_MAX - 1, CASES_MAX, CASES_MAX + 40)
    table = program.model.tables[0]
    with Switch(program) as switch:
        for number in wanted:
            params = b"" if number == 1 else number.to_bytes(2, "big")
            action = table.actions[number].position
            switch.tables.insert(0, Match(number.to_bytes(6, "big")), action, params)
        for number in wanted:
            entry = switch.tables.get(0, Match(number.to_bytes(6, "big")))
            assert entry is not None
            assert entry.action == table.actions[number].position
            assert entry.params == (b"" if number == 1 else number.to_bytes(2, "big"))
