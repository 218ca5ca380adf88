# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One worker of `connections.py`; its arguments are the files of the run and its record."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from benchmarks.hot_rows.client_rig import RunFiles, processor_s, table_sizes
from benchmarks.hot_rows.peers import ask
from switchfold.controller.cli.hot.plan import TablePlan
from switchfold.controller.cli.hot.server import have_hot_rows, read_servers
from switchfold.hostlib.config import join_from_environment, secret_from_environment
from switchfold.hostlib.parameter_server import ClientOptions, HotRowUse
from switchfold.hostlib.parameter_server.hot_worker import UNKNOWN_UPDATES
from switchfold.hostlib.parameter_server.rows import GradientSum
from switchfold.hostlib.parameter_server.rows.placement import shard_of
from switchfold.hostlib.parameter_server.tables import SparseTable, TableClient, TableDefinition
from switchfold.hostlib.peers.event_loop import EventLoop
from switchfold.hostlib.session import Session

KINDS: Final = ("empty by TCP", "one row by the switch", "64 keys by TCP", "64 keys by the switch")
PATHS: Final = ("TCP", "switch")
OPERATIONS: Final = ("pull", "push")
NUM_KEYS: Final = 64
POOL: Final = np.arange(256, dtype=np.int64)
"""All of them are hot."""
HOT: Final = TableDefinition(name="hot", width=1, optimiser=GradientSum(), hot_keys=POOL.size)
COLD: Final = TableDefinition(name="cold", width=1, optimiser=GradientSum())
_NEVER: Final = 1e-9
"""Share of the pushes whose keys are counted after the warm-up."""
_WAIT_S: Final = 120.0
_BURST: Final = 10
Keys = NDArray[np.int64]


@final
class PullLoop:
    """Requests of one kind, each sent when the one before is answered, or at its time."""

    def __init__(
        self,
        pull: Callable[[Callable[[Any], None]], None],
        expected: Any,
        count: int,
        loop: EventLoop,
        pause_s: float,
    ) -> None:
        """`expected`: values of each answer, of shape (keys, 1). `pause_s`: between two; or 0."""
        self.times_s: list[float] = []
        self.error: Exception | None = None
        self.done = threading.Event()
        self._pull, self._expected, self._left = pull, expected, count
        self._loop, self._pause_s = loop, pause_s
        self._next_s = 0.0

    def start(self, delay_s: float) -> None:
        """Send the first one after a delay; in the client's loop."""
        self._next_s = time.monotonic() + delay_s
        self._loop.call_later(delay_s, self.send)

    def send(self) -> None:
        """Send the next one; in the client's loop."""
        self._next_s += self._pause_s
        begun_s = time.perf_counter()
        self._pull(lambda rows: self._take(rows, time.perf_counter() - begun_s))

    def _take(self, rows: Any, taken_s: float) -> None:
        if isinstance(rows, Exception):
            self.error = rows
        elif not np.array_equal(rows.values, self._expected):
            self.error = ValueError(f"wrong values: {rows.values.ravel()[:8]}")
        self.times_s.append(taken_s)
        self._left -= 1
        if not self._left or self.error is not None:
            self.done.set()
        elif not self._pause_s:
            self.send()
        else:
            self._loop.call_later(max(0.0, self._next_s - time.monotonic()), self.send)


@final
class ConnectionsWorker:
    """Takes part in all phases, and measures in those for at least so many clients."""

    def __init__(self, session: Session, files: RunFiles, record: Path) -> None:
        self._session = session
        self._id = session.view.worker_id
        self._files = files
        self._plan = TablePlan.read(files.plan)
        self._value_file = record.parent / "value"
        self._client: TableClient | None = None
        shards = shard_of(POOL, self._plan.num_servers)
        self._keys = POOL[shards == 0][:NUM_KEYS]
        self._num_barriers = 0
        self._phases: list[dict[str, Any]] = []

    def run(self) -> dict[str, Any]:
        """Do all phases; return what was measured."""
        if self._id == 0:
            self._value_file.write_text(str(self._warm_up()))
        self._barrier()
        self._value = float(self._value_file.read_text())
        for clients in self._files.options["clients"]:
            self._phase(clients)
        sizes = table_sizes(self._files.switch, self._files.credentials) if self._id == 0 else {}
        self._barrier()
        if self._client is not None:
            self._client.close()
        return {"phases": self._phases, "tables": sizes}

    def _barrier(self) -> None:
        self._num_barriers += 1
        self._session.barrier(f"{self._num_barriers}", _WAIT_S)

    def _open(self, hot_sample: float) -> tuple[TableClient, SparseTable, SparseTable]:
        options = ClientOptions(
            worker_id=self._id,
            token=secret_from_environment(),
            insecure=True,
            hot_sample=hot_sample,
            use_hot_rows=HotRowUse.ALWAYS,
        )
        client = TableClient(self._plan.servers, options)
        return client, client.define(HOT), client.define(COLD)

    def _warm_up(self) -> int:
        """Push until all keys are hot; return the value of each key."""
        client, hot, cold = self._open(1.0)
        ones, value = np.ones((POOL.size, 1), np.float32), 0
        with client:
            while not (value > 100 and have_hot_rows(self._files.servers)):
                hot.push(POOL, ones).result(_WAIT_S)
                value += 1
            cold.push(POOL, value * ones).result(_WAIT_S)
            self._wait_until_hot(hot, value)
        return value

    @staticmethod
    def _wait_until_hot(table: SparseTable, value: float) -> None:
        """Pull until the switch has the latest value of each key."""
        deadline_s = time.monotonic() + _WAIT_S
        while True:
            rows = table.pull(POOL).result(_WAIT_S)
            if (rows.updates == UNKNOWN_UPDATES).all() and (rows.values == value).all():
                return
            if time.monotonic() > deadline_s:
                raise TimeoutError("not all keys are hot with their latest values")
            time.sleep(0.05)

    def _phase(self, clients: int) -> None:
        is_in = self._id < clients
        if is_in and self._client is None:
            self._client, self._hot, self._cold = self._open(_NEVER)
            self._wait_until_hot(self._hot, self._value)
        each = self._files.options["requests"] // clients
        for _ in range(self._files.options["repeats"]):
            for rate in (0, self._files.options["rate"]):
                for kind in KINDS:
                    self._measure(clients, kind, rate, each if is_in else 0)
        for path in PATHS:
            for operation in OPERATIONS:
                self._count_peers(clients, path, operation, is_in=is_in)

    def _measure(self, clients: int, kind: str, rate: int, count: int) -> None:
        self._barrier()
        before = self._read()
        self._barrier()
        begun_s = time.monotonic()
        times_s: list[float] = []
        if count:
            pause_s = clients / rate if rate else 0.0
            requests = self._requests(kind, count, pause_s)
            assert self._client is not None
            # Clients with a rate take turns with their requests.
            delay_s = pause_s * self._id / clients
            self._client._loop.post(lambda: requests.start(delay_s))
            if not requests.done.wait(_WAIT_S):
                raise TimeoutError(f"{kind}: no answer")
            if requests.error is not None:
                raise requests.error
            times_s = requests.times_s
        ended_s = time.monotonic()
        self._barrier()
        after = self._read()
        self._phases.append(
            {
                "clients": clients,
                "kind": kind,
                "rate": rate,
                "times_us": [1e6 * each for each in times_s],
                "begun_s": begun_s,
                "ended_s": ended_s,
                "processor_s": [one - other for one, other in zip(after, before, strict=True)],
            }
        )

    def _read(self) -> list[float]:
        """Return the processor time of the servers, and of the switch; in worker 0."""
        if self._id:
            return []
        servers = read_servers(self._files.servers).processor_s
        return [servers, processor_s(self._files.switch_pid)]

    def _requests(self, kind: str, count: int, pause_s: float) -> PullLoop:
        assert self._client is not None
        session = self._client._sessions[0]
        assert session.hot is not None
        keys = self._keys
        if kind == KINDS[0]:
            keys = keys[:0]
        elif kind == KINDS[1]:
            keys = keys[:1]
        path = session if "TCP" in kind else session.hot
        expected = np.full((keys.size, 1), self._value, np.float32)
        return PullLoop(
            lambda done: path.pull(self._hot.definition.number, keys, 1, done),
            expected,
            count,
            self._client._loop,
            pause_s,
        )

    def _count_peers(self, clients: int, path: str, operation: str, *, is_in: bool) -> None:
        """Push or pull hot keys, and count who sends something to server 0 meanwhile."""
        self._barrier()
        if self._id == 0:
            ask(self._files.peers, "start")
        self._barrier()
        if is_in:
            table = self._cold if path == "TCP" else self._hot
            zeros = np.zeros((self._keys.size, 1), np.float32)
            for _ in range(_BURST):
                if operation == "push":
                    table.push(self._keys, zeros).result(_WAIT_S)
                else:
                    assert (table.pull(self._keys).result(_WAIT_S).values == self._value).all()
        self._barrier()
        if self._id == 0:
            peers = ask(self._files.peers, "stop")
            named = {"clients": clients, "path": path, "operation": operation}
            self._phases.append({**named, "peers": peers})


def main(arguments: list[str]) -> None:
    """Run one worker."""
    files, record = map(Path, arguments)
    with join_from_environment() as session:
        found = ConnectionsWorker(session, RunFiles.read(files), record).run()
    record.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
