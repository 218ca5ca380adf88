# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Topologies in the real Mininet: a tree of our switches carries its pings and sums."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import socket
import sys
from pathlib import Path

import pytest

from switchfold.bmv2_topos.config import child_environment
from switchfold.bmv2_topos.mininet_module import DEBIAN_PACKAGES
from switchfold.bmv2_topos.network.namespaces import (
    call_in_namespace,
    create_namespace,
    remove_namespace,
)
from switchfold.bmv2_topos.processes.daemons import Target
from switchfold.bmv2_topos.processes.processes import start_process
from time_bound import wait_until

SUPPORT = Path(__file__).resolve().parents[1] / "support"
WORKER = """
import numpy as np
from switchfold.hostlib.config import join_from_environment

with join_from_environment() as session:
    total = session.allreduce(np.full(2000, session.view.worker_id + 1, dtype=np.int32)).result()
    assert (total == 3).all(), total
    session.barrier("end")
print("summed")
"""


def missing() -> str:
    """Return why Mininet cannot run here, or nothing."""
    if os.geteuid() != 0:
        return "Mininet needs root"
    if (
        importlib.util.find_spec("mininet") is None
        and not Path(DEBIAN_PACKAGES, "mininet").is_dir()
    ):
        return "Mininet is not installed (apt-get install mininet)"
    lacking = [name for name in ("mnexec", "ifconfig", "ip", "tc") if shutil.which(name) is None]
    return f"Mininet needs {', '.join(lacking)} on the PATH" if lacking else ""


def processes_of(run_directory: Path) -> list[str]:
    """Return the commands of all processes that belong to a run directory."""
    mark = str(run_directory).encode()
    found: list[str] = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_text())
        except (FileNotFoundError, PermissionError, ProcessLookupError):
            continue
    return found


@pytest.mark.root
@pytest.mark.skipif(bool(missing()), reason=missing() or "-")
@pytest.mark.parametrize(
    "target",
    [
        "softswitch",
        pytest.param(
            "bmv2",
            marks=[
                pytest.mark.bmv2,
                pytest.mark.skipif(
                    shutil.which("simple_switch_grpc") is None,
                    reason="simple_switch_grpc is not on the PATH",
                ),
            ],
        ),
    ],
)
def test_mininet_pings_and_sums_through_our_switches(
    target: Target, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run_directory = tmp_path_factory.mktemp("m")
    commands = run_directory / "bin"
    commands.mkdir()
    if shutil.which("ping") is None:
        ping = commands / "ping"
        ping.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {SUPPORT}/echo_request.py "$@"\n')
        ping.chmod(0o755)
    environment = child_environment(run_directory)
    environment["PATH"] = f"{commands}{os.pathsep}{environment['PATH']}"
    # A namespace around the whole test keeps and shows what Mininet leaves behind.
    around = f"sf-test-mininet-{os.getpid()}"
    create_namespace(around)
    try:
        fabric = start_process(
            "mininet",
            [
                *(sys.executable, str(SUPPORT / "mininet_fabric.py"), target, str(run_directory)),
                *(sys.executable, "-c", WORKER),
            ],
            run_directory=run_directory,
            environment=environment,
            namespace=around,
        )
        try:
            status = fabric.wait(timeout_s=270)
        finally:
            fabric.stop()
        text = fabric.log.read_text()
        assert status == 0, text
        told = json.loads(text.splitlines()[-1])
        assert told["lost_percent"] == 0, text
        assert told["said"] == ["summed\n"] * 2, text
        assert "rate 100Mbit" in told["shapers"]["h1"]
        assert "rate 50Mbit" in told["shapers"]["s1"]
        assert [name for _, name in call_in_namespace(around, socket.if_nameindex)] == ["lo"]
        wait_until(
            lambda: not processes_of(run_directory), lambda: f"left: {processes_of(run_directory)}"
        )
    finally:
        remove_namespace(around)
