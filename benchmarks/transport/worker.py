# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One worker of the transport benchmark: sums by whichever contender its rig names, and verifies.

It connects to the rig, which sends a line of JSON for each step. "prepare" makes the worker's
tensor and what its sum must be; "go" times the sum; the answer says when it began and ended.
"""

from __future__ import annotations

import itertools
import json
import os
import socket
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from benchmarks.transport import tcp_server
from benchmarks.transport.among_hosts import join_among_hosts
from benchmarks.transport.contenders import AddingPlace
from benchmarks.transport.dropping import DroppedChunks
from switchfold.hostlib import LossTolerance, Session, SessionOptions, StragglerPolicy
from switchfold.hostlib.config import join_from_environment
from switchfold.hostlib.errors import HostlibError
from switchfold.hostlib.loss_tolerance import Delivery
from switchfold.hostlib.options import PathOption
from switchfold.hostlib.parameter_server import ClientOptions, ParameterClient
from switchfold.hostlib.peers import PeerServer

Floats = NDArray[np.float32]
_PEER_PORT: Final = 29_700
"""Of the first contender among hosts."""
_KEY: Final = "tensor"
_SHIFT: Final = 1009
"""Elements between the same number in one round and in the next."""
_PAIR_BYTES: Final = 64 << 10
"""Of the TCP server: it answers one part of the tensor while others arrive."""
_COUNTS: Final = (
    "value_packets_sent",
    "value_packets_retransmitted",
    "value_packets_flushed",
)


@dataclass(frozen=True, kw_only=True)
class SessionPlan:
    """A session that each worker joins."""

    job: str
    token: str
    """Of the job."""
    tolerance: float | None
    """The job's; None: it tolerates nothing."""
    controller: str
    switch: str = ""
    """Name of the softswitch that adds; "": the controller finds the worker's switch."""
    path: PathOption = "auto"


@dataclass(frozen=True, kw_only=True)
class WorkerPlan:
    """What the workers of one fabric do; they read it from a file."""

    socket: str
    """Where the rig listens."""
    workers: tuple[str, ...]
    """Addresses, by worker number."""
    server: str
    """Address of the TCP server; "": there is none."""
    elements: int
    timeout_s: float
    """Of a sum."""
    sessions: tuple[SessionPlan, ...]
    contenders: dict[str, str]
    """By contender, the job that sums; "": the tensor goes by TCP."""
    places: dict[str, AddingPlace]
    """By contender, who adds."""
    tolerances: dict[str, float | None]
    """By contender, what its sums may lack."""

    @property
    def among_hosts(self) -> list[str]:
        """The contenders whose workers add among themselves."""
        return [name for name, place in self.places.items() if place == "hosts"]

    def write(self, path: Path) -> None:
        """Write the plan as JSON."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read what `write` wrote."""
        raw: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        raw = {field.name: raw[field.name] for field in fields(cls)}
        raw["sessions"] = tuple(SessionPlan(**each) for each in raw["sessions"])
        return cls(**raw)


@dataclass(frozen=True)
class Summed:
    """A sum, and what is in it; None: everything."""

    total: Floats
    delivery: Delivery | None = None

    @property
    def coverage(self) -> float:
        """Share of all workers' contributions that are in the sum."""
        return 1.0 if self.delivery is None else self.delivery.coverage

    @property
    def excess(self) -> int:
        """How many contributions it lacks beyond what it may lack; 0: none."""
        if self.delivery is None:
            return 0
        return max(0, self.delivery.num_missing - self.delivery.num_tolerated)


Summer = Callable[[Floats], Summed]


class Contributions:
    """Tensors of all workers by round: whole numbers, which all contenders sum to the bit."""

    def __init__(self, num_workers: int, elements: int) -> None:
        rng = np.random.default_rng(1)
        self._first = rng.integers(-99, 100, (num_workers, elements)).astype(np.float32)
        self._sum = self._first.sum(axis=0, dtype=np.float32)

    def of(self, number: int, worker: int) -> Floats:
        """Return a worker's tensor of a round; no two of its first rounds are the same."""
        return np.roll(self._first[worker], number * _SHIFT)

    def expected(self, number: int, summed: Summed) -> Floats:
        """Return the sum of what is said to be in a result."""
        total = np.roll(self._sum, number * _SHIFT)
        if summed.delivery is not None:
            for worker, ranges in summed.delivery.missing.items():
                missing = self.of(number, worker)
                for first, end in ranges:
                    total[first:end] -= missing[first:end]
        return total


class TransportWorker:
    """Sessions, TCP connections and the contenders over them."""

    def __init__(self, plan: WorkerPlan, number: int, stack: ExitStack) -> None:
        self._plan = plan
        self._number = number
        self._stack = stack
        self._sessions: dict[str, Session] = {}
        self._summers: dict[str, Summer] = {}
        self._among: dict[str, ExitStack] = {
            name: stack.enter_context(ExitStack()) for name in plan.among_hosts
        }
        """The sessions among hosts, by contender."""
        self._peers: dict[str, PeerServer] = {}

    def open(self) -> None:
        """Join all jobs."""
        for each in self._plan.sessions:
            self._sessions[each.job] = self._stack.enter_context(self._join(each))

    @property
    def _address(self) -> str:
        return self._plan.workers[self._number]

    def _join(self, plan: SessionPlan) -> Session:
        policy = StragglerPolicy(
            tolerance=None if plan.tolerance is None else LossTolerance(loss=plan.tolerance)
        )
        variables = {
            **os.environ,
            "SWITCHFOLD_CONTROLLER": plan.controller,
            "SWITCHFOLD_JOB": plan.job,
            "SWITCHFOLD_JOB_TOKEN": plan.token,
            "SWITCHFOLD_WORKER_ID": str(self._number),
            "SWITCHFOLD_NUM_WORKERS": str(len(self._plan.workers)),
        }
        options = SessionOptions(
            timeout_s=self._plan.timeout_s,
            precision="block",
            straggler=policy,
            switch_name=plan.switch,
            path=plan.path,
            min_workers=len(self._plan.workers),  # a job without one of them fails
        )
        return join_from_environment(options, variables=variables)

    def prepare(self, contender: str) -> None:
        """Listen for other workers, if the next sum will connect to them."""
        if contender in self._among and contender not in self._summers:
            port = _PEER_PORT + self._plan.among_hosts.index(contender)
            self._peers[contender] = PeerServer(self._address, port)

    def summer(self, contender: str) -> Summer:
        """Return the function by which a contender sums; the first call connects by TCP."""
        if contender not in self._summers:
            self._summers[contender] = self._make_summer(contender)
        return self._summers[contender]

    def forget(self, contender: str) -> None:
        """Let workers connect to each other again, after a sum among them failed."""
        if contender in self._among and contender in self._summers:
            self._among[contender].close()
            del self._summers[contender]

    def _make_summer(self, contender: str) -> Summer:
        if job := self._plan.contenders[contender]:
            return self._over_session(contender, self._sessions[job])
        return self._among_hosts(contender) if contender in self._among else self._by_server()

    def _over_session(self, contender: str, session: Session) -> Summer:
        loss = self._plan.tolerances[contender]
        tolerance = None if loss is None else LossTolerance(loss=loss)

        def add(array: Floats) -> Summed:
            future = session.allreduce(array, tolerance=tolerance)
            return Summed(future.result(), future.delivery)

        return add

    def _among_hosts(self, contender: str) -> Summer:
        """Sum by TCP among the workers, of which each may leave out a share."""
        session = join_among_hosts(
            self._plan.workers, self._number, self._peers[contender], self._plan.timeout_s
        )
        self._among[contender].enter_context(session)  # closes the peer server as well
        share = self._plan.tolerances[contender]
        numbers = itertools.count()

        def add(array: Floats) -> Summed:
            if share is None:
                return Summed(session.allreduce(array).result())
            dropped = DroppedChunks(share, len(self._plan.workers), array.size, next(numbers))
            total = session.allreduce(dropped.pack(array)).result()
            return Summed(dropped.unpack(total), dropped.delivery)

        return add

    def _by_server(self) -> Summer:
        client = self._stack.enter_context(
            ParameterClient(
                [(self._plan.server, tcp_server.PORT)],
                ClientOptions(
                    worker_id=self._number,
                    pair_bytes=_PAIR_BYTES,
                    timeout_s=self._plan.timeout_s,
                    insecure=True,
                ),
            )
        )

        iterations = itertools.count()

        def add(array: Floats) -> Summed:
            out = np.empty_like(array)
            client.push_pull(_KEY, array, next(iterations), out).result()
            return Summed(out)

        return add

    def counts(self, contender: str) -> Counter[str]:
        """Return the counters of packets of a contender's session; none by TCP."""
        job = self._plan.contenders[contender]
        statistics = self._sessions[job].statistics if job else {}
        return Counter({name: int(statistics.get(name, 0)) for name in _COUNTS})


def serve(
    worker: TransportWorker, plan: WorkerPlan, number: int, connection: socket.socket
) -> None:
    """Do what the rig asks for until it closes the connection.

    If a sum failed anywhere, the rig lets all workers forget how they were connected for it.
    """
    with connection.makefile("rw", encoding="utf-8") as lines:

        def say(**answer: Any) -> None:
            lines.write(json.dumps(answer) + "\n")
            lines.flush()

        given = Contributions(len(plan.workers), plan.elements)
        say(worker=number)
        for line in lines:
            request = json.loads(line)
            if "forget" in request:
                worker.forget(request["forget"])
                say(forgotten=True)
                continue
            array = given.of(request["round"], number)
            worker.prepare(request["contender"])
            say(prepared=True)
            lines.readline()  # "go"
            try:
                say(**run(worker, request["contender"], array, request["round"], given))
            except HostlibError as exc:
                say(failed=f"{type(exc).__name__}: {exc}")


def run(
    worker: TransportWorker, contender: str, array: Floats, number: int, given: Contributions
) -> dict[str, Any]:
    """Sum once; return times, and what the sum has. SystemExit unless the sum is right."""
    add = worker.summer(contender)
    before = worker.counts(contender)
    began_s = time.monotonic()
    summed = add(array)
    ended_s = time.monotonic()
    wrong = np.flatnonzero(summed.total != given.expected(number, summed))
    if wrong.size:
        raise SystemExit(f"{contender}: {wrong.size} elements are wrong, the first is {wrong[0]}")
    counts = worker.counts(contender) - before
    return {
        "began_s": began_s,
        "ended_s": ended_s,
        "coverage": summed.coverage,
        "excess": summed.excess,
        "checksum": zlib.crc32(summed.total.tobytes()),
        "counts": {name: counts[name] for name in _COUNTS},
    }


def main(arguments: list[str]) -> None:
    """Run one worker."""
    path, number = arguments
    plan = WorkerPlan.read(Path(path))
    with ExitStack() as stack:
        worker = TransportWorker(plan, int(number), stack)
        worker.open()
        connection = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        connection.connect(plan.socket)
        serve(worker, plan, int(number), connection)


if __name__ == "__main__":
    main(sys.argv[1:])
