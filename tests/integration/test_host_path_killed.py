# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Worker processes on the host path that are killed or stopped: all survivors name them in time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tests" / "host_path_worker.py"
SILENCE_S = 1.0


class WorkerProcess:
    def __init__(self, worker_id: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(SCRIPT), str(worker_id), str(SILENCE_S)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
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
        self.process.communicate(timeout=10)


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


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_survivors_name_the_member(sent: signal.Signals) -> None:
    with workers(4) as processes:
        os.kill(processes[2].process.pid, sent)
        verdicts = [json.loads(processes[i].hear()) for i in (0, 1, 3)]
        assert verdicts == [{"error": "MemberLostError", "worker_id": 2}] * 3
