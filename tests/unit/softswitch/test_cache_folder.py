# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""If the folder of compiled programs cannot be written or is full, errors name it."""

import errno
import os
import stat
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from switchfold.softswitch.commands.command import main
from switchfold.softswitch.compilation.compiler import compile_program, default_cache_dir
from switchfold.softswitch.compilation.runtime_library import build_runtime
from switchfold.softswitch.errors import CacheError, CompileError

PROGRAM = Path(__file__).parents[2] / "pipeline" / "programs" / "operators.json"


def assert_names(error: CacheError, folder: Path) -> None:
    assert str(folder) in str(error)
    assert "XDG_CACHE_HOME" in str(error)
    assert "report this" not in str(error)


def fake_compiler(directory: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    path = directory / "cc"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(directory))


def test_cache_below_a_file_is_a_cache_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cache = tmp_path / "file" / "softswitch"
    for build in (lambda: compile_program(PROGRAM, cache_dir=cache), lambda: build_runtime(cache)):
        with pytest.raises(CacheError, match="Not a directory") as caught:
            build()
        assert_names(caught.value, cache)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.ENOSPC, errno.EDQUOT])
def test_folder_that_cannot_be_made_is_a_cache_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_arguments: object, **_options: object) -> str:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    with pytest.raises(CacheError, match=os.strerror(number)) as caught:
        compile_program(PROGRAM, cache_dir=tmp_path)
    assert_names(caught.value, tmp_path)
    is_full = number in (errno.ENOSPC, errno.EDQUOT)
    assert ("Free some" in str(caught.value)) == is_full


@pytest.mark.parametrize(
    "text",
    [
        "cc1: fatal error: error writing to /x/cc1.s: No space left on device",
        "/usr/bin/ld: final link failed: Disk quota exceeded",
    ],
)
def test_compiler_on_a_full_disk_is_a_cache_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    fake_compiler(tmp_path, monkeypatch, f"echo '{text}' >&2; exit 1")
    cache = tmp_path / "cache"
    for build in (lambda: compile_program(PROGRAM, cache_dir=cache), lambda: build_runtime(cache)):
        with pytest.raises(CacheError, match="Free some") as caught:
            build()
        assert_names(caught.value, cache)
    assert list(cache.iterdir()) == []


def test_temporary_files_of_the_compiler_are_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_compiler(tmp_path, monkeypatch, 'echo "$TMPDIR" >&2; exit 1')
    with pytest.raises(CompileError, match=str(tmp_path / "cache" / "locked-build-")):
        compile_program(PROGRAM, cache_dir=tmp_path / "cache")


def test_user_without_a_home_is_told_of_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(CacheError, match="XDG_CACHE_HOME"):
        default_cache_dir()


def test_command_says_it_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    result = CliRunner().invoke(main, ["build", str(PROGRAM)])
    assert result.exit_code == 1
    assert "Traceback" not in result.output
    assert f"cannot be kept in {tmp_path}/file/softswitch: Not a directory" in result.output
