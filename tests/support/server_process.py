# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A parameter server in a process of its own, which can be killed and started again."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from types import TracebackType
from typing import Self

from loopback import LOOPBACK

WAIT_S = 60.0
MODULE = ("switchfold.hostlib.parameter_server",)
COMMAND = ("switchfold.controller", "ps", "run")


class ServerProcess:
    """Listens on loopback as soon as it is made, and at the same port after each start."""

    def __init__(self, *options: str, num_workers: int, command: tuple[str, ...] = MODULE) -> None:
        self._start = [sys.executable, "-m", *command, "--address", LOOPBACK, *options]
        self._start += ["--num-workers", str(num_workers)]
        self.address = (LOOPBACK, 0)
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [*self._start, "--port", str(self.address[1])], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        said = re.fullmatch(r"listening on ([\d.]+):(\d+)\n", self.process.stdout.readline())
        assert said is not None
        self.address = (said[1], int(said[2]))

    def freeze(self) -> None:
        """Stop it, so that requests wait in the kernel until it is killed."""
        self.process.send_signal(signal.SIGSTOP)
        _, status = os.waitpid(self.process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=WAIT_S)
        assert self.process.returncode == -signal.SIGKILL

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.process.returncode is None:
            self.kill()
