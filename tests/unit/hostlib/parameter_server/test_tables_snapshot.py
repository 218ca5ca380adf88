# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Tables come back from a snapshot and the log behind it, to the bit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from switchfold.hostlib.errors import HostlibError, StorageDamagedError
from switchfold.hostlib.parameter_server.rows import Adam, PulledRows, Sgd, Uniform
from switchfold.hostlib.parameter_server.storage import LogOptions
from switchfold.hostlib.parameter_server.tables import TableDefinition
from switchfold.hostlib.parameter_server.tables.change import TableChange, pack_rate
from switchfold.hostlib.parameter_server.tables.service import TableService
from switchfold.hostlib.parameter_server.tables.snapshot import capture, restore
from switchfold.hostlib.parameter_server.tables.state import TableState
from switchfold.hostlib.peers.event_loop import EventLoop
from switchfold.hostlib.peers.frames import FrameKind
from time_bound import wait_until

NUM_WORKERS, NUM_KEYS, WAIT_S = 2, 64, 60.0
KEYS = np.arange(NUM_KEYS)
DEFINITIONS = (
    TableDefinition(
        name="async",
        width=3,
        optimiser=Adam(learning_rate=0.01),
        initialiser=Uniform(low=-1.0, high=1.0),
        seed=4,
    ),
    TableDefinition(
        name="sync", width=2, optimiser=Sgd(learning_rate=1), staleness=0, is_mean=True
    ),
)


class Owner:
    """Counts what a worker's connection is told."""

    def __init__(self) -> None:
        self.applied: list[int] = []

    def on_applied(self, request: TableChange) -> None:
        self.applied.append(request.number)

    def on_denied(self, number: int, error: HostlibError, *, is_pull: bool) -> None:
        raise AssertionError(f"{number} denied (pull: {is_pull}): {error}")

    def on_rows(self, number: int, table: int, rows: PulledRows) -> None:
        raise AssertionError(f"nobody pulled {number} of {table}: {rows}")

    def on_room(self) -> None:
        """Nothing waits."""

    def refuse(self, error: HostlibError) -> None:
        raise error


def waiting_bytes(state: TableState) -> int:
    """Return the size of the pushes that wait for the end of their iteration."""
    return sum(
        push.keys.nbytes + push.gradients.nbytes
        for table in state.tables.values()
        for pushes in table.waiting.values()
        for push in pushes
    )


def requests(number_of_rounds: int) -> Iterator[tuple[TableChange, memoryview]]:
    """Yield definitions, then pushes of both workers to both tables, and ends of iterations."""
    generator = np.random.default_rng(5)
    numbers = [0] * NUM_WORKERS

    def request(
        kind: FrameKind, worker: int, payload: bytes, table: int = 0, num_keys: int = 0
    ) -> tuple[TableChange, memoryview]:
        numbers[worker] += 1
        made = TableChange(kind, worker, 100 + worker, numbers[worker], table, num_keys)
        return made, memoryview(payload)

    for definition in DEFINITIONS:
        yield request(FrameKind.DEFINE, 0, definition.pack())
    for number in range(number_of_rounds):
        for worker in range(NUM_WORKERS):
            for definition in DEFINITIONS:
                rate = pack_rate(1 / (2 + number + worker))
                yield request(FrameKind.RATE, worker, rate, definition.number)
                keys = generator.integers(0, NUM_KEYS, 8)
                gradients = generator.normal(size=(8, definition.width)).astype(np.float32)
                payload = keys.tobytes() + gradients.tobytes()
                yield request(FrameKind.PUSH, worker, payload, definition.number, 8)
        # Worker 1 is an iteration behind in the end: its pushes and worker 0's wait.
        yield request(FrameKind.ADVANCE, 0, b"")
        if number < number_of_rounds - 1:
            yield request(FrameKind.ADVANCE, 1, b"")


@contextmanager
def service(directory: Path, *, snapshot_bytes: int = 1 << 30) -> Iterator[TableService]:
    loop = EventLoop("test")
    made = TableService(
        loop,
        NUM_WORKERS,
        directory=directory,
        log_options=LogOptions(segment_bytes=2048),
        snapshot_bytes=snapshot_bytes,
    )
    try:
        yield made
    finally:
        loop.stop(lambda: None)
        made.close()


def pulled(state: TableState) -> list[np.ndarray]:
    found: list[np.ndarray] = []
    for definition in DEFINITIONS:
        found += state.pull(definition.number, KEYS)
    return found


def test_snapshot_and_the_log_behind_it_are_the_state(tmp_path: Path) -> None:
    expected = TableState(NUM_WORKERS)
    owners = [Owner() for _ in range(NUM_WORKERS)]
    loop_calls = list(requests(40))
    with service(tmp_path, snapshot_bytes=1500) as live:
        loop = live._loop

        def enter() -> None:
            for worker, owner in enumerate(owners):
                request = TableChange(FrameKind.ENTER, worker, 100 + worker, 0)
                expected.apply(request, memoryview(b""))
                live.enter(owner, request)

        loop.run(enter)
        for lsn, (request, payload) in enumerate(loop_calls, NUM_WORKERS + 1):
            expected.apply(request, payload, lsn=lsn)
            loop.run(lambda request=request, payload=payload: live.submit(request, payload))
            owner = owners[request.worker_id]
            wait_until(
                lambda owner=owner, request=request: request.number in owner.applied,
                f"request {request} applied",
                WAIT_S,
            )
    stored = sorted(path.name for path in (tmp_path / "snapshots").iterdir())
    assert len(stored) == 2
    segments = [int(path.stem) for path in (tmp_path / "log").glob("*.log")]
    assert min(segments) > 1, "the log is kept from the older snapshot on"
    with service(tmp_path) as restored:
        assert restored.state.workers == expected.workers
        assert waiting_bytes(restored.state) == waiting_bytes(expected) > 0
        for number, table in expected.tables.items():
            found = restored.state.tables[number]
            assert found.rows.optimiser == table.rows.optimiser != table.definition.optimiser
            assert found.rates == table.rates
            assert bool(table.rates) == table.definition.is_synchronous
        for found, wanted in zip(pulled(restored.state), pulled(expected), strict=True):
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    "chunks",
    [
        [("what", b"")],
        [("workers", b"[]")],
        [("workers", b"{}")],
        [("table", b"{}")],
        [("table", b'{"definition": "{}", "rate": null, "rates": []}')],
        [("rows 5", b"")],
    ],
)
def test_foreign_chunks_are_refused(chunks: list[tuple[str, bytes]]) -> None:
    with pytest.raises(StorageDamagedError, match="of another release"):
        restore(TableState(NUM_WORKERS), chunks)


def test_denied_numbers_are_in_a_snapshot() -> None:
    state, restored = TableState(NUM_WORKERS), TableState(NUM_WORKERS)
    for kind, number in ((FrameKind.ENTER, 0), (FrameKind.ADVANCE, 2), (FrameKind.ADVANCE, 5)):
        state.apply(TableChange(kind, 0, 100, number), memoryview(b""))
    assert state.workers[0].denied == [1, 3, 4]
    restore(restored, capture(state))
    assert restored.workers == state.workers
