# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs that start and end in a testbed, and the goodput of each in a span of time."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from benchmarks.support.processor import busy_share
from switchfold.bmv2_topos import Testbed
from switchfold.bmv2_topos.errors import TestbedError
from switchfold.bmv2_topos.processes.processes import ManagedProcess, log_tail
from switchfold.bmv2_topos.processes.tokens import job_environment
from switchfold.controller.api.operator_client import OperatorClient

WORKER = Path(__file__).with_name("contention_worker.py")
RESTING_S = 1.5
"""Slot shares are stable if they have not changed for this time."""
POLL_S = 0.1
END_TIMEOUT_S = 60.0


@dataclass
class _Job:
    name: str
    stop: Path
    begun: list[Path] = field(default_factory=list[Path])
    processes: list[ManagedProcess] = field(default_factory=list[ManagedProcess])
    results: list[Path] = field(default_factory=list[Path])
    started_s: float = field(default_factory=time.monotonic)
    stopped_s: float = float("inf")
    """When its stop file was made."""
    has_ended: bool = False


class RunningJobs:
    """Jobs of equal size, each on the next hosts of the testbed; the end of `with` stops all."""

    def __init__(
        self, testbed: Testbed, elements: int, num_workers: int, *, first_host: int = 0
    ) -> None:
        self._testbed = testbed
        self._elements = elements
        self._num_workers = num_workers
        self._first_host = first_host
        self._client = OperatorClient(testbed.controller_address)
        self._jobs: list[_Job] = []
        self._series = f"{time.monotonic_ns()}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for job in self._jobs:
            if not job.has_ended:
                for process in job.processes:
                    process.stop()

    def start_until(
        self, number: int, *, slots: int, name: str = "job", is_idle: bool = False
    ) -> None:
        """Start jobs up to `number`; with `slots` 0 the controller chooses the slots of each."""
        while len(self._jobs) < number:
            self._start(f"{name}{len(self._jobs) + 1}", slots, is_idle=is_idle)

    def stop_until(self, number: int) -> None:
        """End the last jobs until `number` are left; TestbedError if a worker fails."""
        ending = [job for job in self._jobs[number:] if not job.has_ended]
        for job in ending:
            job.stopped_s = time.monotonic()
            job.stop.touch()
        for job in ending:
            for process in job.processes:
                if process.wait(timeout_s=END_TIMEOUT_S) != 0:
                    raise TestbedError(f"a worker failed:\n{log_tail(process.log)}")
            job.has_ended = True

    def settle(self, timeout_s: float) -> bool:
        """Wait until all jobs sum and slot shares are stable; return False after `timeout_s`.

        Raises TestbedError if a worker fails.
        """
        running = {job.name for job in self._jobs if not job.has_ended}
        deadline_s = time.monotonic() + timeout_s
        before: object = None
        since_s = time.monotonic()
        while time.monotonic() < deadline_s:
            self._check()
            jobs = [job for job in self._client.list_jobs() if job.name in running]
            now = sorted((job.name, job.state, job.path, job.slot_count) for job in jobs)
            if now != before:
                before, since_s = now, time.monotonic()
            has_begun = all(path.exists() for job in self._jobs for path in job.begun)
            if has_begun and time.monotonic() - since_s >= RESTING_S:
                return True
            time.sleep(POLL_S)
        return False

    def span(self, seconds: float) -> dict[str, float]:
        """Let the jobs run; return begin and end of the span, and the processor's busy share."""
        began_s = time.monotonic()
        busy = busy_share(seconds)
        self._check()
        return {"began_s": began_s, "ended_s": time.monotonic(), "busy_share": busy}

    def rates(self, began_s: float, ended_s: float) -> list[dict[str, Any]]:
        """Return the goodput of each job that ran during a whole span; all jobs must have ended.

        Of a sum that begins or ends outside the span, the part within the span counts.
        """
        found: list[dict[str, Any]] = []
        for job in self._jobs:
            if job.started_s > began_s or job.stopped_s < ended_s:
                continue
            sums = json.loads(job.results[0].read_text())["sums"]
            ends_s = [job.started_s, *(each["time_s"] for each in sums)]
            done = np.interp([began_s, ended_s], ends_s, range(len(ends_s)))
            before = [each for each in sums if each["time_s"] <= ended_s]
            last = before[-1] if before else sums[0]
            found.append(
                {
                    "job": job.name,
                    "slots": last["slots"],
                    "is_on_switch": last["is_on_switch"],
                    "sums": float(done[1] - done[0]),
                    "bits_per_s": 32
                    * self._elements
                    * float(done[1] - done[0])
                    / (ended_s - began_s),
                }
            )
        return found

    def first_round_trip_s(self) -> float:
        """Return the RTT that the first job measured before others started."""
        return min(json.loads(path.read_text())["round_trip_s"] for path in self._jobs[0].results)

    def _start(self, name: str, slots: int, *, is_idle: bool) -> None:
        directory = self._testbed.run_directory
        common = {"OMP_NUM_THREADS": "1", **job_environment()}
        job = _Job(name, directory / f"{name}-{self._series}.stop")
        for worker_id in range(self._num_workers):
            number = self._first_host + len(self._jobs) * self._num_workers + worker_id
            endpoint = self._testbed.endpoint(number)
            result = directory / f"{name}-{self._series}-{worker_id}.json"
            job.results.append(result)
            job.begun.append(result.with_suffix(".begun"))
            job.processes.append(
                self._testbed.start(
                    f"{name}-{self._series}-{worker_id}",
                    [
                        *(sys.executable, str(WORKER), "--elements", str(self._elements)),
                        *("--slots", str(slots), "--stop", str(job.stop)),
                        *("--begun", str(job.begun[-1])),
                        *("--result", str(result), *(["--idle"] if is_idle else [])),
                    ],
                    node=endpoint.host,
                    environment={
                        **endpoint.environment(name),
                        "SWITCHFOLD_WORKER_ID": str(worker_id),
                        "SWITCHFOLD_NUM_WORKERS": str(self._num_workers),
                        **common,
                    },
                )
            )
        self._jobs.append(job)

    def _check(self) -> None:
        for job in self._jobs:
            for process in job.processes:
                if not job.has_ended and process.popen.poll() is not None:
                    raise TestbedError(
                        f"a worker of {job.name} ended too early:\n{log_tail(process.log)}"
                    )
