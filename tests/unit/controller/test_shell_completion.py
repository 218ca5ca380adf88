# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Shell completion: what bash gets from the printed script, and that no command is imported."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from switchfold.controller.__main__ import run
from switchfold.controller.cli.manual.completion import SHELLS

SCRIPT = """
. "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_$1_completion $1
printf '%s\\n' "${COMPREPLY[@]}"
"""
PROBE = """
import sys
from switchfold.controller.__main__ import main
sys.argv = ["switchfold"]
try:
    main()
except SystemExit:
    pass
print([name for name in sys.modules if name.startswith("switchfold.controller.cli.")])
"""


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with the programs; those installed may be of another version."""
    for name, module in (("switchfold", "controller"), ("softswitch", "softswitch")):
        code = f"from switchfold.{module}.__main__ import main; main()"
        program = tmp_path / name
        program.write_text(f"#!{sys.executable}\nimport sys\nsys.argv[0] = {name!r}\n{code}\n")
        program.chmod(0o755)
    return tmp_path


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not here")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("switchfold", "tr"), ["trace", "tree"]),
        (("switchfold", "job", "sh"), ["show"]),
        (("switchfold", "job", "show", "--js"), ["--json"]),
        (("switchfold", "completion", "z"), ["zsh"]),
        (("switchfold", "ps", "run", "--hot-j"), ["--hot-job", "--hot-job-token"]),
        (("softswitch", "bu"), ["build"]),
    ],
    ids=" ".join,
)
def test_bash_completes(
    words: tuple[str, ...],
    expected: list[str],
    programs: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["completion", "bash"]) == 0
    script = programs / "script"
    script.write_text(capsys.readouterr().out)
    done = subprocess.run(
        ["bash", "--norc", "-c", SCRIPT, "bash", str(script), *words],
        env={**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == expected, done.stderr


def test_names_of_commands_are_completed_without_importing_them() -> None:
    variables = {
        "_SWITCHFOLD_COMPLETE": "bash_complete",
        "COMP_WORDS": "switchfold ",
        "COMP_CWORD": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", PROBE],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    *completed, imported = done.stdout.splitlines()
    assert "plain,testbed" in completed
    assert imported == "[]"


@pytest.mark.parametrize("shell", SHELLS)
def test_scripts_are_for_both_programs(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    script = capsys.readouterr().out
    for program in ("switchfold", "softswitch"):
        assert f"_{program.upper()}_COMPLETE={shell}_complete" in script
