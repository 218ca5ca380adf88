# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A drill: workers push to parameter servers with hot rows while processes are killed at random."""

from __future__ import annotations

import contextlib
import enum
import io
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from hot_drill_worker import STACKS, STOP, VALUES, PushCounts
from switchfold.bmv2_topos import Testbed, Topology
from switchfold.bmv2_topos.network.namespaces import namespace_path
from switchfold.bmv2_topos.processes.daemons import Target
from switchfold.bmv2_topos.processes.processes import log_tail
from switchfold.controller.__main__ import run as run_command
from time_bound import wait_until

JOB = "drill"
WORKER = Path(__file__).with_name("hot_drill_worker.py")
DEADLINE_S = 120.0
PORT = 7000


@dataclass(frozen=True, kw_only=True)
class PushLoad:
    """How much each worker pushes."""

    most_open: int = 8
    """Pushes without a receipt."""
    pushes_per_s: float = float("inf")
    """At most; infinite: as fast as receipts come."""


class Victim(enum.StrEnum):
    """What is killed."""

    WORKER = "worker"
    SERVER = "server"
    SWITCH = "switch"
    CONTROLLER = "controller"


class HotDrill:
    """Workers, servers with a log, a switch and a controller, on hosts of their own."""

    def __init__(  # noqa: PLR0913 - what drills differ in
        self,
        testbed: Testbed,
        folder: Path,
        *,
        num_workers: int,
        num_servers: int,
        hot_keys: int,
        logs: Path | None = None,
        load: PushLoad | None = None,
    ) -> None:
        """`testbed` has a host for each worker, then one for each server.

        The servers' logs are in `logs`, or in `folder`.
        """
        load = load or PushLoad()
        self._testbed, self._folder, self._logs = testbed, folder, logs or folder
        self.num_workers, self._num_servers = num_workers, num_servers
        self._environment = {
            "HOT_KEYS": str(hot_keys),
            "MOST_OPEN": str(load.most_open),
            "PUSHES_PER_S": str(load.pushes_per_s),
            "OMP_NUM_THREADS": "1",
        }
        self._stack = contextlib.ExitStack()
        self._workers: list[subprocess.Popen[str]] = []
        self._servers: list[subprocess.Popen[str]] = []
        self.counts = [PushCounts(folder, worker) for worker in range(num_workers)]
        self.deaths = [0] * num_workers
        """By worker, how often it was killed."""

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.callback(self._end)
            self._servers += [self._start_server(shard) for shard in range(self._num_servers)]
            for server in self._servers:
                _await_line(server, "listening on ")
            self._workers += [self._start_worker(w) for w in range(self.num_workers)]
            for worker in self._workers:
                _await_line(worker, "ready")
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    def _end(self) -> None:
        for process in (*self._workers, *self._servers):
            _kill(process)

    @property
    def server_pids(self) -> list[int]:
        """The process of each server; it is another one after a kill."""
        return [server.pid for server in self._servers]

    def kill(self, victim: Victim, number: int = 0) -> None:
        """Kill a process, and start another one in its place."""
        if victim is Victim.SWITCH:
            self._testbed.restart_switch("s1")
        elif victim is Victim.CONTROLLER:
            self._testbed.restart_controller()
        elif victim is Victim.SERVER:
            _kill(self._servers[number])
            self._servers[number] = self._start_server(number)
            _await_line(self._servers[number], "listening on ")
        else:
            _kill(self._workers[number])
            self.deaths[number] += 1
            self._workers[number] = self._start_worker(number, SWITCHFOLD_JOINING="1")
            _await_line(self._workers[number], "ready")

    def num_of(self, victim: Victim) -> int:
        """Return how many processes of a kind there are."""
        return {Victim.WORKER: self.num_workers, Victim.SERVER: self._num_servers}.get(victim, 1)

    def await_progress(self, num_pushes: int = 1) -> None:
        """Wait until each worker has had so many more receipts."""
        goals = [counts.num_pushes + num_pushes for counts in self.counts]

        def is_there() -> bool:
            for number, worker in enumerate(self._workers):
                assert worker.poll() is None, f"worker {number} has ended"
            return all(c.num_pushes >= goal for c, goal in zip(self.counts, goals, strict=True))

        wait_until(
            is_there,
            lambda: f"pushes {goals}, but {self._state()}",
            DEADLINE_S,
        )

    def _state(self) -> str:
        """Return what is known of a drill that stands still; workers write their stacks."""
        for worker in self._workers:
            worker.send_signal(STACKS)
        lines = [f"{[counts.num_pushes for counts in self.counts]}, {self._outcomes()}"]
        for name, pid, is_alive in self._testbed.status().processes:
            log = log_tail(self._testbed.run_directory / f"{name}.log")
            lines.append(f"{name}, pid {pid}, {'lives' if is_alive else 'HAS ENDED'}:\n{log}")
        return "\n".join(lines)

    def await_hot_rows(self) -> None:
        """Wait until the switch adds pushes up and answers reads, more than it does now."""
        before = self._outcomes()

        def is_there() -> bool:
            now = self._outcomes()
            sums = sum(now[name] - before[name] for name in ("completed", "flushed"))
            return sums > 0 and now["values_read"] > before["values_read"]

        wait_until(
            is_there,
            lambda: f"sums and reads of hot rows after {before}, but {self._state()}",
            DEADLINE_S,
            interval_s=0.3,
        )

    def _outcomes(self) -> Counter[str]:
        """Return how often the switch had each outcome in the job's packets."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            arguments = ["job", "show", JOB, "--json"]
            run_command([*arguments, "--controller", self._testbed.controller_address])
        counts = json.loads(out.getvalue())["counts"]
        return Counter({name: count["packets"] for name, count in counts.items()})

    def check(self) -> None:
        """Let the workers end, and compare what servers have with what was pushed."""
        (self._folder / STOP).touch()
        for worker in self._workers:
            _await_line(worker, "done")
            assert worker.wait(DEADLINE_S) == 0
        reader = self._start(0, [str(WORKER), str(self._folder), *self._addresses], READ_ROWS="1")
        assert reader.wait(DEADLINE_S) == 0
        _kill(reader)
        values = np.load(self._folder / VALUES)
        assert (values[:, self.num_workers :] == 0).all()
        for number, counts in enumerate(self.counts):
            counted = values[:, number].astype(np.int64)
            assert counts.confirmed.any()
            assert (counted >= counts.confirmed).all(), f"a push of worker {number} was lost"
            assert (counted <= counts.asked).all(), f"a push of worker {number} counted twice"
            # What is asked for and not confirmed was refused by a server whose disk was full, or
            # was under way when its worker was killed.
            assert (
                self.deaths[number]
                or counts.num_refused
                or (counts.asked == counts.confirmed).all()
            )

    @property
    def _addresses(self) -> list[str]:
        hosts = [
            self._testbed.topology.hosts[self.num_workers + s] for s in range(self._num_servers)
        ]
        return [f"{host.address}:{PORT}" for host in hosts]

    def _start_worker(self, number: int, **extra: str) -> subprocess.Popen[str]:
        return self._start(number, [str(WORKER), str(self._folder), *self._addresses], **extra)

    def _start_server(self, shard: int) -> subprocess.Popen[str]:
        host = self._testbed.topology.hosts[self.num_workers + shard]
        options: Mapping[str, str] = {
            "--address": host.address,
            "--port": str(PORT),
            "--num-workers": str(self.num_workers),
            "--shard": str(shard),
            "--log": str(self._logs / f"log{shard}"),
            "--controller": self._testbed.controller_address,
            "--hot-job": JOB,
            "--hot-address": host.address,
            "--hot-refresh": "1",
            "--credentials": str(self._testbed.server_credentials.folder),
        }
        words = [word for option in options.items() for word in option]
        return self._start(
            self.num_workers + shard, ["-m", "switchfold.controller", "ps", "run", *words]
        )

    def _start(self, number: int, words: list[str], **extra: str) -> subprocess.Popen[str]:
        endpoint = self._testbed.endpoint(number)
        namespace = self._testbed.namespace_of(endpoint.host)
        assert namespace is not None
        variables = {**endpoint.environment(JOB), **self._environment, **extra}
        variables["SWITCHFOLD_NUM_WORKERS"] = str(self.num_workers)
        return subprocess.Popen(
            ["nsenter", f"--net={namespace_path(namespace)}", sys.executable, *words],
            env={**os.environ, **variables},
            stdout=subprocess.PIPE,
            text=True,
        )


def drill_testbed(topology: Topology, name: str, target: Target = "softswitch") -> Testbed:
    """Return a testbed whose controller waits for switches that come back."""
    return Testbed(
        topology,
        name=name,
        target=target,
        variant="narrow",
        controller_options=("--no-route", "600", "--lease", "60"),
    )


def _await_line(process: subprocess.Popen[str], begin: str) -> None:
    """Wait for a line; a process that ends closes its output, which fails the test."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith(begin), f"{line!r} instead of {begin!r}"


def _kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate(timeout=DEADLINE_S)
