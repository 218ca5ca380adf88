# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a server tells its workers while its log is slow, busy, full, broken or read again."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from switchfold.hostlib.errors import (
    ConfigurationError,
    DiskFullError,
    ExchangeTimeoutError,
    LogBrokenError,
    NonFiniteGradientError,
    PeerProtocolError,
    PeerRefusedError,
    RowMemoryError,
    ServerRestartedError,
    StorageError,
)
from switchfold.hostlib.parameter_server.rows import PulledRows
from switchfold.hostlib.parameter_server.storage import LogOptions
from switchfold.hostlib.parameter_server.tables import TableDefinition
from switchfold.hostlib.parameter_server.tables.port import TablePort
from switchfold.hostlib.peers.frames import Frame, FrameKind, Packable
from table_cases import ServiceBench

WIDE = TableDefinition(name="wide", width=100)
NARROW = TableDefinition(name="narrow", width=1, max_rows=2)
FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
BAD = OSError(errno.EIO, os.strerror(errno.EIO))


def test_receipts_come_when_records_are_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ServiceBench(monkeypatch, tmp_path) as bench:
        client = bench.entered(0, 11)
        client.define(1, WIDE)
        bench.wait(lambda: client.applied == [1])
        bench.disk.stop()
        client.push(2, WIDE, [5])
        bench.disk.wait_stopped()
        client.push(3, WIDE, [5])
        client.pull(1, WIDE, [5], 0)
        assert (client.applied, client.rows) == ([1], {})
        assert (bench.service.accepted(0), bench.service.num_open(0)) == (3, 2)
        client.push(2, WIDE, [5])  # once more
        bench.disk.go_on()
        bench.wait(lambda: 1 in client.rows)
        assert client.applied == [1, 2, 3]
        assert client.rows[1].values[0, 0] == 2
        assert (bench.service.accepted(0), bench.service.num_open(0)) == (3, 0)


def test_an_entry_is_answered_when_all_before_it_is_applied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a new process does iterations again that have ended."""
    with ServiceBench(monkeypatch, tmp_path) as bench:
        older = bench.entered(0, 11)
        bench.disk.stop()
        older.submit(FrameKind.ADVANCE, 1)
        bench.disk.wait_stopped()
        first = bench.client(0, 22).enter()
        second = bench.client(0, 22).enter()
        assert first.is_dropped
        assert (first.num_entered, second.num_entered) == (0, 0)
        assert isinstance(older.refused, PeerRefusedError)
        bench.disk.go_on()
        bench.wait(lambda: second.num_entered == 1)
        assert bench.service.state.workers[0].clock == 1
        assert (first.num_entered, older.applied) == (0, [])


def test_the_older_connection_of_a_process_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    with ServiceBench(monkeypatch) as bench:
        first = bench.entered(0, 11)
        first.pull(1, WIDE, [1], 0)
        assert isinstance(first.denied_pulls[1], ConfigurationError)
        first.define(1, TableDefinition(name="w", width=1, staleness=0))
        first.pull(2, TableDefinition(name="w", width=1), [1], 5)
        second = bench.entered(0, 11)
        assert (first.is_dropped, first.refused) == (True, None)
        bench.service.detach(0, first)
        second.submit(FrameKind.ADVANCE, 2)
        bench.wait(lambda: second.applied == [2])
        assert first.applied == [1]
        stranger = bench.client(0, 33)
        with pytest.raises(PeerProtocolError, match="ADVANCE frame before the answer to ENTER"):
            stranger.submit(FrameKind.ADVANCE, 900)
        assert bench.service.accepted(0) == 2
        newer = bench.entered(0, 44)
        assert isinstance(second.refused, PeerRefusedError)
        assert not second.is_dropped
        for _ in range(2):
            with pytest.raises(PeerRefusedError, match="another process is worker 0 now"):
                bench.client(0, 11).enter()
        assert newer.refused is None


def test_requests_wait_while_the_log_is_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None is denied, their order stays, and connections that wait learn of room."""
    options = LogOptions(waiting_bytes=2000)
    with ServiceBench(monkeypatch, tmp_path, 3, log_options=options) as bench:
        clients = [bench.entered(w, w + 1) for w in range(3)]
        for client in clients:
            client.define(1, WIDE)
        bench.wait(lambda: all(client.applied == [1] for client in clients))
        bench.disk.stop()
        for number in range(2, 8):
            for client in clients:
                client.push(number, WIDE, [1, 2])
        clients[2].submit(FrameKind.ADVANCE, 8)
        service = bench.service
        assert not service.takes(FrameKind.PUSH)
        assert not service.takes(FrameKind.PULL)
        assert service.takes(FrameKind.HEARTBEAT)
        late = bench.client(1, 22).enter()
        bench.disk.go_on()
        bench.wait(lambda: clients[2].applied == [*range(1, 9)])
        bench.wait(lambda: late.num_entered == 1)
        bench.wait(lambda: all(client.num_rooms for client in (clients[0], clients[2], late)))
        assert clients[0].applied == [*range(1, 8)]
        assert not any(client.denied for client in clients)
        assert service.takes(FrameKind.PUSH)
        late.pull(1, WIDE, [1, 2], 0)
        bench.wait(lambda: 1 in late.rows)
        # Worker 1's first process was replaced before it learned of all, but its pushes count.
        assert (late.rows[1].values == 18).all()


def test_a_request_that_never_fits_into_the_log_is_denied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = LogOptions(waiting_bytes=1000)
    with ServiceBench(monkeypatch, tmp_path, log_options=options) as bench:
        client = bench.entered(0, 11)
        client.define(1, WIDE)
        bench.wait(lambda: client.applied == [1])
        client.push(2, WIDE, [1, 2, 3])
        client.push(3, WIDE, [1])
        bench.wait(lambda: client.applied == [1, 3])
        assert isinstance(client.denied[2], ConfigurationError)
        assert "push fewer keys at a time" in str(client.denied[2])


def test_denials_outlive_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that did not get them must not take the requests for applied."""
    definition = TableDefinition(name="sum", width=1, staleness=0)
    with ServiceBench(monkeypatch, tmp_path, 1) as bench:
        client = bench.entered(0, 11)
        client.define(1, NARROW)
        client.define(2, definition)
        bench.wait(lambda: client.applied == [1, 2])
        client.push(3, NARROW, [1, 2])
        client.push(4, NARROW, [2, 3])  # denied before it is logged
        client.push(5, NARROW, [1, 1], 3e38)
        client.push(6, NARROW, [1])
        client.push(7, definition, [1], 3e38)
        client.push(8, definition, [1], 3e38)
        client.submit(FrameKind.ADVANCE, 9)  # its sums are denied when they are applied
        client.push(10, NARROW, [4])
        bench.wait(lambda: 6 in client.applied and len(client.denied) == 4)
        assert sorted(client.denied) == [4, 5, 9, 10]
        assert dict(bench.service.denials(0)) == client.denied
    with ServiceBench(monkeypatch, tmp_path, 1) as bench:
        assert (bench.service.accepted(0), bench.service.num_open(0)) == (9, 0)
        found = dict(bench.service.denials(0))
        assert sorted(found) == [4, 5, 9]
        assert isinstance(found[4], ServerRestartedError)
        assert "request 4 had no effect" in str(found[4])
        assert isinstance(found[5], ServerRestartedError)
        assert isinstance(found[9], NonFiniteGradientError)
        bench.entered(0, 22)
        assert bench.service.denials(0) == []


def test_a_full_disk_denies_what_did_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ServiceBench(monkeypatch, tmp_path) as bench:
        client = bench.entered(0, 11)
        client.define(1, WIDE)
        bench.wait(lambda: client.applied == [1])
        bench.disk.write_error = FULL
        client.push(2, WIDE, [1])
        client.submit(FrameKind.ADVANCE, 3)
        bench.wait(lambda: len(client.denied) == 2)
        assert all(isinstance(error, DiskFullError) for error in client.denied.values())
        client.pull(1, WIDE, [1], 0)
        assert not client.rows[1].values.any()
        # A process that cannot enter is told, is not entered, and tries again.
        newer = bench.client(0, 22).enter()
        bench.wait(lambda: 0 in newer.denied)
        with pytest.raises(PeerProtocolError, match="before the answer to ENTER"):
            newer.push(1, WIDE, [1])
        again = bench.client(0, 22).enter()
        bench.wait(lambda: 0 in again.denied)
        bench.disk.write_error = None
        last = bench.entered(0, 22)
        last.push(1, WIDE, [1])
        bench.wait(lambda: last.applied == [1])
        assert bench.service.state.workers[0].clock == 0


def test_a_broken_log_denies_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ServiceBench(monkeypatch, tmp_path) as bench:
        client = bench.entered(0, 11)
        client.define(1, WIDE)
        bench.wait(lambda: client.applied == [1])
        bench.disk.sync_errors = [BAD]
        client.push(2, WIDE, [1])
        bench.wait(lambda: 2 in client.denied)
        client.push(3, WIDE, [1])
        bench.wait(lambda: 3 in client.denied)
        newer = bench.client(0, 22).enter()
        bench.wait(lambda: 0 in newer.denied)
        for error in (*client.denied.values(), *newer.denied.values()):
            assert isinstance(error, LogBrokenError)
            assert "start the server again" in str(error)


def test_a_pull_that_waits_for_the_disk_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ServiceBench(monkeypatch, tmp_path, timeout_s=0.1) as bench:
        client = bench.entered(0, 11)
        client.define(1, WIDE)
        bench.wait(lambda: client.applied == [1])
        bench.disk.stop()
        client.push(2, WIDE, [1])
        client.pull(1, WIDE, [1], 0)
        client.pull(2, WIDE, [1], 0)
        bench.wait(lambda: len(client.denied_pulls) == 2)
        error = client.denied_pulls[1]
        assert isinstance(error, ExchangeTimeoutError)
        assert error.worker_ids == []
        assert "table 'wide': the pushes before a pull of worker 0 were not durable" in str(error)


def test_pulls_of_a_closed_connection_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    definition = TableDefinition(name="w", width=1, staleness=0)
    with ServiceBench(monkeypatch) as bench:
        client, other = bench.entered(0, 11), bench.entered(1, 12)
        client.define(1, definition)
        client.submit(FrameKind.ADVANCE, 2)
        client.pull(1, definition, [1], 1)
        client.detach()
        other.submit(FrameKind.ADVANCE, 1)
        bench.wait(lambda: other.applied == [1])
        assert not client.rows
        back = bench.entered(0, 11)
        back.pull(1, definition, [1], 1)
        assert back.rows[1].values.tolist() == [[0]]


@pytest.mark.parametrize("num_workers", [1, 3])
def test_another_number_of_workers_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, num_workers: int
) -> None:
    with ServiceBench(monkeypatch, tmp_path, 2) as bench:
        bench.entered(0, 11)
    for _ in range(2):  # the log is closed again
        with pytest.raises(StorageError, match=r"has 2 workers; start .* not [13]"):
            ServiceBench(monkeypatch, tmp_path, num_workers)
    with ServiceBench(monkeypatch, tmp_path, 2) as bench:
        bench.entered(0, 11)


def test_no_server_starts_without_the_memory_for_its_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would go on without what its workers have receipts for."""

    def fail(_: TableDefinition) -> None:
        raise RowMemoryError("no memory")

    with ServiceBench(monkeypatch, tmp_path, 1) as bench:
        client = bench.entered(0, 11)
        client.define(1, NARROW)
        bench.wait(lambda: client.applied == [1])
    with monkeypatch.context() as patch:
        patch.setattr(TableDefinition, "new_rows", fail)
        with pytest.raises(RowMemoryError):
            ServiceBench(monkeypatch, tmp_path, 1)
    with ServiceBench(monkeypatch, tmp_path, 1) as bench:
        again = bench.entered(0, 11)
        again.push(2, NARROW, [1])
        bench.wait(lambda: again.applied == [2])
        assert np.array_equal(
            bench.service.state.tables[NARROW.number].rows.pull(np.array([1])).values, [[1]]
        )


class FakeConnection:
    """A connection whose other end reads as a test says."""

    def __init__(self) -> None:
        self.receiver: object = None
        self.is_drained = True
        self.is_closed = False
        self.num_resumed = 0
        self.sent: list[FrameKind] = []

    def send(self, frame: Packable, payload: memoryview | None = None) -> None:
        self.sent.append(Frame.unpack(frame.pack()).kind)

    def resume(self) -> None:
        self.num_resumed += 1


def test_pulls_wait_while_a_worker_does_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise its rows fill the server's memory."""
    monkeypatch.setattr("switchfold.hostlib.parameter_server.tables.port._MAX_UNREAD_BYTES", 100)
    connection: Any = FakeConnection()
    pull = Frame(FrameKind.PULL, 8)
    rows = PulledRows(np.ones((5, 2), np.float32), np.ones(5, np.uint32))

    def check() -> None:
        port = TablePort(bench.service, bench.loop, 0, connection)
        connection.is_drained = False
        port.on_rows(1, 7, rows)
        assert port.target(connection, pull) is not None
        port.on_rows(2, 7, rows)
        assert port.target(connection, pull) is None
        assert port.target(connection, Frame(FrameKind.PUSH, 8)) is not None
        assert connection.num_resumed == 0
        connection.is_drained = True
        port.on_drained(connection)
        assert connection.num_resumed == 1
        assert port.target(connection, pull) is not None
        for number in range(5):  # the kernel takes all at once
            port.on_rows(number, 7, rows)
        connection.is_drained = False
        port.on_rows(9, 7, rows)
        assert port.target(connection, pull) is not None

    with ServiceBench(monkeypatch) as bench:
        bench.run(check)
