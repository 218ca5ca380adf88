# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What three kinds of users do, from a machine without anything of ours to their results.

All commands are those of the pages, which a user types line by line: docs/tutorial.md has a table
of how many there are. There is no network to a package index; Switchfold comes from wheels of this
tree, and what it needs from this environment.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import deployed_lan
from built_wheel import copy_sources, made, wheel
from clean_machine import CleanMachine
from deployed_lan import HERE, HOSTS, deploy, install_command, run_on_all
from local_index import make_index, write_pip_configuration
from page_commands import blocks, is_shown, marked_commands, section
from plain_lan import PlainLan
from switchfold.controller.cli.installed_torch import has_torch
from torch_ranks import require_torch

__all__ = ["made", "wheel"]

DOCS = Path(__file__).resolve().parents[2] / "docs"
MOST_OF_A_DEPLOYMENT = 6
TRAIN = """
import hashlib

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("switchfold")
torch.manual_seed(dist.get_rank())
model = DistributedDataParallel(torch.nn.Linear(300, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs = torch.randn(64, 300)
labels = inputs[:, :10].argmax(1)
losses = []
for _ in range(20):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < losses[0], losses
weights = b"".join(each.detach().numpy().tobytes() for each in model.parameters())
said = [None] * dist.get_world_size()
dist.all_gather_object(said, hashlib.sha256(weights).hexdigest())
assert len(said) == 3 and len(set(said)) == 1, said
print("trained by sums of the switch, with equal weights on 3 ranks")
dist.destroy_process_group()
"""

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces"),
]


def stated_commands(page: str) -> int:
    """Return how many commands the table of docs/tutorial.md says that a page takes."""
    table = section((DOCS / "tutorial.md").read_text("utf-8"), "Three paths")
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


def follow(machine: CleanMachine, page: str, *headings: str) -> list[str]:
    """Type the commands of a page's parts; return what each printed.

    The result is what the page shows last, and the table says how many commands lead to it.
    """
    text = (DOCS / page).read_text("utf-8")
    printed: list[str] = []
    until_result = 0
    for block in (each for name in headings for each in blocks(section(text, name))):
        said = [machine.type(command) for command in block.commands]
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
    printed = follow(machine, "tutorial/first_sum.md", "Install", "On a testbed")
    # 100,000 values, 352 to a packet.
    completed = re.search(r"completed\W+(\d+)", "".join(printed))
    assert completed is not None
    assert int(completed[1]) >= 100_000 // 352
    check_installation(machine)


def test_trainer_has_equal_weights_on_all_ranks(machine: CleanMachine) -> None:
    require_torch()
    printed = follow(machine, "tutorial/first_training.md", "Install", "Train")
    ends = re.findall(r"rank \d: accuracy (\S+), weights (\w{64})$", "".join(printed), re.MULTILINE)
    assert len(ends) == 2
    assert ends[0] == ends[1]
    assert float(ends[0][0]) > 0.5
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
        (last,) = marked_commands(deployed_lan.PAGE, "commands of each host")
        for address in HOSTS:
            (lan.home(address) / "train.py").write_text(TRAIN)
        for text in run_on_all(lan, last):
            assert "trained by sums of the switch, with equal weights on 3 ranks" in text
    assert len([install_command(), *typed, last]) == stated_commands("deployment.md")
    assert stated_commands("deployment.md") <= MOST_OF_A_DEPLOYMENT
