# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold ps run`: a server whose tables outlive SIGKILL."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from server_process import COMMAND, WAIT_S, ServerProcess
from switchfold.hostlib.parameter_server import ClientOptions
from switchfold.hostlib.parameter_server.tables import TableClient, TableDefinition


def test_tables_outlive_a_killed_server(tmp_path: Path) -> None:
    definition = TableDefinition(name="counts", width=2)
    keys = np.array([-3, 1 << 40], np.int64)
    log = ("--log", str(tmp_path / "log"))
    for number in range(3):
        with (
            ServerProcess(*log, num_workers=1, command=COMMAND) as server,
            TableClient([server.address], ClientOptions(worker_id=0)) as client,
        ):
            table = client.define(definition)
            held = table.pull(keys).result(WAIT_S)
            assert (held.values == number).all()
            assert (held.updates == number).all()
            table.push(keys, np.ones((2, 2), np.float32)).result(WAIT_S)
            server.kill()


def test_help_names_the_command() -> None:
    command = [sys.executable, "-m", "switchfold.controller", "ps", "run", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=True)
    assert done.stdout.startswith("usage: switchfold ps run ")
    assert "--log DIRECTORY" in done.stdout
