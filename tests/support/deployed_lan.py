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
each = torch.arange(100_000, dtype=torch.int32)
total = each + dist.get_rank()
dist.all_reduce(total)
assert torch.equal(total, 3 * each + 3), total
said = [None] * dist.get_world_size()
dist.all_gather_object(said, hashlib.sha256(weights).hexdigest())
assert len(said) == 3 and len(set(said)) == 1, said
print("trained, with a right sum and equal weights on 3 ranks")
dist.destroy_process_group()
"""
"""The page's train.py: trains a small model, and sums an array whose sum it knows."""
LEAST_ROUNDS = 100_000 // 352
"""Of the switch for this array, with the most values that a packet has."""


def install_command() -> str:
    """Return the command by which each machine gets the package."""
    (command,) = marked_commands(PAGE, "command of each machine")
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


def training_command() -> str:
    """Return the page's last command, which each host runs."""
    (command,) = marked_commands(PAGE, "commands of each host")
    return command


def write_training(lan: PlainLan) -> None:
    """Write the training program on each host, where the page's command looks for it."""
    for address in HOSTS:
        (lan.home(address) / "train.py").write_text(TRAIN)


def check_training(lan: PlainLan, said: Sequence[str]) -> None:
    """Check what the hosts printed, and that the switch, not the hosts, made the sum."""
    for text in said:
        assert "trained, with a right sum and equal weights on 3 ranks" in text, text
    shown = lan.run(HERE, ". switchfold-deployment/operator.env && switchfold switch show s1")
    completed = re.search(r"completed\W+(\d+)", shown)
    assert completed is not None, shown
    assert int(completed[1]) >= LEAST_ROUNDS, shown


def run_on_all(lan: PlainLan, command: str, hosts: Sequence[str] = HOSTS) -> list[str]:
    """Run a command on all hosts at the same time; return what each printed."""
    running = [lan.start(address, command) for address in hosts]
    said = [process.communicate(timeout=400)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0, 0], "\n".join(said)
    return said
