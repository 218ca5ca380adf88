# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Tables that move again and again hold what tables that stay where they are hold."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchfold.hostlib.errors import HostlibError
from switchfold.hostlib.parameter_server.resharding import reshard
from switchfold.hostlib.parameter_server.rows import (
    Adagrad,
    Adam,
    Normal,
    PulledRows,
    Sgd,
    partition,
    shard_of,
)
from switchfold.hostlib.parameter_server.storage import LogOptions
from switchfold.hostlib.parameter_server.tables import TableDefinition
from switchfold.hostlib.parameter_server.tables.change import TableChange, pack_rate
from switchfold.hostlib.parameter_server.tables.service import TableService
from switchfold.hostlib.parameter_server.tables.state import TableState
from switchfold.hostlib.peers.event_loop import EventLoop
from switchfold.hostlib.peers.frames import FrameKind
from time_bound import wait_until

NUM_WORKERS = 2
KEYS = np.concatenate([np.arange(-20, 20), [1 << 62, -(1 << 63), (1 << 63) - 1]]).astype(np.int64)
DEFINITIONS = (
    TableDefinition(
        name="adam", width=2, optimiser=Adam(learning_rate=0.1), initialiser=Normal(deviation=1.0)
    ),
    TableDefinition(name="momentum", width=3, optimiser=Sgd(learning_rate=0.1, momentum=0.9)),
    TableDefinition(name="sync", width=1, optimiser=Adagrad(learning_rate=0.1), staleness=0),
)


class Step(NamedTuple):
    """What a worker does; `seed` draws keys and gradients."""

    kind: FrameKind
    worker: int
    table: int
    seed: int


class Caller:
    """A worker's process at a server; nothing is denied."""

    def __init__(self) -> None:
        self.last = 0
        self.has_entered = False

    def on_applied(self, request: TableChange) -> None:
        self.has_entered = True
        self.last = max(self.last, request.number)

    def on_denied(self, number: int, error: HostlibError, *, is_pull: bool) -> None:
        raise AssertionError(f"{number} denied (pull: {is_pull}): {error}")

    def on_rows(self, number: int, table: int, rows: PulledRows) -> None:
        raise AssertionError(f"nobody pulled {number} of {table}: {rows}")

    def on_room(self) -> None:
        """Nothing waits."""

    def refuse(self, error: HostlibError) -> None:
        raise error

    def drop(self) -> None:
        raise AssertionError("dropped")


class Servers:
    """Some servers, and a process of each worker that has entered all of them."""

    def __init__(
        self, directories: Sequence[Path], incarnation: int, snapshot_bytes: int, stack: ExitStack
    ) -> None:
        self._loop = EventLoop("test-reshard")
        self._numbers: Counter[tuple[int, int]] = Counter()
        self._incarnation = incarnation
        stack.callback(self._close)
        self.services = [
            TableService(
                self._loop,
                NUM_WORKERS,
                shard=shard,
                directory=directory,
                log_options=LogOptions(segment_bytes=1000),
                snapshot_bytes=snapshot_bytes,
            )
            for shard, directory in enumerate(directories)
        ]
        count = len(directories)
        self._callers = {
            place: Caller() for place in itertools.product(range(NUM_WORKERS), range(count))
        }
        for (worker, shard), caller in self._callers.items():
            request = TableChange(FrameKind.ENTER, worker, incarnation, 0, count)
            self._loop.run(
                lambda service=self.services[shard], caller=caller, request=request: service.enter(
                    caller, request
                )
            )
        wait_until(lambda: all(each.has_entered for each in self._callers.values()), "entries")

    def send(
        self, kind: FrameKind, worker: int, shard: int, payload: bytes, of: tuple[int, int] = (0, 0)
    ) -> None:
        """`of`: table and number of keys."""
        self._numbers[worker, shard] += 1
        number = self._numbers[worker, shard]
        request = TableChange(kind, worker, self._incarnation, number, *of)
        service = self.services[shard]
        self._loop.run(lambda: service.submit(request, memoryview(payload)))

    def send_to_all(self, kind: FrameKind, worker: int, payload: bytes, table: int = 0) -> None:
        for shard in range(len(self.services)):
            self.send(kind, worker, shard, payload, (table, 0))

    def settle(self) -> None:
        for place, caller in self._callers.items():
            wait_until(
                lambda place=place, caller=caller: caller.last == self._numbers[place], "receipts"
            )

    def pull(self, definition: TableDefinition) -> list[bytes]:
        shards = shard_of(KEYS, len(self.services))
        found: list[bytes] = []
        for key, shard in zip(KEYS, shards, strict=True):
            rows = self.services[shard].state.pull(definition.number, np.array([key]))
            found.append(rows.values.tobytes() + rows.updates.tobytes())
        return found

    def _close(self) -> None:
        self._loop.stop(lambda: None)
        for service in self.services:
            service.close()


@contextmanager
def servers_in(
    directories: Sequence[Path], incarnation: int, snapshot_bytes: int
) -> Iterator[Servers]:
    with ExitStack() as stack:
        yield Servers(directories, incarnation, snapshot_bytes, stack)


class Run:
    """Does the same steps at the servers, and in a state that never moves."""

    def __init__(self) -> None:
        self._alone = TableState(NUM_WORKERS)
        self._numbers: Counter[int] = Counter()
        self._incarnation = 0

    def enter(self, incarnation: int) -> None:
        self._numbers.clear()
        self._incarnation = incarnation
        for worker in range(NUM_WORKERS):
            request = TableChange(FrameKind.ENTER, worker, incarnation, 0)
            self._alone.apply(request, memoryview(b""))

    def _apply(
        self, kind: FrameKind, worker: int, payload: bytes, table: int = 0, num_keys: int = 0
    ) -> None:
        self._numbers[worker] += 1
        number = self._numbers[worker]
        request = TableChange(kind, worker, self._incarnation, number, table, num_keys)
        self._alone.apply(request, memoryview(payload))

    def define(self, servers: Servers) -> None:
        for definition in DEFINITIONS:
            self._apply(FrameKind.DEFINE, 0, definition.pack())
            servers.send_to_all(FrameKind.DEFINE, 0, definition.pack())
        servers.settle()  # a push is checked when it comes

    def do(self, step: Step, servers: Servers) -> None:
        definition = DEFINITIONS[step.table]
        if step.kind is FrameKind.PUSH:
            rng = np.random.default_rng(step.seed)
            keys = rng.choice(KEYS, 12)
            gradients = rng.standard_normal((12, definition.width), np.float32)
            payload = keys.tobytes() + gradients.tobytes()
            self._apply(step.kind, step.worker, payload, definition.number, keys.size)
            found = partition(keys, len(servers.services))
            for shard, places in enumerate(np.split(found.order, np.cumsum(found.counts)[:-1])):
                if places.size:
                    part = keys[places].tobytes() + gradients[places].tobytes()
                    numbers = definition.number, places.size
                    servers.send(step.kind, step.worker, shard, part, numbers)
            return
        is_rate = step.kind is FrameKind.RATE
        payload = pack_rate(1 / (2 + step.seed % 20)) if is_rate else b""
        table = definition.number if is_rate else 0
        self._apply(step.kind, step.worker, payload, table)
        servers.send_to_all(step.kind, step.worker, payload, table)

    def check(self, servers: Servers) -> None:
        for definition in DEFINITIONS:
            expected: list[bytes] = []
            for key in KEYS:
                rows = self._alone.pull(definition.number, np.array([key]))
                expected.append(rows.values.tobytes() + rows.updates.tobytes())
            assert servers.pull(definition) == expected
        clocks = [worker.clock for worker in self._alone.workers]
        for service in servers.services:
            assert [worker.clock for worker in service.state.workers] == clocks


# Workers that end iterations alone leave pushes and rates that wait.
kinds = st.sampled_from([FrameKind.PUSH] * 4 + [FrameKind.ADVANCE] * 3 + [FrameKind.RATE])
tables = st.sampled_from([0, 1, 2, 2])
workers = st.integers(0, NUM_WORKERS - 1)
steps = st.builds(Step, kinds, workers, tables, st.integers(0, 1 << 30))
todo_lists = st.lists(steps, min_size=10, max_size=40)
stages = st.lists(
    st.tuples(st.integers(1, 5), todo_lists, st.sampled_from([1500, 1 << 30])),
    min_size=2,
    max_size=3,
)


@settings(max_examples=12, deadline=None, derandomize=True)
@given(stages)
def test_moving_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, stages: list[tuple[int, list[Step], int]]
) -> None:
    folder = tmp_path_factory.mktemp("reshard")
    run = Run()
    old: list[Path] = []
    version = 0
    for stage, (num_servers, todo, snapshot_bytes) in enumerate(stages):
        new = [folder / f"{stage}-{shard}" for shard in range(num_servers)]
        if old:
            version = reshard(old, new).version
        run.enter(stage + 1)
        with servers_in(new, stage + 1, snapshot_bytes) as servers:
            assert all(service.version > version for service in servers.services)
            if not old:
                run.define(servers)
            for step in todo:
                run.do(step, servers)
            servers.settle()
            run.check(servers)
        old = new
