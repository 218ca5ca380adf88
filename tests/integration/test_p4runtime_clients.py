# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Clients in processes of their own: a bare gRPC one, and p4runtime-shell from its own venv."""

import subprocess
import sys
import venv
from pathlib import Path

import numpy as np
import pytest

from switchfold.softswitch.p4runtime.service.serve import serve
from switchfold.softswitch.switch.switch import Switch

HERE = Path(__file__).parent
PROGRAMS = HERE.parent / "pipeline" / "programs"
DEADLINE_S = 60.0
FRAME = bytes(6) + bytes([0, 0, 0, 0, 0, 5]) + b"\x12\x34" + bytes(50)
SHELL = "p4runtime-shell==0.0.6"


def _serve_part(switch: Switch, word: str) -> None:
    """Do what a line of the client requests."""
    frames, lengths = np.zeros((1, 128), np.uint8), np.zeros(1, np.int32)
    if word == "expect":
        assert switch.ports.mem_port(2).receive(frames, lengths, DEADLINE_S) == 1
        assert bytes(frames[0, : lengths[0]]) == bytes(range(64))
    elif word == "send":
        frames[0, : len(FRAME)] = np.frombuffer(FRAME, np.uint8)
        lengths[0] = len(FRAME)
        assert switch.ports.mem_port(1).send(frames, lengths) == 1


def _drive(python: Path, script: str) -> None:
    """Run a client against a switch and do the test's part; the client must succeed."""
    with Switch() as switch:
        for number in (1, 2, 3):
            switch.ports.add(number, "mem")
        switch.start()
        with serve(switch, address="127.0.0.1:0") as server:
            artefacts = [PROGRAMS / "control_plane.p4info.txtpb", PROGRAMS / "control_plane.json"]
            command = [python, HERE / "p4runtime_clients" / script, server.address, *artefacts]
            client = subprocess.Popen(
                [str(item) for item in command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            words: list[str] = []
            with client:
                assert client.stdin is not None
                assert client.stdout is not None
                assert client.stderr is not None
                for line in client.stdout:
                    word = line.strip()
                    if word in {"expect", "send"}:
                        _serve_part(switch, word)
                        client.stdin.write("done\n")
                        client.stdin.flush()
                    words.append(word)
                errors = client.stderr.read()
            assert client.returncode == 0, errors
            assert words[-1] == "ok"


def test_a_bare_grpc_client_in_its_own_process() -> None:
    _drive(Path(sys.executable), "bare_client.py")


@pytest.fixture(scope="module")
def shell_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of an environment with p4runtime-shell."""
    folder = tmp_path_factory.mktemp("p4runtime_shell")
    venv.create(folder)
    python = folder / "bin" / "python"
    # Our pip installs there: one of its own would take seconds to make.
    pip = [sys.executable, "-m", "pip", "--python", str(python)]
    # Nor need it compile what the client does not import.
    install = [*pip, "install", "--quiet", "--no-compile", "--retries", "1", SHELL]
    done = subprocess.run(install, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        pytest.skip(f"pip cannot install {SHELL}: {done.stderr.strip().splitlines()[-1]}")
    return python


@pytest.mark.slow
def test_p4runtime_shell_in_its_own_environment(shell_python: Path) -> None:
    _drive(shell_python, "shell_client.py")
