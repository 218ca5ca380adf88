# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The process that runs the tests of one backend, seen from the one that orders them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self, cast

from switchfold.bmv2_topos.processes.free_ports import free_port

_TESTS = Path(__file__).resolve().parents[1]
LIMIT_S = 300.0
"""Longest time for one test; PyTorch itself gives the longest as much."""


@dataclass(frozen=True)
class Result:
    """How one test ended."""

    test: str
    outcome: str
    """pass, skip or fail."""
    why: str
    seconds: float
    log: str = ""
    """What the ranks of a test that failed have printed."""


class SuiteServer:
    """Runs tests of one backend with so many ranks, between `with` and its end."""

    def __init__(self, backend: str, places: Sequence[Mapping[str, str]]) -> None:
        self.backend = backend
        self._places = list(places)
        self._folder = tempfile.TemporaryDirectory(prefix="torch-suite-")
        self._number = 0

    def __enter__(self) -> Self:
        places = Path(self._folder.name) / "places.json"
        places.write_text(json.dumps(self._places), encoding="utf-8")
        variables = {
            name: value for name, value in os.environ.items() if not name.startswith("SWITCHFOLD_")
        }
        variables.update(
            PYTHONPATH=os.pathsep.join(map(str, [_TESTS, _TESTS / "support"])),
            TORCH_DEVICE_BACKEND_AUTOLOAD="0",
            # The process forks, and may have no thread.
            OMP_NUM_THREADS="1",
            OPENBLAS_NUM_THREADS="1",
            GRPC_ENABLE_FORK_SUPPORT="0",
        )
        self._errors = (Path(self._folder.name) / "stderr").open("w+")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "torch_suite.ranks", self.backend, *self._arguments(places)],
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        self.names: list[str] = self._answer()
        """All tests that PyTorch carries."""
        return self

    def _arguments(self, places: Path) -> tuple[str, str]:
        return str(len(self._places)), str(places)

    def run(self, test: str, limit_s: float = LIMIT_S) -> Result:
        """Run one test."""
        self._number += 1
        job = f"torch-suite-{os.getpid()}-{self._number}"
        order = {"test": test, "job": job, "port": free_port(), "limit_s": limit_s}
        stdin = cast("IO[str]", self._process.stdin)
        stdin.write(json.dumps(order) + "\n")
        stdin.flush()
        return Result(**self._answer())

    def _answer(self) -> Any:
        line = cast("IO[str]", self._process.stdout).readline()
        if not line:
            self._errors.seek(0)
            raise RuntimeError(f"the tests' process ended:\n{self._errors.read()[-4000:]}")
        return json.loads(line)

    def __exit__(self, *_: object) -> None:
        cast("IO[str]", self._process.stdin).close()
        self._process.wait()
        cast("IO[str]", self._process.stdout).close()
        self._errors.close()
        self._folder.cleanup()
