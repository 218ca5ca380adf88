# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Workers that are killed, leave and join while a job sums; switch and controller that restart."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator

import pytest

from job_workers import Workers, agree
from live_testbed import LiveTestbed
from time_bound import wait_until


@pytest.fixture(scope="module")
def testbed() -> Iterator[LiveTestbed]:
    with LiveTestbed(4, name=f"members-{os.getpid()}") as testbed:
        yield testbed


def are_attached(testbed: LiveTestbed, job: str, number: int) -> bool:
    code, out, _ = testbed.command("job", "show", job, "--json")
    if code:
        return False
    states = [worker["state"] for worker in json.loads(out)["workers"]]
    return states == ["joined"] * number


@pytest.mark.parametrize("attempt", range(2))
def test_job_goes_on_without_a_killed_worker(testbed: LiveTestbed, attempt: int) -> None:
    with Workers(testbed.made, f"kill{attempt}", 4) as workers:
        for worker in workers:
            worker.next()
        time.sleep(0.01 * attempt)  # at different places within a tensor
        workers[3].kill()
        for worker in workers[:3]:
            worker.until_members(0, 1, 2)
            worker.next()
        agree(workers[:3])


def test_worker_joins_and_leaves_while_the_others_go_on(testbed: LiveTestbed) -> None:
    job = Workers(testbed.made, "come", 3)
    with job as workers:
        newcomer = job.join(3)
        first = newcomer.next()
        assert first["members"] == [0, 1, 2, 3]
        for worker in workers:
            assert worker.until_members(0, 1, 2, 3)["tensor"] == first["tensor"]
        workers[0].leave()
        for worker in (*workers[1:], newcomer):
            worker.until_members(1, 2, 3)
        agree([*workers, newcomer])


def test_controller_restart_does_not_disturb(testbed: LiveTestbed) -> None:
    with Workers(testbed.made, "restart", 3) as workers:
        testbed.made.stop_controller()
        before = workers[0].next()["tensor"]
        for worker in workers:
            for _ in range(5):
                assert worker.next()["members"] == [0, 1, 2]
        testbed.made.start_controller()
        for worker in workers:
            while worker.next()["tensor"] < before + 20:
                pass
        # One that is not back at the controller is waited for.
        wait_until(lambda: are_attached(testbed, "restart", 3), "all workers at the controller")
        workers[2].kill()
        for worker in workers[:2]:
            worker.until_members(0, 1)
        agree(workers)


def test_workers_go_on_after_a_switch_restart(testbed: LiveTestbed) -> None:
    with Workers(testbed.made, "switch", 3) as workers:
        broken_s = time.monotonic()
        testbed.made.restart_switch("s1")
        for worker in workers:
            while (line := worker.next())["at_s"] <= broken_s + 0.5:
                pass
            assert line["members"] == [0, 1, 2]
        agree(workers)
