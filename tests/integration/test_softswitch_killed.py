# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A switch killed at any moment leaves nothing that keeps the next one from starting."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from switchfold.bmv2_topos.processes.free_ports import free_port

PROGRAMS = Path(__file__).parents[1] / "pipeline" / "programs"
READY_S = 240.0
AWAITED_S = (0.1, 0.5, 0.9, 1.3, READY_S)
"""How long each switch lives at most; the last one is killed once it is ready."""


def run_and_kill(options: list[str], environment: dict[str, str], awaited_s: float) -> bool:
    """Start a switch, kill it when it is ready or the time is over; return whether it was ready."""
    reader, writer = os.pipe()
    command = [
        sys.executable,
        "-m",
        "switchfold.softswitch",
        "run",
        *options,
        "--ready-fd",
        str(writer),
    ]
    with (
        os.fdopen(reader, "rb") as ready,
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(writer,),
            env=environment,
        ) as process,
    ):
        os.close(writer)
        readable = select.select([ready], [], [], awaited_s)[0]
        is_ready = bool(readable) and os.read(ready.fileno(), 6) == b"ready\n"
        process.send_signal(signal.SIGKILL)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL, errors.decode()
    return is_ready


@pytest.mark.timeout(900)
def test_switch_killed_at_any_moment_starts_again(tmp_path: Path) -> None:
    cache, temporary = tmp_path / "cache", tmp_path / "temporary"
    temporary.mkdir()
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "TMPDIR": str(temporary)}
    grpc, udp = free_port(socket.SOCK_STREAM), free_port(socket.SOCK_DGRAM)
    options = [
        str(PROGRAMS / "tables.json"),
        f"--p4info={PROGRAMS / 'tables.p4info.txtpb'}",
        f"--grpc=127.0.0.1:{grpc}",
        f"--port=1=udp:127.0.0.1:{udp}",
    ]
    outcomes = [run_and_kill(options, environment, awaited_s) for awaited_s in AWAITED_S]
    assert outcomes[-1], "the last switch did not start"
    assert run_and_kill(options, environment, READY_S), "not ready again at once"
    left = [path.name for path in (cache / "softswitch").iterdir() if path.is_dir()]
    assert left == [], "folders of builds are left"
    assert [path.name for path in temporary.iterdir() if not path.name.startswith("cc")] == []


@pytest.mark.parametrize("text", ["pkg_info {", "tables { preamble { id: 1 } }"])
def test_p4info_that_does_not_match_is_reported(text: str, tmp_path: Path) -> None:
    info = tmp_path / "other.p4info.txtpb"
    info.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "switchfold.softswitch", "run", str(PROGRAMS / "tables.json"),
         f"--p4info={info}", "--grpc=127.0.0.1:0"],
        capture_output=True, text=True, check=False, timeout=READY_S,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout
    assert "Traceback" not in done.stderr
    assert "Error: " in done.stderr, done.stderr


def test_sigterm_while_the_switch_comes_up_ends_it_in_order() -> None:
    """Threads of numpy exist already, and the signal would end them with the whole process."""
    script = """
import os, signal, sys
from switchfold.softswitch.commands import run
run._bring_up = lambda *_: os.kill(os.getpid(), signal.SIGTERM)
run.run.main(["--port", "1=mem"])
"""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "4"}
    command = [sys.executable, "-c", script]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=READY_S
    )
    assert done.returncode == 0, done.stderr
