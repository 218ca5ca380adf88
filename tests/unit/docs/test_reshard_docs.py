# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""docs/parameter_server.md moves tables to another number of servers as it says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np

from switchfold.hostlib.parameter_server.rows import Adagrad, Normal, Sgd
from switchfold.hostlib.parameter_server.tables import (
    DenseTensor,
    TableDefinition,
    TensorDefinition,
)
from table_cluster import WAIT_S, TableCluster

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "parameter_server.md").read_text("utf-8")
OLD, NEW = "/srv/old", "/srv/new"
USERS = TableDefinition(
    name="users",
    width=16,
    optimiser=Adagrad(learning_rate=0.1),
    initialiser=Normal(deviation=0.01),
)
LAYER = TensorDefinition(name="fc6", num_values=100_000, optimiser=Sgd(learning_rate=0.1))
KEYS = np.arange(1000)


class Worker:
    """A worker of the page's example."""

    def __init__(self, folder: Path, num_servers: int) -> None:
        self._cluster = TableCluster(1, num_servers, folder)
        client = self._cluster.client(0)
        self.users, self.layer = client.define(USERS), DenseTensor(client, LAYER)

    def push(self) -> None:
        self.users.push(KEYS, np.ones((KEYS.size, 16), np.float32)).result(WAIT_S)
        self.layer.push(np.ones(LAYER.num_values, np.float32)).result(WAIT_S)

    def found(self) -> tuple[bytes, bytes]:
        values = self.users.pull(KEYS).result(WAIT_S).values
        return values.tobytes(), self.layer.pull().result(WAIT_S).tobytes()

    def close(self) -> None:
        self._cluster.__exit__(None, None, None)


def test_the_example_moves_the_tables(tmp_path: Path) -> None:
    section = PAGE.split("## Another number of servers\n")[1].split("\n## ")[0]
    found = re.search(r"```console\n\$ switchfold (ps reshard .*?)\n```", section, re.DOTALL)
    assert found is not None
    lines = found[1].replace("\\\n", "").splitlines()
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    command = lines[0].replace(OLD, str(tmp_path / "old")).replace(NEW, str(tmp_path / "new"))
    before = Worker(tmp_path / "old", 2)
    before.push()
    values = before.found()
    before.close()
    done = subprocess.run(
        [sys.executable, "-m", "switchfold.controller", *shlex.split(command)],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout.splitlines() == lines[1:]
    after = Worker(tmp_path / "new", 3)
    assert after.found() == values
    after.close()
