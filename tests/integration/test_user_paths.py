# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What five kinds of users do, from a machine without anything of ours to their results.

All commands are those of the pages, which a user types line by line: docs/tutorial.md has a table
of how many there are. There is no network to a package index; Switchfold comes from wheels of this
tree, and what it needs from this environment (support/deployment_time.py measures with one).

The researcher's path has the first compilation of the P4 program in it: its cache begins empty. The
other paths have the cache of this machine.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from built_wheel import copy_sources, made, wheel
from clean_machine import SYSTEM_PATH, CleanMachine
from deployed_lan import (
    HERE,
    HOSTS,
    check_training,
    deploy,
    install_command,
    run_on_all,
    training_command,
    write_training,
)
from local_index import make_index, write_pip_configuration
from own_table_compiler import write_stand_in
from page_commands import CommandBlock, blocks, is_shown, section
from plain_lan import PlainLan
from switchfold.controller.cli.installed_torch import has_torch
from switchfold.hostlib.schemes.calibration_file import FIGURES, load_calibration
from switchfold.p4src.compile import COMPILER
from switchfold.p4src.own_program import compile_own
from torch_ranks import require_torch

__all__ = ["made", "wheel"]

DOCS = Path(__file__).resolve().parents[2] / "docs"
MOST_OF_A_DEPLOYMENT = 6
FIRST_SUM, FIRST_TRAINING = "tutorial/first_sum.md", "tutorial/first_training.md"
WILL_IT_HELP = "hybrid.md#will-it-help"
OWN_TABLE = "tutorial/own_table.md"
OWN_PROGRAM = "mine/bmv2/switchfold_narrow.p4"

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces"),
]


def stated_commands(page: str) -> int:
    """Return how many commands the table of docs/tutorial.md says that a page takes."""
    table = section((DOCS / "tutorial.md").read_text("utf-8"), "Five paths")
    (row,) = [line for line in table.splitlines() if f"]({page})" in line]
    return int(row.split("|")[2])


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[CleanMachine]:
    """A machine with a checkout in its user's home."""
    index = tmp_path / "index"
    index.mkdir()
    # Without PyTorch, the pages that need it are skipped.
    make_index(index, "controller", *(["torch"] if has_torch() else []))
    with CleanMachine(tmp_path, index) as made:
        copy_sources(made.home / "switchfold", "examples")
        made.type("cd switchfold")
        yield made


def parts(page: str, *headings: str) -> list[CommandBlock]:
    """Return the blocks of commands of a page's parts."""
    text = (DOCS / page).read_text("utf-8")
    return [block for name in headings for block in blocks(section(text, name))]


def follow(
    machine: CleanMachine,
    page: str,
    read: list[CommandBlock],
    instead: Mapping[str, Callable[[], str]] | None = None,
) -> list[str]:
    """Type the commands that lead to the result of a page; return what each printed.

    The result is what is shown last, and the table says how many commands lead to it. `instead`:
    what is done in place of a command.
    """
    done_here = instead or {}
    printed: list[str] = []
    until_result = 0
    for block in read:
        said = [
            done_here[command]() if command in done_here else machine.type(command)
            for command in block.commands
        ]
        printed += said
        missing = [line for line in block.expected if not is_shown(line, "".join(said))]
        assert not missing, f"{block.commands} printed no {missing}:\n{''.join(said)}"
        if block.expected:
            until_result = len(printed)
    assert until_result == stated_commands(page)
    return printed


def check_installation(machine: CleanMachine) -> None:
    """The commands of this machine have run the package that was installed there."""
    where = machine.type("python -c 'import switchfold; print(switchfold.__file__)'")
    assert Path(where.strip()).is_relative_to(machine.home / "switchfold" / ".venv")


def test_researcher_sums_on_a_testbed(machine: CleanMachine) -> None:
    assert not machine.compiled.exists()
    printed = follow(machine, FIRST_SUM, parts(FIRST_SUM, "Install", "On a testbed"))
    # 100,000 values, 352 to a packet.
    completed = re.search(r"completed\W+(\d+)", "".join(printed))
    assert completed is not None
    assert int(completed[1]) >= 100_000 // 352
    assert any(machine.compiled.iterdir())
    check_installation(machine)


def test_whoever_decides_learns_what_is_faster_on_this_machine(machine: CleanMachine) -> None:
    """Which one it is, is a matter of the machine and of what else it does."""
    run = [block for block in parts("hybrid.md", "Will it help?") if not block.is_prompted]
    printed = follow(machine, WILL_IT_HELP, [*parts(FIRST_SUM, "Install"), *run])
    (file,) = re.findall(r"^kept in (\S+);", "".join(printed), re.MULTILINE)
    assert Path(file) == machine.home / ".config" / "switchfold" / "calibration.json"
    kept = load_calibration(Path(file))
    assert set(kept.figures) <= set(FIGURES)
    assumed = f"(measured {kept.machine['time']}"
    assert printed[-1].count(assumed) == 2, printed[-1]
    winner = (
        r"^4 workers: (aggregation (helps|brings little)|a ring is (a little )?faster here): \d"
    )
    assert re.search(winner, printed[-1], re.MULTILINE), printed[-1]
    check_installation(machine)


def check_equal_weights(printed: str) -> None:
    """Two ranks have trained, to the same bits."""
    ends = re.findall(r"rank \d: accuracy (\S+), weights (\w{64})$", printed, re.MULTILINE)
    assert len(ends) == 2, printed
    assert ends[0] == ends[1]
    assert float(ends[0][0]) > 0.5


def test_trainer_has_equal_weights_on_all_ranks(machine: CleanMachine) -> None:
    require_torch()
    machine.share_compiled()
    printed = follow(machine, FIRST_TRAINING, parts(FIRST_TRAINING, "Install", "Train"))
    check_equal_weights("".join(printed))
    (block,) = parts(FIRST_TRAINING, "With torchrun")
    said = ""
    for command in block.commands:
        typed = command
        if command.startswith("export "):  # the page leaves out what `testbed up` says
            (typed,) = re.findall(rf"{command.partition('=')[0]}=\S+", said)
        said += machine.type(typed)
    check_equal_weights(said)
    check_installation(machine)


def test_author_of_p4_sees_what_an_own_table_does(
    machine: CleanMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where p4c is not installed, the compiled program comes from where it was compiled."""

    def take_compiled() -> str:
        write_stand_in(tmp_path)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        program = machine.home / "switchfold" / OWN_PROGRAM
        compile_own(program, program.parent / "build" / program.stem)
        return ""

    machine.share_compiled()
    has_compiler = shutil.which(COMPILER, path=SYSTEM_PATH) is not None
    read = parts(FIRST_SUM, "Install") + parts(OWN_TABLE, "Change the program", "Compile", "Run it")
    (compiling,) = [
        command for block in read for command in block.commands if " p4 compile " in command
    ]
    assert compiling.endswith(f" {OWN_PROGRAM}")
    printed = follow(machine, OWN_TABLE, read, {} if has_compiler else {compiling: take_compiled})
    text = "".join(printed)
    # 100,000 values, 32 to a packet, from each of two workers; and then a third sender's.
    counted = [int(each) for each in re.findall(r"account\(\) │ +([\d,]+)", text)]
    assert len(counted) == 2
    assert min(counted) >= 100_000 // 32
    refused = re.search(r"foreign_worker │ +(\d+)", text)
    assert refused is not None
    assert int(refused[1]) > 0
    check_installation(machine)


def test_operator_runs_a_training_on_real_hosts(wheel: Path, tmp_path: Path) -> None:
    require_torch()
    make_index(tmp_path, "controller", "torch")
    installed = tmp_path / "opt"
    installed.mkdir()
    # Paths of sockets are short.
    folder = Path(tempfile.mkdtemp(prefix="sf-"))
    with PlainLan(folder, (HERE, *HOSTS), installed=installed) as lan:
        write_pip_configuration(lan.home(HERE), tmp_path)
        shutil.copy(wheel, lan.home(HERE))
        # All machines have one file system, and so one installation, with what workers need.
        lan.run(HERE, install_command().replace("[controller]", "[torch]"))
        (found,) = installed.glob("switchfold/lib/*/site-packages/switchfold/__init__.py")
        said = lan.run(HERE, "python -c 'import switchfold; print(switchfold.__file__)'")
        assert said == f"/opt/{found.relative_to(installed)}\n"
        typed = deploy(lan)
        write_training(lan)
        last = training_command()
        check_training(lan, run_on_all(lan, last))
    assert len([install_command(), *typed, last]) == stated_commands("deployment.md")
    assert stated_commands("deployment.md") <= MOST_OF_A_DEPLOYMENT
