# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A link of a running job becomes slower and fast again: nobody is told, and grants follow."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabric_job import LIMIT_S, FabricJob
from switchfold.bmv2_topos import Testbed, single_switch, state
from switchfold.hostlib.parameter_server.tables import TensorDefinition
from time_bound import wait_until

RATE = 20_000_000
NUM_VALUES = 1 << 17
"""0.2 s at 20 Mbit/s."""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
pytestmark = [pytest.mark.root, needs_root, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def testbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Testbed]:
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path)
    topology = single_switch(3, rate_bits_per_s=RATE)
    with Testbed(topology, name=f"test-rates-{os.getpid()}") as testbed:
        yield testbed


def push_until(job: FabricJob, is_so: Callable[[dict[str, Any]], bool], what: str) -> None:
    """Let all workers push, until what the controller shows is as wanted."""
    update = np.ones(NUM_VALUES, np.float32)

    def step() -> bool:
        for pushed in [worker.push(update) for worker in job.workers]:
            assert pushed.result(LIMIT_S).is_committed
        return is_so(job.report())

    wait_until(step, what, LIMIT_S, interval_s=0.0)


def granted(report: dict[str, Any], worker: int) -> float:
    """Return the rate of a worker's last granted update as a share of the link's."""
    return report["workers"][worker]["granted_bits_per_s"] / RATE


def up(report: dict[str, Any], host: str) -> float:
    """Return what a host's link is estimated to carry, as a share of its rate."""
    found = {each["host"]: each["up_bits_per_s"] for each in report["rates"]}
    return found.get(host, RATE) / RATE


def test_grants_follow_a_link_that_is_halved_and_restored(testbed: Testbed) -> None:
    link = testbed.topology.link_named("h1-s1")
    with FabricJob(testbed, TensorDefinition(name="w", num_values=NUM_VALUES)) as job:
        push_until(job, lambda report: granted(report, 0) > 0.9, "grants at the link's rate")
        testbed.link_rates.set(link, RATE // 4)
        push_until(job, lambda report: up(report, "h1") < 0.5, "a smaller estimate")
        push_until(job, lambda report: 0 < granted(report, 0) < 0.5, "slower grants")
        testbed.link_rates.restore()
        push_until(job, lambda report: up(report, "h1") == 1, "the whole rate again")
        push_until(job, lambda report: granted(report, 0) > 0.9, "grants at that rate")
        counts = [worker.counters for worker in job.workers]
        assert all(not each["failed_pushes"] for each in counts), counts
