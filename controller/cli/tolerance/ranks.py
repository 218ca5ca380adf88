# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Ranks on hosts of a testbed, each of which does what it is asked for on a socket."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Final, NoReturn, Self, final

from ....bmv2_topos import Host, Testbed
from ....bmv2_topos.errors import ProcessTimeoutError
from ....bmv2_topos.processes.processes import ManagedProcess, log_tail
from ....bmv2_topos.processes.rendezvous import rank_variables
from ....bmv2_topos.processes.tokens import job_environment
from .errors import ToleranceRunError

JOB: Final = "tolerance"
RANK_MODULE: Final = f"{__package__}.rank"
_START_TIMEOUT_S: Final = 240.0
_END_TIMEOUT_S: Final = 60.0
_LAST_WORDS_S: Final = 5.0
_POLL_S: Final = 0.2
_THREADS: Final = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@final
class TrainingRanks:
    """One process of torch.distributed on each of some hosts of a testbed, in a `with` block.

    The testbed is up as long. At the end of a block without an error, the ranks leave their job.
    """

    def __init__(
        self,
        testbed: Testbed,
        hosts: Sequence[Host],
        module: str = RANK_MODULE,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start nothing yet. `module` takes the path of the socket, as rank.py does.

        `environment` has further variables.
        """
        self._testbed = testbed
        self._hosts = hosts
        self._module = module
        self._environment = environment or {}
        self._processes: list[ManagedProcess] = []
        self._connections: list[socket.socket] = []
        """Of ranks in their order."""

    def __enter__(self) -> Self:
        self._testbed.up()
        try:
            self._start()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if exc_type is None:
                self._end()
        finally:
            self._close()

    def _start(self) -> None:
        """Start the ranks, and wait until each has connected."""
        testbed = self._testbed
        path = testbed.run_directory / "ranks.sock"
        endpoints = [testbed.endpoint(host.worker_id) for host in self._hosts]
        namespaces = [testbed.namespace_of(each.host) for each in endpoints]
        ranks = rank_variables(endpoints, namespaces)
        common = {**job_environment(), **_THREADS, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(str(path))
            listener.listen(len(endpoints))
            for endpoint, of_rank in zip(endpoints, ranks, strict=True):
                variables = {**endpoint.environment(JOB), **of_rank, **common}
                self._processes.append(
                    testbed.start(
                        f"{JOB}-{endpoint.host.name}",
                        [sys.executable, "-m", self._module, str(path)],
                        node=endpoint.host,
                        environment={**variables, **self._environment},
                    )
                )
            self._accept(listener)

    def ask(self, request: Mapping[str, Any], timeout_s: float, where: str) -> list[dict[str, Any]]:
        """Return the answers of all ranks to a request, in their order.

        Raises ToleranceRunError, which says `where`, with the log of a rank that ended.
        """
        text = json.dumps(request).encode() + b"\n"
        deadline_s = time.monotonic() + timeout_s
        try:
            for connection in self._connections:
                connection.sendall(text)
        except OSError:
            self._fail(where)
        answers: dict[int, dict[str, Any]] = {}
        while len(answers) < len(self._connections):
            waiting = [each for rank, each in enumerate(self._connections) if rank not in answers]
            readable, _, _ = select.select(waiting, [], [], max(0.0, deadline_s - time.monotonic()))
            if not readable:
                raise ToleranceRunError(
                    f"{where}: ranks {sorted(set(range(len(self._connections))) - set(answers))}"
                    f" did not end within {timeout_s:g} s; train for fewer --epochs, or allow more"
                    " with --timeout"
                )
            for connection in readable:
                line = _read_line(connection)
                if not line:
                    self._fail(where)
                rank, answer = self._connections.index(connection), json.loads(line)
                if "error" in answer:  # the others fail because of it, and later
                    raise ToleranceRunError(f"{where}: rank {rank}: {answer['error']}")
                answers[rank] = answer
        return [answers[rank] for rank in range(len(self._connections))]

    def _end(self) -> None:
        """Let the ranks leave their job."""
        for connection in self._connections:
            connection.shutdown(socket.SHUT_WR)
        for process in self._processes:
            process.wait(timeout_s=_END_TIMEOUT_S)

    def _close(self) -> None:
        """Close the connections and take the testbed down, and the processes with it."""
        for connection in self._connections:
            connection.close()
        self._testbed.down()

    def _accept(self, listener: socket.socket) -> None:
        """Take one connection of each rank; the rank is its first line."""
        by_rank: dict[int, socket.socket] = {}
        deadline_s = time.monotonic() + _START_TIMEOUT_S
        while len(by_rank) < len(self._processes):
            listener.settimeout(_POLL_S)
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                self._check_alive("start")
                if time.monotonic() > deadline_s:
                    raise ToleranceRunError(
                        f"{len(by_rank)} of {len(self._processes)} ranks started within"
                        f" {_START_TIMEOUT_S:g} s; the machine may be too busy"
                    ) from None
                continue
            self._connections.append(connection)
            connection.settimeout(_START_TIMEOUT_S)
            by_rank[json.loads(_read_line(connection))["rank"]] = connection
        self._connections = [by_rank[rank] for rank in sorted(by_rank)]

    def _check_alive(self, where: str) -> None:
        if any(process.popen.poll() is not None for process in self._processes):
            self._fail(where)

    def _fail(self, where: str) -> NoReturn:
        """Raise the error of the rank that failed first; the others fail because of it."""
        for process in self._processes:
            with contextlib.suppress(ProcessTimeoutError):
                process.wait(timeout_s=_LAST_WORDS_S)
        failed = [each for each in self._processes if each.popen.poll() not in {None, 0}]
        failed.sort(key=lambda each: each.log.stat().st_mtime)
        texts = [f"{each.record.name}:\n{log_tail(each.log)}" for each in failed[:1]]
        raise ToleranceRunError("\n".join([f"{where}: {len(failed)} ranks failed", *texts]))


def _read_line(connection: socket.socket) -> bytes:
    """Return a rank's next line, b"" if it has ended; a rank sends one line for each request."""
    line = bytearray()
    while not line.endswith(b"\n"):
        try:
            part = connection.recv(1 << 16)
        except ConnectionError:
            part = b""
        if not part:
            return b""
        line += part
    return bytes(line)
