# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Long commands of the Makefile say what they do, and show their output where they fail."""

from __future__ import annotations

import importlib.util
import io
import math
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]


def load_told() -> ModuleType:
    spec = importlib.util.spec_from_file_location("told", ROOT / ".ci" / "told.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


told = load_told()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run(folder: Path, script: str, stream: io.StringIO) -> int:
    command = [sys.executable, "-c", script]
    return told.run("Installing it", folder / "build" / "it.log", command, stream)


def test_success_says_what_was_done_and_shows_no_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(told, "LINE_EACH_S", math.inf)  # however long the command takes
    stream = io.StringIO()
    assert run(tmp_path, "print('Collecting numpy')", stream) == 0
    first, last = stream.getvalue().splitlines()
    assert first == "Installing it ..."
    assert last.startswith("Installing it: done after ")
    assert (tmp_path / "build" / "it.log").read_text("utf-8") == "Collecting numpy\n"


def test_failure_shows_the_end_of_the_output_and_where_all_of_it_is(tmp_path: Path) -> None:
    stream = io.StringIO()
    loop = "for i in range(100): print('line', i, flush=True)"
    script = f"import sys\n{loop}\nsys.exit('error: no network')"
    assert run(tmp_path, script, stream) == 1
    text = stream.getvalue()
    assert "Installing it: failed (exit code 1) after " in text
    assert "  error: no network\n" in text
    assert "line 99" in text
    assert "line 50" not in text
    log = tmp_path / "build" / "it.log"
    assert text.endswith(f"all of its output: {log}\n")
    assert "line 50" in log.read_text("utf-8")


def test_terminal_has_one_line_that_is_renewed(tmp_path: Path) -> None:
    stream = Terminal()
    assert run(tmp_path, "print('Collecting numpy'); print('Collecting grpcio')", stream) == 0
    text = stream.getvalue()
    assert "looking up numpy" in text
    assert "looking up grpcio" in text
    assert text.count("\n") == 1


def test_long_command_adds_a_line_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(told, "LINE_EACH_S", 0.0)
    stream = io.StringIO()
    script = "print('nothing known'); print('Downloading scipy-1.2-cp311.whl (35.1 MB)')"
    assert run(tmp_path, script, stream) == 0
    lines = stream.getvalue().splitlines()
    assert lines[1].endswith(" s: still at it")
    assert lines[-2].endswith(" s: downloading scipy (35.1 MB)")


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("Collecting grpcio-tools<2,>=1.76 (from switchfold==0.1.0)", "looking up grpcio-tools"),
        ("  Downloading numpy-2.4.1-cp311-cp311-x.whl (16.9 MB)", "downloading numpy (16.9 MB)"),
        ("  Building editable for switchfold (pyproject.toml): started", "building switchfold"),
        ("Installing collected packages: click, numpy, rich", "unpacking 3 packages"),
        ("Requirement already satisfied: click", None),
    ],
)
def test_steps_of_pip_are_understood(line: str, step: str | None) -> None:
    assert told.step_of(line) == step
