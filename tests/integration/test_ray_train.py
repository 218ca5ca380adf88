# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""docs/clusters/ray.md, where Ray is installed: one machine, a worker that dies, a cluster."""

from __future__ import annotations

import importlib.util
import os
import re
import secrets
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from deployed_lan import HERE, HOSTS, deploy
from marked_processes import processes_with
from plain_lan import PlainLan
from switchfold.bmv2_topos import Testbed, single_switch
from switchfold.bmv2_topos.processes.rendezvous import PLACES_FILE
from time_bound import wait_until
from torch_ranks import require_torch

require_torch()

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        importlib.util.find_spec("ray") is None, reason="Ray is not here: make deps-ray"
    ),
]
ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "clusters" / "ray_train.py"
RESTART = ROOT / "tests" / "support" / "ray_restart.py"
PATHS = os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
RAY = shlex.quote(str(Path(sys.executable).with_name("ray")))
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEFAULT_OBJECT_STORE_MAX_MEMORY_BYTES": "100000000",  # else a third of the machine's
    "RAY_OVERRIDE_RESOURCES": '{"CPU": 3}',  # a core for each rank, however many there are
    # Other tests run on this machine: it may be slow, and its memory is not Ray's to watch.
    "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": "300",
    "RAY_gcs_server_port_wait_time_s": "300",
    "RAY_worker_register_timeout_seconds": "300",
    "RAY_memory_monitor_refresh_ms": "0",
    "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "0",  # a node that ends has nothing left to do
    "PYTHONPATH": PATHS,
}


def await_end_of_ray(folder: Path) -> None:
    """Wait for Ray's own processes, which end by themselves after the program that they serve."""
    mark = f"RAY_TMPDIR={folder}"
    wait_until(lambda: not processes_with(mark), lambda: "\n".join(processes_with(mark)), 300)


@pytest.fixture
def short() -> Iterator[Path]:
    """Return a folder for Ray's files: the paths of its sockets must be short."""
    with tempfile.TemporaryDirectory(prefix="sf-") as folder:
        yield Path(folder)
        await_end_of_ray(Path(folder))


def train_on_a_testbed(folder: Path, short: Path, script: Path, *options: str) -> str:
    """Run a program of Ray with two workers; return what it prints."""
    kept = {name: value for name, value in os.environ.items() if "SWITCHFOLD" not in name}
    with Testbed(single_switch(2), mode="udp") as testbed:
        own = {
            "SWITCHFOLD_PLACES": str(testbed.run_directory / PLACES_FILE),
            "RAY_ADDRESS": "local",  # no cluster that somebody has started here
            "RAY_TMPDIR": str(short),
            "HOME": str(folder),
        }
        done = subprocess.run(
            [sys.executable, str(script), "--workers", "2", *options],
            env={**kept, **SETTINGS, **own},
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=700,
        )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_workers_of_ray_train_one_model_over_the_switch(tmp_path: Path, short: Path) -> None:
    said = train_on_a_testbed(tmp_path, short, EXAMPLE, "--steps", "20")
    assert "backend switchfold: loss " in said
    assert "2 workers on 1 nodes have the same model" in said


def test_group_that_lost_a_worker_starts_again_from_its_checkpoint(
    tmp_path: Path, short: Path
) -> None:
    train_on_a_testbed(tmp_path, short, RESTART, "--folder", str(tmp_path))
    results = {(tmp_path / f"result{rank}").read_text("utf-8") for rank in range(2)}
    (result,) = results
    assert result.startswith("4 switchfold ")


@pytest.fixture
def lan() -> Iterator[PlainLan]:
    # Paths of sockets are short.
    with PlainLan(Path(tempfile.mkdtemp(prefix="sf-")), (HERE, *HOSTS)) as made:
        deploy(made)
        yield made
        await_end_of_ray(made.folder)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: network namespaces")
def test_nodes_of_a_cluster_train_over_the_switch(lan: PlainLan) -> None:
    """Nodes start one after another: all have the files of one machine."""
    head = f"{HOSTS[0]}:6379"
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    settings = {**SETTINGS, **token, "RAY_TMPDIR": str(lan.folder)}
    variables = " ".join(f"{name}={shlex.quote(text)}" for name, text in settings.items())
    begin = f"export {variables}; . ~/switchfold/worker.env"
    with ExitStack() as stack:
        for number, host in enumerate(HOSTS):
            role = f"--address {head}" if number else "--head"
            node = lan.start(
                host,
                f"{begin} && exec {RAY} start --block --node-ip-address {host} {role}",
            )
            stack.callback(node.communicate, timeout=240)
            # It ends its processes, which have sessions of their own.
            stack.callback(node.terminate)
            assert node.stdout is not None
            printed: list[str] = []
            while not any("Ray runtime started" in line for line in printed):
                printed.append(node.stdout.readline())
                assert printed[-1], "".join(printed)
        command = f"{sys.executable} {EXAMPLE} --workers 3 --steps 20 --one-per-node"
        said = lan.run(HOSTS[0], f"{begin} && RAY_ADDRESS={head} {command}", timeout_s=700)
    assert "backend switchfold: loss " in said
    assert "3 workers on 3 nodes have the same model" in said
    shown = lan.run(HERE, ". switchfold-deployment/operator.env && switchfold switch show s1")
    completed = re.search(r"completed\W+(\d+)", shown)
    assert completed is not None, shown
    assert int(completed[1]) > 0
