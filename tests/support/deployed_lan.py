# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Three hosts and a machine with softswitch and controller, set up as docs/deployment.md says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from page_commands import marked_commands
from plain_lan import PlainLan

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "deployment.md").read_text("utf-8")
HERE = "192.168.7.10"
HOSTS = ("192.168.7.11", "192.168.7.12", "192.168.7.13")

SUM = """
import os
import time
import numpy as np
from switchfold.hostlib import SessionOptions
from switchfold.hostlib.config import join_from_environment

rank = os.environ["PET_NODE_RANK"]
names = {"JOB": "plain", "WORKER_ID": rank, "NUM_WORKERS": os.environ["PET_NNODES"]}
variables = os.environ | {f"SWITCHFOLD_{name}": value for name, value in names.items()}
with join_from_environment(SessionOptions(path="switch"), variables=variables) as session:
    values = np.arange(100_000, dtype=np.int32) + int(rank)
    result = session.allreduce(values).result()
    assert (result == 3 * np.arange(100_000) + 3).all()
print("summed by the switch")
"""
"""A worker of a job that sums once."""
JOINING = SUM.partition("    values =")[0]
"""Its beginning, up to what it does with its session."""


def install_command() -> str:
    """Return the command by which each machine gets the package."""
    (command,) = [line for line in PAGE.splitlines() if "pip install" in line]
    return command


def deploy(lan: PlainLan, options: str = "") -> list[str]:
    """Run the page's commands of the machine with the switch, and return them.

    `options` are added to those of `deploy init`.
    """
    commands = [
        f"{command} {options}" if options and "deploy init" in command else command
        for command in marked_commands(PAGE, "commands")
    ]
    for command in commands:
        said = lan.run(HERE, command)
        if "deploy init" in command:
            assert "nobody has it" in said
        if "doctor" in command:
            assert re.search(r"ok +switch s1 program", said), said
            assert not re.search(r"^fail", said, re.MULTILINE), said
    return commands


def run_on_all(lan: PlainLan, command: str, hosts: Sequence[str] = HOSTS) -> list[str]:
    """Run a command on all hosts at the same time; return what each printed."""
    running = [lan.start(address, command) for address in hosts]
    said = [process.communicate(timeout=400)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0, 0], "\n".join(said)
    return said
