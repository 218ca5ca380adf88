# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Finding a C compiler, the cache, failures of the compiler."""

import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from switchfold.softswitch.compilation import compiler
from switchfold.softswitch.compilation.compiler import (
    CompiledProgram,
    compile_program,
    default_cache_dir,
    find_compiler,
)
from switchfold.softswitch.errors import CompileError, CompilerNotFoundError, SoftswitchError

PROGRAM = Path(__file__).parents[2] / "pipeline" / "programs" / "operators.json"


def fake_compiler(directory: Path, name: str, script: str) -> None:
    path = directory / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> CompiledProgram:
    """The program, compiled with the usual flags: the only one in its cache."""
    return compile_program(PROGRAM, cache_dir=tmp_path_factory.mktemp("cache"))


def test_no_compiler_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(compiler.importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(CompilerNotFoundError, match="ziglang"):
        compile_program(PROGRAM, cache_dir=tmp_path)


def test_compilers_are_tried_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(compiler.importlib.util, "find_spec", lambda _name: object())
    assert find_compiler() == (sys.executable, "-m", "ziglang", "cc")
    for name in ("clang", "gcc", "cc"):
        fake_compiler(tmp_path, name, "exit 1")
        assert find_compiler() == (str(tmp_path / name),)


def test_failing_compiler_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_compiler(tmp_path, "cc", "echo it broke >&2; exit 3")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CompileError, match="status 3") as caught:
        compile_program(PROGRAM, cache_dir=tmp_path / "cache")
    assert "it broke" in str(caught.value)
    assert isinstance(caught.value, SoftswitchError)
    assert list((tmp_path / "cache").iterdir()) == []


def test_second_compilation_comes_from_the_cache(
    first: CompiledProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = first.library.parent

    def never(*_arguments: object, **_options: object) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(subprocess, "run", never)
    monkeypatch.setattr("switchfold.softswitch.generator.generate", never)
    second = compile_program(PROGRAM, cache_dir=cache)
    assert second.library == first.library
    assert [item.name for item in cache.iterdir()] == [first.library.name]


def test_flags_are_part_of_the_cache_key(first: CompiledProgram, tmp_path: Path) -> None:
    shutil.copy(first.library, tmp_path)
    plain = compile_program(PROGRAM, cache_dir=tmp_path)
    debug = compile_program(PROGRAM, cache_dir=tmp_path, cflags=("-O1", "-Werror"))
    assert plain.library != debug.library


def test_what_decides_the_c_text_is_part_of_the_cache_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = compile_program(PROGRAM, cache_dir=tmp_path, cflags=("-O0",))
    counting = compile_program(PROGRAM, cache_dir=tmp_path, cflags=("-O0",), has_counts=True)
    module = tmp_path / "generator" / "emit.py"
    module.parent.mkdir()
    module.write_text("changed\n")
    monkeypatch.setattr(compiler, "GENERATOR", (module.parent,))
    changed = compile_program(PROGRAM, cache_dir=tmp_path, cflags=("-O0",))
    assert len({plain.library, counting.library, changed.library}) == 3


def test_cache_follows_xdg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache_dir() == tmp_path / "softswitch"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_cache_dir() == tmp_path / ".cache" / "softswitch"
