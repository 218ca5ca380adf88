# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A testbed whose ranks train again and again, while its links lose what the command says."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, NoReturn, Self, final

from ....bmv2_topos import Testbed, single_switch
from ....bmv2_topos.errors import ProcessTimeoutError
from ....bmv2_topos.impairment.impaired_links import ImpairedDirection
from ....bmv2_topos.processes.processes import ManagedProcess, log_tail
from ....bmv2_topos.processes.rendezvous import rank_variables
from ....bmv2_topos.processes.tokens import job_environment
from ....softswitch.switch.impairments import Impairments
from .errors import ToleranceRunError
from .outcome import TrainingOutcome

JOB: Final = "tolerance"
_START_TIMEOUT_S: Final = 240.0
_END_TIMEOUT_S: Final = 60.0
_LAST_WORDS_S: Final = 5.0
_POLL_S: Final = 0.2
_ROUNDING: Final = 1e-9
_THREADS: Final = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    """Trainings of one model."""

    source: str
    """A built-in model, or a script's function."""
    rates: Sequence[float]
    """Shares of contributions that sums may lack, and that links lose; rising."""
    seeds: Sequence[int]
    fill: str = "mean"
    epochs: int | None = None
    """None: as many as the model's own."""
    timeout_s: float = 600.0
    """Of one training."""


@final
class ToleranceRig:
    """Ranks in namespaces around one switch; started once, for all trainings.

    Each link loses packets from its rank to the switch. Results are not lost: they would be sent
    again in any case. Needs root.
    """

    def __init__(self, num_ranks: int) -> None:
        """Make nothing yet."""
        self._testbed = Testbed(single_switch(num_ranks))
        self._processes: list[ManagedProcess] = []
        self._connections: list[socket.socket] = []
        """Of ranks in their order."""
        self._num_trainings = 0

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
                self._end_ranks()
        finally:
            self._close()

    def run(self, plan: TrainingPlan) -> Iterator[TrainingOutcome]:
        """Train with each rate and seed, and return what came of each training when it ends.

        Raises ToleranceRunError with the log of a rank that ended, or if ranks ended with different
        weights, or a sum lacked more than was tolerated.
        """
        for rate in plan.rates:
            for seed in plan.seeds:
                yield self._train(plan, rate, seed)

    def _train(self, plan: TrainingPlan, rate: float, seed: int) -> TrainingOutcome:
        self._num_trainings += 1
        where = f"{plan.source}, tolerance {rate:g}, seed {seed}"
        request = {
            "verb": "prepare",
            "source": plan.source,
            "rate": rate,
            "seed": seed,
            "fill": plan.fill,
            "epochs": plan.epochs,
        }
        self._ask(request, plan.timeout_s, where)
        if rate:
            self._impair(rate)
        said = self._ask({"verb": "train"}, plan.timeout_s, where)
        cleared = self._testbed.clear_impairments() if rate else []
        if len({each["weights"] for each in said}) > 1:
            raise ToleranceRunError(f"{where}: ranks ended with different weights")
        first = said[0]
        if first["most_missing"] > rate + _ROUNDING:
            raise ToleranceRunError(
                f"{where}: a sum lacked {first['most_missing']:.4f}, more than was tolerated"
            )
        return TrainingOutcome(
            rate=rate,
            seed=seed,
            metrics=tuple(first["metrics"]),
            missing=first["missing"],
            most_missing=first["most_missing"],
            dropped=_dropped_share(cleared),
        )

    def _impair(self, rate: float) -> None:
        """Let each rank's link lose packets to the switch, others in each training."""
        topology = self._testbed.topology
        settings = Impairments(loss=rate, seed=self._num_trainings)
        for host in topology.hosts:
            link = topology.link_of(host)
            self._testbed.impaired_links.impair(link, settings, sender=host.name)

    def _start(self) -> None:
        """Start the ranks, and wait until each has connected."""
        testbed = self._testbed
        path = testbed.run_directory / "ranks.sock"
        endpoints = [testbed.endpoint(host.worker_id) for host in testbed.topology.hosts]
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
                        [sys.executable, "-m", f"{__package__}.rank", str(path)],
                        node=endpoint.host,
                        environment=variables,
                    )
                )
            self._accept(listener)

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

    def _ask(
        self, request: Mapping[str, Any], timeout_s: float, where: str
    ) -> list[dict[str, Any]]:
        """Return the answers of all ranks to a request, in their order."""
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

    def _end_ranks(self) -> None:
        """Let the ranks leave their job."""
        for connection in self._connections:
            connection.shutdown(socket.SHUT_WR)
        for process in self._processes:
            process.wait(timeout_s=_END_TIMEOUT_S)

    def _close(self) -> None:
        for connection in self._connections:
            connection.close()
        self._testbed.down()


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


def _dropped_share(directions: Sequence[ImpairedDirection]) -> float:
    seen = sum(each.counters["seen"] for each in directions)
    return sum(each.dropped for each in directions) / seen if seen else 0.0
