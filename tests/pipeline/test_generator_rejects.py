# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Unsupported features are refused at load: all at once, each with its place and a remedy."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline_driver import PROGRAMS
from refused_program import refused_problems, write_refused
from switchfold.softswitch.compilation.compiler import compile_program
from switchfold.softswitch.errors import ProgramError, UnsupportedError
from switchfold.softswitch.generator import generate, generate_traced
from switchfold.softswitch.generator.actions.actions import ActionWriter
from switchfold.softswitch.program.bmv2_json import read_program


def test_all_unsupported_features_are_listed_at_once(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError) as caught:
        compile_program(PROGRAMS / "refused.json", cache_dir=tmp_path)
    found = "\n".join(problem.what for problem in caught.value.problems)
    for word in (
        "primitive 'vendor_stamp'",
        "primitive 'vendor_seal'",
        "extern instance TheIngress.queue",
    ):
        assert word in found
    assert all(problem.why and problem.remedy for problem in caught.value.problems)
    assert any(problem.where.startswith("refused.p4(") for problem in caught.value.problems)
    assert list(tmp_path.iterdir()) == []


def test_each_unknown_statement_is_refused_with_its_line(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with pytest.raises(UnsupportedError) as caught:
        compile_program(write_refused(tmp_path), cache_dir=cache)
    found = {(problem.what, problem.where) for problem in caught.value.problems}
    assert found == {
        (f"primitive '{name}'", f"replication.p4({line})") for name, line in refused_problems()
    }
    assert all("simple_switch_grpc" in problem.remedy for problem in caught.value.problems)
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"pipelines": [], "parsers": 3}', "\ud800x", "[" * 99999],
    ids=["empty", "list", "object", "parsers", "surrogate", "deep"],
)
def test_broken_json_is_a_program_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "broken.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(ProgramError) as caught:
        compile_program(path, cache_dir=tmp_path)
    assert not isinstance(caught.value, UnsupportedError)
    assert "p4c-bm2-ss" in str(caught.value)


@pytest.mark.parametrize("kind", [AssertionError, ZeroDivisionError, OverflowError, StopIteration])
def test_what_the_writers_stumble_over_is_a_program_error(
    monkeypatch: pytest.MonkeyPatch, kind: type[Exception]
) -> None:
    def stumble(_writer: ActionWriter) -> str:
        raise kind("of an odd JSON")

    monkeypatch.setattr(ActionWriter, "emit", stumble)
    program = read_program(PROGRAMS / "operators.json")
    for write in (generate, generate_traced):
        with pytest.raises(ProgramError, match=f"{kind.__name__}: of an odd JSON"):
            write(program)


def test_missing_parts_are_program_errors(tmp_path: Path) -> None:
    for key in ("header_types", "headers", "pipelines", "parsers"):
        data = json.loads((PROGRAMS / "operators.json").read_text())
        del data[key]
        path = tmp_path / f"without_{key}.json"
        path.write_text(json.dumps(data))
        with pytest.raises(ProgramError):
            compile_program(path, cache_dir=tmp_path)


def test_a_control_that_comes_back_to_a_node_is_refused(tmp_path: Path) -> None:
    data = json.loads((PROGRAMS / "tables.json").read_text())
    tables = data["pipelines"][0]["tables"]
    last = next(table for table in tables if table["base_default_next"] is None)
    last["base_default_next"] = data["pipelines"][0]["init_table"]
    last["next_tables"] = dict.fromkeys(last["next_tables"], last["base_default_next"])
    path = tmp_path / "endless.json"
    path.write_text(json.dumps(data))
    with pytest.raises(UnsupportedError, match="comes back to a node"):
        compile_program(path, cache_dir=tmp_path / "cache")


def test_unknown_keys_are_ignored(tmp_path: Path) -> None:
    data = json.loads((PROGRAMS / "operators.json").read_text())
    data["something_new"] = [{"id": 1}]
    data["pipelines"][0]["something_new"] = 1
    path = tmp_path / "operators.json"
    path.write_text(json.dumps(data))
    assert compile_program(path, cache_dir=tmp_path).library.exists()


def test_generator_prints_its_text(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "switchfold.softswitch.generator"]
    root = PROGRAMS.parents[2]
    for path, status in ((PROGRAMS / "tables.json", 0), (PROGRAMS / "refused.json", 1)):
        result = subprocess.run(
            [*command, str(path)], capture_output=True, text=True, check=False, cwd=root
        )
        assert result.returncode == status
        assert ("p4_control_ingress" in result.stdout) == (status == 0)
        assert ("cannot be loaded" in result.stderr) == (status == 1)
