# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Hosts that freeze, and processes that only stop: TCP of the kernels tells them apart."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from job_workers import Workers, agree
from switchfold.bmv2_topos import Testbed, single_switch, state
from switchfold.bmv2_topos.network.namespaces import namespace_path

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]
SCRIPT = Path(__file__).parents[1] / "support" / "tcp_controller.py"
HOST_GONE_S = 2.0


@pytest.fixture
def testbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Testbed]:
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path / "records")
    name = f"test-alive-{os.getpid()}"
    with Testbed(single_switch(4), name=name, has_bridge=True) as testbed:
        yield testbed


@pytest.fixture
def controller(testbed: Testbed, tmp_path: Path) -> Iterator[str]:
    """Run a controller on h4; return its address."""
    host = testbed.topology.hosts[3]
    namespace = testbed.namespace_of(host)
    assert namespace is not None
    (tmp_path / "controller").mkdir()
    with subprocess.Popen(
        [
            *("nsenter", f"--net={namespace_path(namespace)}", sys.executable, str(SCRIPT)),
            *(str(tmp_path / "controller"), f"{host.address}:0", str(HOST_GONE_S)),
        ],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.kill()


def test_frozen_host_is_found_though_its_worker_has_a_long_lease(
    testbed: Testbed, controller: str
) -> None:
    environment = {"SWITCHFOLD_PATH": "host", "SWITCHFOLD_CONTROLLER": controller}
    with Workers(testbed, "frozen", 3, **environment) as workers:
        testbed.cut_link("h3", "s1")
        for worker in workers[:2]:
            worker.until_members(0, 1)
            worker.next()
        agree(workers[:2])


def test_stopped_process_on_a_living_host_is_waited_for(testbed: Testbed, controller: str) -> None:
    environment = {"SWITCHFOLD_PATH": "host", "SWITCHFOLD_CONTROLLER": controller}
    with Workers(testbed, "stopped", 3, **environment) as workers:
        workers[2].stop_for(3 * HOST_GONE_S)
        back_s = time.monotonic()
        for worker in workers:
            assert worker.until_later(back_s + 0.5)["members"] == [0, 1, 2]
        agree(workers)
