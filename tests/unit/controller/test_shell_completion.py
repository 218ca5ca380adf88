# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Shell completion: what shells make of the printed scripts, and that no command is imported."""

from __future__ import annotations

import errno
import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from switchfold.controller.__main__ import run
from switchfold.controller.cli.manual.completion import SHELLS

BASH = """
. "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_$1_completion $1
printf '%s\\n' "${COMPREPLY[@]}"
"""
ZSHRC = """
autoload -Uz compinit && compinit -u -D
source <(switchfold completion zsh)
count() { matches=$compstate[nmatches] }
comppostfuncs=(count)
press-tab() {
  integer pressed=0 matches=1
  LBUFFER=$TYPED
  while (( pressed++ < matches )); do
    zle menu-complete
    print -r -- $LBUFFER >>$COMPLETED
  done
  BUFFER=exit
  zle accept-line
}
zle -N zle-line-init press-tab
"""
"""Of a shell that begins with $TYPED: it presses Tab once for each match, and ends."""
FISH = "complete -C 'switchfold '; echo; complete -C $argv[1]"
"""The file is that of the first program: the second one is completed from then on."""
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


every_case = pytest.mark.parametrize(
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


def needs(shell: str) -> pytest.MarkDecorator:
    """Skip where a shell is not installed."""
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"{shell} is not here")


def environment(programs: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return that of a shell which finds the programs, and whose user's home is theirs."""
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    return {**kept, "PATH": path, "HOME": str(programs), **(more or {})}


@needs("bash")
@every_case
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
        ["bash", "--norc", "-c", BASH, "bash", str(script), *words],
        env=environment(programs),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == expected, done.stderr


def drain(screen: int) -> None:
    """Read what a shell prints until it has ended, which is an error of the terminal."""
    try:
        while os.read(screen, 4096):
            pass
    except OSError as error:
        if error.errno != errno.EIO:
            raise
    finally:
        os.close(screen)


def test_fish_shows_descriptions_with_commas_whole(capsys: pytest.CaptureFixture[str]) -> None:
    """Also where no fish is: click's template may change."""
    assert run(["completion", "fish"]) == 0
    assert 'string split --max 1 ","' in capsys.readouterr().out


@needs("zsh")
@every_case
def test_zsh_completes(words: tuple[str, ...], expected: list[str], programs: Path) -> None:
    (programs / ".zshrc").write_text(ZSHRC)
    completed = programs / "completed"
    typed = {"TYPED": " ".join(words), "COMPLETED": str(completed), "TERM": "xterm"}
    typed["ZDOTDIR"] = str(programs)
    screen, terminal = pty.openpty()
    shell = subprocess.Popen(
        ["zsh", "-i"],
        env=environment(programs, typed),
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    drain(screen)
    assert shell.wait(timeout=60) == 0
    before = words[:-1]
    lines = completed.read_text().splitlines()
    assert [line.split() for line in lines] == [[*before, match] for match in expected]


@needs("fish")
@every_case
def test_fish_completes(
    words: tuple[str, ...],
    expected: list[str],
    programs: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["completion", "fish"]) == 0
    script = programs / ".config" / "fish" / "completions" / "switchfold.fish"
    script.parent.mkdir(parents=True)
    script.write_text(capsys.readouterr().out)
    done = subprocess.run(
        ["fish", "-c", FISH, " ".join(words)],
        env=environment(programs),
        capture_output=True,
        text=True,
        check=False,
    )
    every, _, completed = done.stdout.partition("\n\n")
    assert [line.partition("\t")[0] for line in completed.splitlines()] == expected, done.stderr
    # A comma does not end what is said of a command.
    assert "trace\tLook at traces of training: draw, sum up." in every.splitlines()


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
