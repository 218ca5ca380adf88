# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Workers that are killed, leave and join while a job sums; switch and controller that restart."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from live_testbed import LiveTestbed

WORKER = Path(__file__).parents[1] / "membership_worker.py"
SIZE = 100_000
DEADLINE_S = 60.0


class WorkerProcess:
    """A worker in a process of its own, and the lines that it has written."""

    def __init__(
        self, testbed: LiveTestbed, worker_id: int, num_workers: int, job: str, **extra: str
    ) -> None:
        self.worker_id = worker_id
        variables = testbed.made.endpoint(worker_id).environment(job)
        variables["SWITCHFOLD_NUM_WORKERS"] = str(num_workers)
        self.process = subprocess.Popen(
            [sys.executable, str(WORKER), str(SIZE), "100000"],
            env={**os.environ, **variables, **extra},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.lines: list[dict[str, Any]] = []
        self._queue: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def next(self, limit_s: float = DEADLINE_S) -> dict[str, Any]:
        """Return the next line, checked: the sum of what the members of its layout gave."""
        line = json.loads(self._queue.get(timeout=limit_s))
        weights = sum(worker_id + 1 for worker_id in line["members"])
        assert line["is_even"], line
        assert line["value"] == weights * (line["tensor"] + 1), line
        if self.lines:
            assert line["tensor"] == self.lines[-1]["tensor"] + 1, "none is lost, none comes twice"
        self.lines.append(line)
        return line

    def until_members(self, *members: int, limit_s: float = DEADLINE_S) -> dict[str, Any]:
        """Read on to the first tensor of a layout of these members."""
        end_s = time.monotonic() + limit_s
        while (line := self.next(max(0.1, end_s - time.monotonic())))["members"] != [*members]:
            pass
        return line

    def leave(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        assert self.process.wait(DEADLINE_S) == 0

    def kill(self) -> float:
        """Kill the process; return when, by the monotonic clock of all processes."""
        at_s = time.monotonic()
        self.process.kill()
        self.process.wait(DEADLINE_S)
        return at_s

    def close(self) -> None:
        if self.process.poll() is None:
            self.kill()
        self._reader.join(DEADLINE_S)
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._queue.put(line)


class Workers:
    """The workers of one job; those that still run are killed in the end."""

    def __init__(self, testbed: LiveTestbed, job: str, num_workers: int) -> None:
        self._testbed, self._job, self._num_workers = testbed, job, num_workers
        self.all = [WorkerProcess(testbed, i, num_workers, job) for i in range(num_workers)]

    def __enter__(self) -> list[WorkerProcess]:
        try:
            for worker in self.all:
                worker.next()
        except BaseException:
            self.__exit__()
            raise
        return list(self.all)

    def __exit__(self, *_: object) -> None:
        for worker in self.all:
            worker.close()
        self._testbed.command("job", "stop", self._job)

    def join(self, worker_id: int) -> WorkerProcess:
        """Add a worker to the running job."""
        worker = WorkerProcess(self._testbed, worker_id, 1, self._job, IS_JOINING="1")
        self.all.append(worker)
        return worker


@pytest.fixture(scope="module")
def testbed() -> Iterator[LiveTestbed]:
    with LiveTestbed(4, name="members") as testbed:
        yield testbed


def agree(workers: list[WorkerProcess]) -> None:
    """Check that all have seen the same members and value for each tensor that all have."""
    seen: dict[int, tuple[list[int], int]] = {}
    for worker in workers:
        for line in worker.lines:
            result = (line["members"], line["value"])
            assert seen.setdefault(line["tensor"], result) == result, line["tensor"]


@pytest.mark.parametrize("attempt", range(2))
def test_killed_worker_is_done_without(testbed: LiveTestbed, attempt: int) -> None:
    with Workers(testbed, f"kill{attempt}", 4) as workers:
        for worker in workers:
            worker.next()
        time.sleep(0.01 * attempt)  # at different places within a tensor
        workers[3].kill()
        for worker in workers[:3]:
            worker.until_members(0, 1, 2)
            worker.next()
        agree(workers[:3])


def test_worker_joins_and_leaves_while_the_others_go_on(testbed: LiveTestbed) -> None:
    job = Workers(testbed, "come", 3)
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
    with Workers(testbed, "restart", 3) as workers:
        testbed.made.stop_controller()
        before = workers[0].next()["tensor"]
        for worker in workers:
            for _ in range(5):
                assert worker.next()["members"] == [0, 1, 2]
        testbed.made.start_controller()
        for worker in workers:
            while worker.next()["tensor"] < before + 20:
                pass
        workers[2].kill()
        for worker in workers[:2]:
            worker.until_members(0, 1)
        agree(workers)


def test_workers_go_on_after_a_switch_restart(testbed: LiveTestbed) -> None:
    with Workers(testbed, "switch", 3) as workers:
        broken_s = time.monotonic()
        testbed.made.restart_switch("s1")
        for worker in workers:
            while (line := worker.next())["at_s"] <= broken_s + 0.5:
                pass
            assert line["members"] == [0, 1, 2]
        agree(workers)
