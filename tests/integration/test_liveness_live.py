# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Workers that live but do not run: their job waits for them, with switches and among hosts."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from job_workers import Workers, agree
from live_testbed import LiveTestbed

LEASE_S = 1.0
"""The controller's lease: that of a worker that asks for none."""
AWAY_S = {"switch": 2.5, "host": 6.0}
"""Longer than that, and than members of a host allreduce wait for a sign of life."""


@pytest.fixture(scope="module")
def testbed() -> Iterator[LiveTestbed]:
    with LiveTestbed(
        4, name=f"alive-{os.getpid()}", controller_options=("--lease", str(LEASE_S))
    ) as testbed:
        yield testbed


@pytest.mark.parametrize("how", ["calling", "stopped"])
@pytest.mark.parametrize("path", ["switch", "host"])
def test_worker_that_does_not_run_is_waited_for(testbed: LiveTestbed, path: str, how: str) -> None:
    with Workers(testbed.made, f"{path}-{how}", 3, SWITCHFOLD_PATH=path) as workers:
        if how == "stopped":
            workers[0].stop_for(AWAY_S[path])
        else:
            workers[0].hold(AWAY_S[path])
        last = max(worker.next()["tensor"] for worker in workers)
        for worker in workers:
            while (line := worker.next())["tensor"] < last + 20:
                assert line["members"] == [0, 1, 2]
        agree(workers)


def test_change_waits_for_a_worker_that_does_not_run(testbed: LiveTestbed) -> None:
    """Another worker is lost; the rest goes on together with the one that did not run."""
    with Workers(testbed.made, "change", 4) as workers:
        workers[0].hold(AWAY_S["switch"])
        workers[3].kill()
        for worker in workers[:3]:
            worker.until_members(0, 1, 2)
            worker.next()
        agree(workers[:3])


def test_worker_that_never_runs_again_is_lost_when_its_lease_is_over(testbed: LiveTestbed) -> None:
    with Workers(testbed.made, "hung", 3, {2: {"LEASE_S": "15"}}) as workers:
        workers[2].process.send_signal(signal.SIGSTOP)
        for worker in workers[:2]:
            worker.until_members(0, 1)
            worker.next()
        agree(workers[:2])
