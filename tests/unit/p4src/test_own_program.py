# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A user's own program: compiled by whatever p4c-bm2-ss is on the PATH, found, compared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from switchfold import p4src
from switchfold.controller.__main__ import run
from switchfold.p4src.own_program import (
    compile_own,
    copy_sources,
    main,
    program_files_in,
)

FAKE_P4C = """#!/bin/sh
# Writes what p4c-bm2-ss writes: --std p4-16 -o JSON --p4runtime-files P4INFO PROGRAM
if [ "$1" = --version ]; then echo "Version 9.9.9 (SHA: abcdef BUILD: Test)"; exit; fi
while read -r line; do
  case $line in
  mistake) echo "own.p4(1): error: mistake" >&2; exit 1 ;;
  remark) echo "own.p4(1): warning: remark" >&2 ;;
  esac
done < "$7"
echo '{"program": "own"}' > "$4"
echo 'pkg_info {}' > "$6"
"""


@pytest.fixture
def fake_p4c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    compiler = folder / "p4c-bm2-ss"
    compiler.write_text(FAKE_P4C)
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


@pytest.fixture
def program(tmp_path: Path) -> Path:
    folder = tmp_path / "own"
    (folder / "parts").mkdir(parents=True)
    (folder / "own.p4").write_text('  #  include "parts/a.p4"\n')
    (folder / "parts" / "a.p4").write_text("// a\n")
    return folder / "own.p4"


@pytest.mark.usefixtures("fake_p4c")
def test_compile_keeps_digests_of_all_sources_beside_the_artefacts(program: Path) -> None:
    made, remarks = compile_own(program, program.parent / "build")
    assert remarks == ""
    assert program_files_in(made.folder) == made == program_files_in(made.json)
    manifest = json.loads((made.folder / "manifest.json").read_text())
    assert set(manifest["sources"]) == {"../own.p4", "../parts/a.p4"}
    assert manifest["compiler"] == "p4c-bm2-ss 9.9.9 abcdef"
    assert p4src.stale_program(made.folder) == ""


@pytest.mark.usefixtures("fake_p4c")
@pytest.mark.parametrize("changed", ["own.p4", "parts/a.p4", "build/own.json"])
def test_a_later_change_of_any_file_is_told(program: Path, changed: str) -> None:
    made, _ = compile_own(program, program.parent / "build")
    path = program.parent / changed
    path.write_text(path.read_text() + "// more\n")
    problem = p4src.stale_program(made.folder)
    assert Path(changed).name in problem
    assert "switchfold p4 compile" in problem
    assert run(["p4", "check", str(made.folder)]) == 1


@pytest.mark.usefixtures("fake_p4c")
def test_a_source_that_vanished_is_told(program: Path) -> None:
    made, _ = compile_own(program, program.parent / "build")
    (program.parent / "parts" / "a.p4").unlink()
    assert "parts/a.p4" in p4src.stale_program(made.folder)


@pytest.mark.usefixtures("fake_p4c")
def test_a_refused_program_leaves_the_old_artefacts(program: Path) -> None:
    made, _ = compile_own(program, program.parent / "build")
    before = made.json.read_bytes()
    program.write_text("mistake\n")
    with pytest.raises(p4src.CompilationError, match="error: mistake"):
        compile_own(program, made.folder)
    assert made.json.read_bytes() == before


@pytest.mark.usefixtures("fake_p4c")
def test_command_compiles_beside_the_program_and_shows_remarks(
    program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program.write_text("remark\n")
    assert run(["p4", "compile", str(program)]) == 0
    shown = capsys.readouterr()
    assert "warning: remark" in shown.err
    assert "build/own holds own.json and own.p4info.txtpb" in shown.out
    assert main([str(program), str(program.parent / "other")]) == 0
    assert (program.parent / "other" / "own.json").is_file()


def test_without_p4c_the_container_is_named(
    program: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    assert run(["p4", "compile", str(program)]) == 1
    assert "p4src.own_program PROGRAM.p4 FOLDER" in capsys.readouterr().err
    assert main([str(program)]) == 2


def test_program_files_say_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(p4src.ProgramFilesError, match="there is none"):
        program_files_in(tmp_path)
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(p4src.ProgramFilesError, match=r"a\.p4info\.txtpb"):
        program_files_in(tmp_path)
    (tmp_path / "other.p4info.txt").write_text("")
    assert program_files_in(tmp_path).p4info.name == "other.p4info.txt"
    (tmp_path / "b.json").write_text("{}")
    with pytest.raises(p4src.ProgramFilesError, match=r"a\.json, b\.json"):
        program_files_in(tmp_path)
    with pytest.raises(p4src.ProgramFilesError, match="is missing"):
        program_files_in(tmp_path / "c.json")


def test_copied_sources_are_whole_and_only_go_into_a_new_folder(tmp_path: Path) -> None:
    roots = copy_sources(tmp_path / "mine")
    for variant in p4src.VARIANTS:
        ours, copied = p4src.sources(variant), p4src.artefacts(variant)
        assert copied.json.is_file()
        there = p4src.sources(variant, tmp_path / "mine")
        assert [path.name for path in there] == [path.name for path in ours]
        assert all(path.is_file() for path in there)
    assert roots == tmp_path / "mine" / "bmv2"
    with pytest.raises(p4src.ProgramFilesError, match="not empty"):
        copy_sources(tmp_path / "mine")
