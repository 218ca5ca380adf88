# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold ps run`: a server whose tables outlive SIGKILL; and `ps reshard`."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np

from server_process import COMMAND, WAIT_S, ServerProcess
from switchfold.controller.cli.latency.run_files import load_run
from switchfold.hostlib.parameter_server import ClientOptions
from switchfold.hostlib.parameter_server.tables import TableClient, TableDefinition

PATIENT = dict.fromkeys(("timeout_s", "reconnect_s"), WAIT_S)


def test_tables_outlive_a_killed_server(tmp_path: Path) -> None:
    definition = TableDefinition(name="counts", width=2)
    keys = np.array([-3, 1 << 40], np.int64)
    log = ("--log", str(tmp_path / "log"))
    for number in range(3):
        with (
            ServerProcess(*log, num_workers=1, command=COMMAND) as server,
            TableClient([server.address], ClientOptions(worker_id=0, **PATIENT)) as client,
        ):
            table = client.define(definition)
            held = table.pull(keys).result(WAIT_S)
            assert (held.values == number).all()
            assert (held.updates == number).all()
            table.push(keys, np.ones((2, 2), np.float32)).result(WAIT_S)
            server.kill()


def test_a_server_that_is_stopped_leaves_its_latency_log(tmp_path: Path) -> None:
    run, keys = tmp_path / "run", np.array([-3, 1 << 40], np.int64)
    options = ("--latency-log", str(run))
    with ServerProcess(*options, num_workers=1, command=COMMAND) as server:
        with TableClient(
            [server.address], ClientOptions(worker_id=0, latency_log=run, **PATIENT)
        ) as client:
            table = client.define(TableDefinition(name="counts", width=2))
            for _ in range(3):
                table.push(keys, np.ones((2, 2), np.float32)).result(WAIT_S)
        server.process.send_signal(signal.SIGTERM)
        server.process.communicate(timeout=WAIT_S)
        assert server.process.returncode == 0
    found = load_run(run)
    assert found.requests["num_keys"].tolist() == [2, 2, 2]
    assert found.arrivals["worker"].tolist() == [0, 0, 0]
    assert dict(zip(found.updates["key"], found.updates["updates"], strict=True)) == {
        -3: 3,
        1 << 40: 3,
    }


def test_directories_that_cannot_be_moved_end_with_an_error(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "switchfold.controller", "ps", "reshard"]
    paths = ["--from", str(tmp_path / "none"), "--to", str(tmp_path / "new")]
    done = subprocess.run(
        [*command, *paths], capture_output=True, text=True, timeout=WAIT_S, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: {tmp_path}/none has no log of a server")
    done = subprocess.run(
        [*command, "--help"], capture_output=True, text=True, timeout=WAIT_S, check=True
    )
    assert done.stdout.startswith("usage: switchfold ps reshard ")


def test_help_names_the_command() -> None:
    command = [sys.executable, "-m", "switchfold.controller", "ps", "run", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=True)
    assert done.stdout.startswith("usage: switchfold ps run ")
    assert "--log DIRECTORY" in done.stdout
