# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A process with one parameter server with a log, and tests' hold on it: killed at any moment."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

from loopback import LOOPBACK
from switchfold.hostlib.parameter_server import ParameterServer, ServerOptions


class ServerProcess:
    """A server that listens; a limit of file sizes makes its disk full."""

    def __init__(self, log: Path, num_workers: int, port: int = 0, file_bytes: int = 0) -> None:
        self._log, self._num_workers = log, num_workers
        self._process = self._start(port, file_bytes)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the server did not start"
        self.port = int(line)

    def _start(self, port: int, file_bytes: int) -> subprocess.Popen[str]:
        arguments = map(str, (self._log, self._num_workers, LOOPBACK, port, file_bytes))
        return subprocess.Popen(
            [sys.executable, __file__, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    @property
    def address(self) -> tuple[str, int]:
        return LOOPBACK, self.port

    def kill(self) -> None:
        self._process.kill()
        assert self._end() == -9

    def restart(self) -> None:
        """Start another process with the same log and port."""
        self.__init__(self._log, self._num_workers, self.port)

    def freeze(self) -> None:
        """Stop all threads; `send_signal` alone returns before they stand still."""
        self._process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def lift_limit(self) -> None:
        """Give the disk space again."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("lift\n")
        process.stdin.flush()
        assert process.stdout.readline() == "lifted\n"

    def _end(self) -> int:
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()
        return self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        if self._process.returncode is None:
            self.kill()


def main(log: Path, num_workers: int, address: str, port: int, file_bytes: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    if file_bytes:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, hard))
    options = ServerOptions(num_workers=num_workers, log=log)
    with ParameterServer(options, address=address, port=port) as server:
        print(server.port, flush=True)
        for _ in sys.stdin:  # until it is killed, or the test's process is
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            print("lifted", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
