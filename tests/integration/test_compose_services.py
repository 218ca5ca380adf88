# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The commands of docker-compose.yml, each in a network namespace, become healthy and sum."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from compose_containers import ComposeContainers, read_compose
from time_bound import wait_until

pytestmark = [
    pytest.mark.root,
    pytest.mark.timeout(1200),  # of several processes, one after the other
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]
NUM_WORKERS = 2
WORKERS = {f"container{n}": [f"switchfold-worker-{n}.switchfold_data"] for n in (1, 2)}
"""Host names, and the names that Docker's name service has for the replicas."""
SERVERS = {"softswitch": ["switch"], "controller": [], "parameter-server": []}


def test_services_become_healthy_and_workers_sum(tmp_path: Path) -> None:
    compose = read_compose({"NUM_WORKERS": str(NUM_WORKERS)})
    with ComposeContainers(compose, tmp_path) as containers:
        containers.name(SERVERS | WORKERS)
        # depends_on: the controller waits for the switch, and workers for both servers.
        for service in SERVERS:
            started = containers.start(service, service)
            wait_until(
                lambda started=started: containers.is_healthy(started),
                lambda started=started: started.log.read_text(),
                300,
            )
        workers = [containers.start("worker", host_name) for host_name in WORKERS]
        for number, worker in enumerate(workers):
            status = worker.process.wait(timeout=300)
            output = worker.log.read_text()
            assert status == 0, output
            assert f"worker {number} of {NUM_WORKERS}: every element is 3\n" in output
            words = NUM_WORKERS * 300 * 64  # steps and batch of examples/sparse_table.py
            assert f"worker {number}: {words} words" in output
