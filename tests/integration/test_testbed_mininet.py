# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The real Mininet: a tree of our switches carries pings and sums, a user's program pings and TCP.

The command for a user's program is that of docs/own_p4.md.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import shutil
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from marked_processes import processes_with
from page_commands import blocks, is_shown
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

ROOT = Path(__file__).resolve().parents[2]
SUPPORT = ROOT / "tests" / "support"
PAGE = (ROOT / "docs" / "own_p4.md").read_text("utf-8")
WORKER = """
import numpy as np
from switchfold.hostlib.config import join_from_environment

with join_from_environment() as session:
    total = session.allreduce(np.full(2000, session.view.worker_id + 1, dtype=np.int32)).result()
    assert (total == 3).all(), total
    session.barrier("end")
print("summed")
"""
# Debian's mn, without what it does to the machine around the test: it raises limits of the kernel,
# and after an error it kills processes by name and deletes all logs in /tmp.
MN = """
import runpy
from mininet import clean, net

net.Mininet.inited = True
clean.cleanup = lambda: None
runpy.run_path({path!r}, run_name="__main__")
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
    needed = ("mn", "mnexec", "ifconfig", "socat", "ip", "tc")
    lacking = [name for name in needed if shutil.which(name) is None]
    return f"Mininet needs {', '.join(lacking)} on the PATH" if lacking else ""


def write_command(path: Path, text: str) -> None:
    """Write a script that the PATH is to find."""
    path.write_text(text, "utf-8")
    path.chmod(0o755)


def run_alone(name: str, command: Sequence[str], run_directory: Path) -> str:
    """Run a command with Mininet in a namespace, where nothing may stay; return what it printed."""
    commands = run_directory / "bin"
    commands.mkdir()
    if shutil.which("ping") is None:
        ping = f'exec {sys.executable} -I -S {SUPPORT}/echo_request.py "$@"'
        write_command(commands / "ping", f"#!/bin/sh\n{ping}\n")
    write_command(commands / "mn", MN.format(path=shutil.which("mn")))
    write_command(commands / "python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    write_command(commands / "sudo", '#!/bin/sh\nexec "$@"\n')
    environment = child_environment(run_directory)
    # By this path, all that runs is found, whatever else its environment has.
    environment["PATH"] = f"{commands}{os.pathsep}{environment['PATH']}"
    environment["TMPDIR"] = str(run_directory)
    # A namespace around the whole test keeps and shows what Mininet leaves behind.
    around = f"sf-test-mininet-{os.getpid()}"
    create_namespace(around)
    try:
        process = start_process(
            name, command, run_directory=run_directory, environment=environment, namespace=around
        )
        try:
            status = process.wait(timeout_s=270)
        finally:
            process.stop()
        text = process.log.read_text()
        assert status == 0, text
        assert [name for _, name in call_in_namespace(around, socket.if_nameindex)] == ["lo"], text
        wait_until(
            lambda: not processes_with(str(run_directory)),
            lambda: f"left: {processes_with(str(run_directory))}",
        )
    finally:
        remove_namespace(around)
    return text


pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(bool(missing()), reason=missing() or "-"),
    pytest.mark.parametrize(
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
    ),
]


def test_mininet_pings_and_sums_through_our_switches(
    target: Target, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run_directory = tmp_path_factory.mktemp("m")
    script = str(SUPPORT / "mininet_fabric.py")
    words = [sys.executable, script, target, str(run_directory), sys.executable, "-c", WORKER]
    text = run_alone("mininet", words, run_directory)
    told = json.loads(text.splitlines()[-1])
    assert told["lost_percent"] == 0, text
    assert told["said"] == ["summed\n"] * 2, text
    assert "rate 100Mbit" in told["shapers"]["h1"]
    assert "rate 50Mbit" in told["shapers"]["s1"]


def test_command_of_the_docs_carries_pings_and_tcp_through_a_program_of_ones_own(
    target: Target, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run_directory = tmp_path_factory.mktemp("m")
    block = next(blocks(PAGE[PAGE.index("\n### In Mininet\n") :]))
    *assignments, command = block.commands
    if target == "bmv2":
        assert "`target=bmv2`" in PAGE
        command = command.replace("--switch p4,", "--switch p4,target=bmv2,")
    sent, received = run_directory / "sent", run_directory / "received"
    sent.write_bytes(os.urandom(300_000))
    talk = run_directory / "talk"
    talk.write_text(
        f"h2 socat -u TCP-LISTEN:5001 CREATE:{received} &\n"
        f"h1 socat -u FILE:{sent} TCP:10.0.0.2:5001,retry=1000,interval=0.05\n"
        "h2 wait\n"
    )
    script = [f"set -e; cd {shlex.quote(str(ROOT))}", *assignments, f"{command} --post {talk}"]
    text = run_alone("mn", ["bash", "-c", "\n".join(script)], run_directory)
    assert block.expected
    assert not [line for line in block.expected if not is_shown(line, text)], text
    assert received.read_bytes() == sent.read_bytes(), text
    assert not list(run_directory.glob("sf-mn-*")), "the switch's folder vanishes with it"
