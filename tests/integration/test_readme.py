# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The quick starts of README.md, typed as they stand on a machine of their own.

The trainer's first command installs PyTorch; test_user_paths.py types what the tutorial has of it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from clean_machine import CleanMachine
from page_commands import blocks
from time_bound import wait_until

ROOT = Path(__file__).resolve().parents[2]
DATABASE = "/tmp/s1.sqlite3"  # the folder is that of all tests

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces"),
]


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[CleanMachine]:
    """A machine with a checkout in which `make demo` has set up the environment."""
    with CleanMachine(tmp_path, tmp_path) as made:
        made.share_compiled()
        (made.home / ".venv").symlink_to(sys.prefix)
        (made.home / "examples").symlink_to(ROOT / "examples")
        made.type(f"export PYTHONPATH={ROOT / 'src'}")
        made.type(". .venv/bin/activate")
        yield made


def quick_start(reader: str) -> list[str]:
    """Return the commands below the paragraph of a reader."""
    text = (ROOT / "README.md").read_text("utf-8")
    found = next(blocks(text[text.index(f"\n**{reader}: ") :]))
    return found.commands


def test_researcher_sums_over_two_spines_that_lose_packets(machine: CleanMachine) -> None:
    printed = "".join(map(machine.type, quick_start("Researcher")))
    for worker in range(4):
        assert f"worker {worker} of 4: every element is 10" in printed, printed
    sent_up = re.search(r"sent_up\W+(\d+)", printed)
    assert sent_up is not None, printed
    assert int(sent_up[1]) >= 100_000 // 352, "values, and the most of them in a packet"
    assert "impaired_in_lost" in printed, printed
    assert "testbed main is down" in printed, printed


def test_operator_sees_a_switch_and_its_controller(machine: CleanMachine) -> None:
    printed = ""
    for number, command in enumerate(quick_start("Operator")):
        typed = command.replace(DATABASE, str(machine.home / "s1.sqlite3"))
        if not typed.endswith("&"):
            printed += machine.type(typed)
            continue
        log = machine.home / f"{number}.log"
        log.touch()
        machine.type(f"{typed.removesuffix('&')} >{log} 2>&1 &")
        wait_until(
            lambda log=log: "\nready" in f"\n{log.read_text('utf-8')}",
            lambda log=log: log.read_text("utf-8"),
            240.0,
        )
    assert "switch s1 at 127.0.0.1:9559: ready" in printed, printed
    assert re.search(r"^ok +switch s1 program", printed, re.MULTILINE), printed
