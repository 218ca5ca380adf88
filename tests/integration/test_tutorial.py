# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/tutorial run as they stand, and print what the pages show.

Testbeds are recorded where no other test looks, and have another name than a user's. What the
commands write is in a folder of the test's. The page on training would take as long as all others
together: its commands are checked here, and test_user_paths.py runs them. Where there is no p4c, a
stand-in compiles the table of the page on P4 (support/own_table_compiler.py).
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from own_table_compiler import write_stand_in
from page_commands import blocks, is_shown
from switchfold.bmv2_topos import state
from switchfold.controller.__main__ import run
from switchfold.controller.cli import output
from switchfold.controller.cli.manual.programs import children, program_context
from switchfold.p4src.compile import COMPILER
from switchfold.p4src.own_program import copy_sources

ROOT = Path(__file__).resolve().parents[2]
PAGES, EXAMPLES = ROOT / "docs" / "tutorial", ROOT / "examples"
RUN = ("first_sum", "first_tree", "hot_parameters", "own_table")
CHECKED = ("first_training",)
INCLUDED = re.compile(r"^<!-- (\S+) -->\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)
TOOLS = ("cp", "patch")
"""Programs beside ours that a reader types; they print nothing that a page shows."""
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
        self._up_options: list[str] = []

    def choose(self, *options: str) -> None:
        """Add options to each `testbed up`."""
        self._up_options += options

    def type(self, words: list[str]) -> str:
        """Run a command, which must not fail."""
        program, *arguments = words
        if program == "python":
            return self._start(sys.executable, *arguments)
        if program in TOOLS:
            self._start(*words)
            return ""
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
        if verb == "up":
            named += self._up_options
        return self._start(sys.executable, "-c", SWITCHFOLD, str(self._records), *named)

    def _start(self, *words: str) -> str:
        done = subprocess.run(
            words,
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
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Reader]:
    for module in (state, output):
        monkeypatch.setattr(module, "records_directory", lambda: tmp_path)
    folder = tmp_path_factory.mktemp("reader")
    (folder / "examples").symlink_to(EXAMPLES)
    monkeypatch.chdir(folder)
    made = Reader(tmp_path, capsys)
    yield made
    if any(tmp_path.glob("tutorial*")):  # a command has failed in between
        made.testbed("down")


@pytest.fixture
def compiler(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have p4c, or what stands in for it, on the PATH."""
    if shutil.which(COMPILER) is None:
        folder = tmp_path_factory.mktemp("compiler")
        write_stand_in(folder)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def follow(name: str, reader: Reader) -> None:
    """Do what a page says, and compare what is printed with what it shows."""
    compared = 0
    for commands, expected in sections(name):
        printed = "".join(map(reader.type, commands))
        missing = [line for line in expected if not is_shown(line, printed)]
        assert not missing, f"{commands} printed no {missing}:\n{printed}"
        compared += len(expected)
    assert compared > 0


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", RUN)
@pytest.mark.usefixtures("compiler")
def test_page_prints_what_it_shows(name: str, reader: Reader) -> None:
    if name == "hot_parameters" and os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    follow(name, reader)


@pytest.mark.bmv2
@pytest.mark.root
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("compiler")
def test_own_table_on_bmv2(reader: Reader) -> None:
    if shutil.which("simple_switch_grpc") is None:
        pytest.skip("simple_switch_grpc is not on the PATH")
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    reader.choose("--target", "bmv2")
    follow("own_table", reader)


def test_own_table_shows_its_files_as_they_are() -> None:
    """Without their licence, and with a command that prints them where there are no others."""
    shown = dict(INCLUDED.findall((PAGES / "own_table.md").read_text("utf-8")))
    files = {str(path.relative_to(ROOT)): path for path in (EXAMPLES / "own_table").iterdir()}
    assert set(shown) == set(files)
    for name, path in files.items():
        text = re.sub(r"\A(//.*\n)*", "", path.read_text("utf-8"))
        assert shown[name].removeprefix(f"$ cat {name}\n") == text, name


def test_change_of_the_own_table_fits_the_sources(tmp_path: Path) -> None:
    """Also where there is no p4c: the change must be renewed with what it is made to."""
    copy_sources(tmp_path / "mine")
    change = EXAMPLES / "own_table" / "sender.diff"
    command = ["patch", "--fuzz=0", "-d", str(tmp_path / "mine"), "-p1", "-i", str(change)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stdout


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
