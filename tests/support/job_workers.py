# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Worker processes of a job that tests kill, stop and cut off, and the lines that they write."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from switchfold.bmv2_topos import Testbed
from switchfold.bmv2_topos.network.namespaces import namespace_path

WORKER = Path(__file__).parent / "membership_worker.py"
DEADLINE_S = 120.0


class WorkerProcess:
    """A worker in a process of its own, and the lines that it has written."""

    def __init__(
        self, testbed: Testbed, worker_id: int, num_workers: int, job: str, **extra: str
    ) -> None:
        self.worker_id = worker_id
        endpoint = testbed.endpoint(worker_id)
        variables = endpoint.environment(job)
        variables["SWITCHFOLD_NUM_WORKERS"] = str(num_workers)
        namespace = testbed.namespace_of(endpoint.host)
        inside = [] if namespace is None else ["nsenter", f"--net={namespace_path(namespace)}"]
        self.process = subprocess.Popen(
            [*inside, sys.executable, str(WORKER)],
            env={**os.environ, **variables, **extra},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.lines: list[dict[str, Any]] = []
        self._queue: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._is_held = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def next(self, limit_s: float = DEADLINE_S) -> dict[str, Any]:
        """Return the next line, checked: the sum of what the members of its view gave."""
        line = json.loads(self._queue.get(timeout=limit_s))
        assert "error" not in line, line
        weights = sum(worker_id + 1 for worker_id in line["members"])
        assert line["is_even"], line
        assert line["value"] == weights * (line["tensor"] + 1), line
        if self.lines:
            assert line["tensor"] == self.lines[-1]["tensor"] + 1, "none is lost, none comes twice"
        self.lines.append(line)
        return line

    def until_members(self, *members: int, limit_s: float = DEADLINE_S) -> dict[str, Any]:
        """Read on to the first tensor of a view of these members."""
        end_s = time.monotonic() + limit_s
        while (line := self.next(max(0.1, end_s - time.monotonic())))["members"] != [*members]:
            pass
        return line

    def until_later(self, at_s: float) -> dict[str, Any]:
        """Read on to the first tensor that ended after a time of the monotonic clock."""
        while (line := self.next())["at_s"] <= at_s:
            pass
        return line

    def until_error(self) -> str:
        """Read on to the error that ends the worker; return its kind and text."""
        while "error" not in (line := json.loads(self._queue.get(timeout=DEADLINE_S))):
            pass
        return f"{line['kind']}: {line['error']}"

    def leave(self) -> None:
        """Let the worker leave its job, and wait for its end."""
        self._order("leave")
        assert self.process.wait(DEADLINE_S) == 0

    def hold(self, seconds: float) -> None:
        """Let the worker make a call that keeps its interpreter lock; return when it does."""
        self._is_held.clear()
        self._order(f"hold {seconds}")
        assert self._is_held.wait(DEADLINE_S)

    def stop_for(self, seconds: float) -> None:
        """Stop the process for a time."""
        os.kill(self.process.pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(self.process.pid, signal.SIGCONT)

    def _order(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

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
            if "held_from_s" in line:
                self._is_held.set()
            else:
                self._queue.put(line)


class Workers:
    """The workers of one job; those that still run are killed in the end."""

    def __init__(
        self,
        testbed: Testbed,
        job: str,
        num_workers: int,
        own: Mapping[int, Mapping[str, str]] | None = None,
        **extra: str,
    ) -> None:
        """Variables of all workers, and `own` ones of some."""
        self._testbed, self._job = testbed, job
        self._extra = extra
        own = own or {}
        self.all = [
            WorkerProcess(testbed, i, num_workers, job, **{**extra, **own.get(i, {})})
            for i in range(num_workers)
        ]

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

    def join(self, worker_id: int) -> WorkerProcess:
        """Add a worker to the running job."""
        extra = {**self._extra, "SWITCHFOLD_JOINING": "1"}
        worker = WorkerProcess(self._testbed, worker_id, 1, self._job, **extra)
        self.all.append(worker)
        return worker


def agree(workers: list[WorkerProcess]) -> None:
    """Check that all have seen the same members and value for each tensor that all have."""
    seen: dict[int, tuple[list[int], int]] = {}
    for worker in workers:
        for line in worker.lines:
            result = (line["members"], line["value"])
            assert seen.setdefault(line["tensor"], result) == result, line["tensor"]
