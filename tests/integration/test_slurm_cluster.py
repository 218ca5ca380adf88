# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/clusters/slurm.md, on a Slurm of three nodes with a deployed switch."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import slurm_cluster
from deployed_lan import HERE, HOSTS, TRAIN, check_training, deploy
from page_commands import blocks
from plain_lan import PlainLan
from slurm_cluster import SlurmCluster
from torch_ranks import require_torch

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "clusters" / "slurm.md"
MISSING = slurm_cluster.missing_programs()

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: network namespaces"),
    pytest.mark.skipif(
        bool(MISSING), reason=f"{', '.join(MISSING)} not on the PATH (Debian: slurmctld, slurmd)"
    ),
]

SUM = """
import os
import numpy as np
from switchfold import SessionOptions
from switchfold.hostlib.config import join_from_environment
with join_from_environment(SessionOptions(path="switch")) as session:
    values = np.full(100_000, session.view.worker_id + 1, np.int32)
    assert (session.allreduce(values).result() == 6).all()
    names = ("SWITCHFOLD_JOB", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "SWITCHFOLD_ADDRESS")
    print("summed:", os.environ["RANK"], *(os.environ[name] for name in names))
"""
FAILING = """
import sys
from switchfold.hostlib.config import join_from_environment
with join_from_environment() as session:
    session.barrier("joined")
    if session.view.worker_id == 1:
        sys.exit(3)
    session.barrier("never")
"""


@pytest.fixture(scope="module")
def lan() -> Iterator[PlainLan]:
    # Paths of sockets are short.
    with PlainLan(Path(tempfile.mkdtemp(prefix="sf-")), (HERE, *HOSTS)) as made:
        deploy(made)
        made.run(HERE, "switchfold certs issue switchfold-deployment/authority --role worker all")
        (made.home(HERE) / "examples").symlink_to(ROOT / "examples")
        yield made


@pytest.fixture(scope="module")
def cluster(lan: PlainLan) -> SlurmCluster:
    return SlurmCluster(lan, HERE, HOSTS)


def submit(lan: PlainLan, cluster: SlurmCluster, program: str) -> tuple[str, str, str]:
    """Submit a program as the page says; return the job's number, its state and its output."""
    authority = lan.home(HERE) / "switchfold-deployment" / "authority"
    here = {
        "10.0.0.100:": f"{HERE}:",
        "eth1": "eth0",
        "/shared/switchfold/workers": f"{authority}/issued/all",
        "--nodes 4": "--nodes 3",
        " python ": f" {sys.executable} ",
    }
    (block,) = blocks(PAGE.read_text("utf-8"))
    typed = "\n".join(block.commands)
    for written, instead in here.items():
        assert typed.count(written) == 1, (written, typed)
        typed = typed.replace(written, instead)
    (lan.home(HERE) / "train.py").write_text(program, "utf-8")
    said = cluster.run(typed)
    number = said.strip().removeprefix("Submitted batch job ")
    state = cluster.end_of(number)
    return number, state, (lan.home(HERE) / f"switchfold-{number}.out").read_text("utf-8")


def test_tasks_sum_over_the_switch(lan: PlainLan, cluster: SlurmCluster) -> None:
    number, state, output = submit(lan, cluster, SUM)
    assert state == "COMPLETED", output + cluster.said()
    assert sorted(output.splitlines()) == [
        f"summed: {rank} slurm-{number} 3 0 n1 {address}" for rank, address in enumerate(HOSTS)
    ]


def test_a_task_that_fails_ends_the_job(lan: PlainLan, cluster: SlurmCluster) -> None:
    _, state, output = submit(lan, cluster, FAILING)
    assert state == "FAILED", output + cluster.said()
    assert "task 1: Exited with exit code 3" in output


def test_tasks_train_with_pytorch(lan: PlainLan, cluster: SlurmCluster) -> None:
    require_torch()
    _, state, output = submit(lan, cluster, TRAIN)
    assert state == "COMPLETED", output + cluster.said()
    said = [line for line in output.splitlines() if line.startswith("trained")]
    assert len(said) == 3, output
    check_training(lan, said)
