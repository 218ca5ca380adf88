# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Processes that a nursery has forked: what they write, whether they live, how they end."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from switchfold.bmv2_topos.config import child_environment

TESTS = Path(__file__).parents[1]


class Nursery:
    """Starts the process that forks the others; all end with it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._environment = child_environment(folder)
        paths = [str(TESTS), str(TESTS / "support"), self._environment["PYTHONPATH"]]
        self._environment["PYTHONPATH"] = os.pathsep.join(paths)
        # numpy starts threads when it is imported, and a process with threads must not fork.
        self._environment["OPENBLAS_NUM_THREADS"] = "1"
        self._num_children = 0

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "kill_points.nursery"],
            env=self._environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def start(self, role: str, *arguments: str, environment: Mapping[str, str]) -> Child:
        """Fork a process of a role."""
        self._num_children += 1
        output = self._folder / f"{role.replace(' ', '-')}-{self._num_children}.out"
        pid = self._ask(
            role=role,
            arguments=arguments,
            output=str(output),
            environment={**self._environment, **environment},
        )
        return Child(self, pid, output, os.pidfd_open(pid))

    def reap(self, pid: int) -> int:
        """Wait for the end of a process; return its exit status, -N for signal N."""
        return self._ask(reap=pid)

    def _ask(self, **order: object) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@dataclass(eq=False)
class Child:
    """One of them, until it is reaped."""

    nursery: Nursery
    pid: int
    output: Path
    descriptor: int
    position: int = 0
    """Bytes of the output that have been read."""
    status: int | None = None

    def is_alive(self) -> bool:
        """Whether it has not ended; reaps one that has."""
        if self.status is None and select.select([self.descriptor], [], [], 0)[0]:
            self._reap()
        return self.status is None

    def kill(self) -> None:
        """End it at once."""
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            self._reap()

    def terminate(self) -> None:
        """Ask it to end."""
        if self.is_alive():
            os.kill(self.pid, signal.SIGTERM)

    def new_lines(self) -> Sequence[dict[str, Any]]:
        """Return the lines of JSON that it has written since the last time."""
        if not self.output.exists():
            return []
        with self.output.open("rb") as file:
            file.seek(self.position)
            data = file.read()
        end = data.rfind(b"\n") + 1
        self.position += end
        return [json.loads(line) for line in data[:end].splitlines() if line.startswith(b"{")]

    def last_words(self) -> str:
        """Return its exit status, and the last line that it has written."""
        lines = self.output.read_text(errors="replace").splitlines()
        return f"status {self.status}: {lines[-1] if lines else 'no word'}"

    def _reap(self) -> None:
        self.status = self.nursery.reap(self.pid)
        os.close(self.descriptor)
