# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A testbed without privileges for tests that break it: sessions, commands, doctor's verdicts."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from switchfold.bmv2_topos import Testbed, Topology
from switchfold.bmv2_topos.processes.processes import read_records
from switchfold.bmv2_topos.topology.topology import single_switch
from switchfold.controller.__main__ import run as run_command
from switchfold.hostlib.config import join_from_environment
from switchfold.hostlib.options import SessionOptions
from switchfold.hostlib.session import Session
from time_bound import wait_until

DEADLINE_S = 120.0


class LiveTestbed:
    """Narrow softswitches with hosts on loopback UDP ports, and a controller.

    `hosts` is a topology, or the number of hosts around one switch.
    """

    def __init__(self, hosts: int | Topology, **options: Any) -> None:
        topology = single_switch(hosts) if isinstance(hosts, int) else hosts
        settings: dict[str, Any] = {"mode": "udp", "target": "softswitch", "variant": "narrow"}
        self.made = Testbed(topology, **{**settings, **options})

    def __enter__(self) -> LiveTestbed:
        self.made.up()
        return self

    def __exit__(self, *_: object) -> None:
        self.made.down()

    def join(self, worker_id: int, num_workers: int, job: str = "train", **options: Any) -> Session:
        """Join a job from a host, as a worker process would."""
        variables = self.made.endpoint(worker_id).environment(job)
        variables["SWITCHFOLD_NUM_WORKERS"] = str(num_workers)
        if not options.pop("has_peers", True):
            variables["SWITCHFOLD_PEER_ADDRESS"] = ""
        return join_from_environment(SessionOptions(**options), variables=variables)

    @contextmanager
    def sessions(
        self, num_workers: int, job: str = "train", **options: Any
    ) -> Generator[list[Session]]:
        """Join all workers of a job; closed in the end."""
        with contextlib.ExitStack() as stack, ThreadPoolExecutor(num_workers) as pool:
            joins = [
                pool.submit(self.join, worker_id, num_workers, job, **options)
                for worker_id in range(num_workers)
            ]
            yield [stack.enter_context(join.result(DEADLINE_S)) for join in joins]

    def kill(self, name: str) -> None:
        """Kill a process of this testbed: "s1" or "controller"."""
        (process,) = (p for p in read_records(self.made.run_directory) if p.name == name)
        os.kill(process.pid, signal.SIGKILL)
        wait_until(lambda: not process.is_leader_alive(), f"end of {name}")

    def command(self, *arguments: str) -> tuple[int, str, str]:
        """Run a `switchfold` command on this testbed; return exit code, stdout, stderr."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run_command([*arguments, "--controller", self.made.controller_address])
        return code, out.getvalue(), err.getvalue()

    def show(self, *arguments: str) -> dict[str, Any]:
        """Return what a command shows as JSON."""
        code, out, err = self.command(*arguments, "--json")
        assert code == 0, err
        return json.loads(out)

    def doctor(self, *arguments: str) -> tuple[int, dict[str, tuple[str, str]]]:
        """Return doctor's exit code, and per check its verdict and text with remedy."""
        code, out, err = self.command("doctor", "--json", *arguments)
        assert not err
        report = json.loads(out)
        has_failed = any(check["status"] == "fail" for check in report["checks"])
        assert code == int(has_failed) == int(report["status"] == "fail")
        assert all(check["remedy"] for check in report["checks"] if check["status"] != "ok")
        return code, {
            check["name"]: (check["status"], f"{check['text']} | {check['remedy']}")
            for check in report["checks"]
        }
