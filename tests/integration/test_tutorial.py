# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/tutorial run as they stand, and print what the pages show.

Testbeds are recorded where no other test looks, and have another name than a user's. The page on
training would take as long as all others together: its commands are checked, and not run.
test_pytorch_examples.py runs its program.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from page_commands import blocks, is_shown
from switchfold.bmv2_topos import state
from switchfold.controller.__main__ import run
from switchfold.controller.cli import output
from switchfold.controller.cli.manual.programs import children, program_context

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "tutorial"
RUN, CHECKED = ("first_sum", "first_tree", "hot_parameters"), ("first_training",)
TIMEOUT_S = 600
SWITCHFOLD = """
import sys
from pathlib import Path
from switchfold.bmv2_topos import state
from switchfold.controller.__main__ import run
state.records_directory = lambda: Path(sys.argv[1])
sys.exit(run(sys.argv[2:]))
"""


def sections(name: str) -> Iterator[tuple[list[list[str]], list[str]]]:
    """Return the words of each block of commands, and the lines that it must print.

    Blocks of text in which commands begin with a dollar are for reading.
    """
    for block in blocks((PAGES / f"{name}.md").read_text("utf-8")):
        if not block.is_prompted:
            words = [shlex.split(line, comments=True) for line in block.commands]
            yield words, block.expected


class Reader:
    """Does what a reader does, and returns what the commands print."""

    def __init__(self, records: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._records = records
        self._capsys = capsys

    def type(self, words: list[str]) -> str:
        """Run a command, which must not fail."""
        program, *arguments = words
        if program == "python":
            return self._start(*arguments)
        assert program == "switchfold", words
        if arguments[0] == "testbed":
            return self.testbed(*arguments[1:])
        # In this process, which has loaded all of it.
        status = run(arguments)
        printed = self._capsys.readouterr()
        assert status == 0, f"{words}: {printed.out}{printed.err}"
        return printed.out

    def testbed(self, verb: str, *arguments: str) -> str:
        """Run a verb of `switchfold testbed`; its processes are children of none of ours."""
        named = ["testbed", verb, "--name", f"tutorial{os.getpid()}", *arguments]
        return self._start("-c", SWITCHFOLD, str(self._records), *named)

    def _start(self, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, *words],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture
def reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Reader]:
    for module in (state, output):
        monkeypatch.setattr(module, "records_directory", lambda: tmp_path)
    made = Reader(tmp_path, capsys)
    yield made
    if any(tmp_path.glob("tutorial*")):  # a command has failed in between
        made.testbed("down")


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", RUN)
def test_page_prints_what_it_shows(name: str, reader: Reader) -> None:
    if name == "hot_parameters" and os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    compared = 0
    for commands, expected in sections(name):
        printed = "".join(map(reader.type, commands))
        missing = [line for line in expected if not is_shown(line, printed)]
        assert not missing, f"{commands} printed no {missing}:\n{printed}"
        compared += len(expected)
    assert compared > 0


@pytest.mark.parametrize("name", CHECKED)
def test_page_has_commands_and_options_that_exist(name: str) -> None:
    for commands, _ in sections(name):
        for program, *words in commands:
            context = program_context(program)
            while below := {each.info_name: each for each in children(context)}:
                context = below[words.pop(0)]
            parsed, rest, _ = context.command.make_parser(context).parse_args(list(words))
            assert rest == []
            for path in re.findall(r"\S+\.py", " ".join(words)):
                assert (ROOT / path).is_file()
            assert parsed or not words


def test_every_page_is_on_the_ladder_and_run_or_checked() -> None:
    ladder = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
    names = {page.stem for page in PAGES.glob("*.md")}
    assert names == {*RUN, *CHECKED}
    assert set(re.findall(r"\]\(tutorial/(\w+)\.md\)", ladder)) == names
