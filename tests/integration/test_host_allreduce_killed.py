# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Members of a host allreduce: all name one that is killed, and all wait for one that stops."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from loopback import LOOPBACK

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tests" / "support" / "host_allreduce_worker.py"
SILENCE_S = 1.0


class WorkerProcess:
    def __init__(self, worker_id: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(SCRIPT), str(worker_id), str(SILENCE_S), LOOPBACK],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        )

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def hear(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=60)


@contextmanager
def workers(count: int) -> Generator[list[WorkerProcess]]:
    with ExitStack() as stack:
        processes = [WorkerProcess(i) for i in range(count)]
        for process in processes:
            stack.callback(process.end)
        ports = json.dumps([int(process.hear()) for process in processes])
        for process in processes:
            process.say(ports)
        for process in processes:
            assert process.hear() == "reduced"
        yield processes


def test_survivors_name_the_member() -> None:
    with workers(4) as processes:
        processes[2].process.kill()
        verdicts = [json.loads(processes[i].hear()) for i in (0, 1, 3)]
        assert verdicts == [{"error": "MemberLostError", "worker_id": 2}] * 3


def test_stopped_member_is_waited_for() -> None:
    """The others wait for longer than its host may be silent: its kernel answers."""
    with workers(4) as processes:
        os.kill(processes[2].process.pid, signal.SIGSTOP)
        time.sleep(SILENCE_S + 3.0)
        os.kill(processes[2].process.pid, signal.SIGCONT)
        for process in processes:
            process.say("")
        for process in processes:
            assert process.hear() == "reduced"
